// Links and buses that serve one message after the other, as Dimemas has them.
//
// A message takes an output link of its sender's node, an input link of its receiver's, and a bus,
// in this order, and keeps what it has while it waits for the next one; a message inside a node
// takes an output link of its sender and an input link of its receiver. Who waits is served first
// come, first served: what becomes free is given to the first who waits for it. A message that
// holds an output link but lacks an input link does not keep the link from others that could go at
// once: one that comes takes it over, and the first one waits at the head of the queue.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "scratch.hpp"

#include "transfers.hpp"

namespace popmodel::contended {

// How many there are; 0: as many as needed.
struct Resources {
    int32_t output, input; // links of a node; one of them 0: links carry messages in or out
    int32_t within;        // links of a process for messages inside its node, each way
    int32_t buses;         // messages between nodes at a time
};

class Fifo {
  public:
    Fifo(const Resources &resources, const popmodel::LongVector<int32_t> &node, int32_t nodes,
         const Transfers &transfers)
        : half_duplex_((resources.output > 0) != (resources.input > 0)),
          links_(resources.output > 0 || resources.input > 0), within_(resources.within > 0),
          buses_(resources.buses), node_(node), transfers_(transfers), nodes_(nodes) {
        const int32_t either = std::max(resources.output, resources.input);
        const size_t processes = node.size();
        outputs_.resize(size_t(nodes) + processes);
        inputs_.resize(size_t(nodes) + processes);
        for (size_t e = 0; e < outputs_.size(); e++) {
            const bool inside = e >= size_t(nodes);
            outputs_[e].free = inside ? resources.within : half_duplex_ ? either : resources.output;
            inputs_[e].free = inside ? resources.within : resources.input;
        }
    }

    // Whether messages from one process to another wait for others.
    bool shared(int32_t sender, int32_t receiver) const {
        if (sender == receiver)
            return false;
        return between(sender, receiver) ? links_ || buses_ > 0 : within_;
    }

    void add(int32_t x) { agenda_.begin(transfers_[x].ready, x, transfers_[x]); }

    // Goes on to the next event; false if there is none. Adds messages whose arrival is known now.
    bool next(popmodel::LongVector<Arrival> &arrivals) {
        if (agenda_.empty())
            return false;
        const Event event = agenda_.take();
        arrivals_ = &arrivals;
        now_ = event.time;
        if (event.ends()) {
            release(event.transfer);
        } else {
            if (size_t(event.transfer) >= state_.size())
                state_.resize(transfers_.size());
            state_[size_t(event.transfer)] = State{};
            go(event.transfer);
        }
        return true;
    }

    // Transfers that are over since this was asked last.
    popmodel::LongVector<int32_t> &over() { return over_; }

  private:
    struct State {
        bool output = false, input = false; // what it holds
    };

    struct End {
        int32_t free = 0;
        std::deque<int32_t> waiting;
        popmodel::LongVector<int32_t> holders; // of output links, since when they hold them
    };

    bool between(int32_t sender, int32_t receiver) const {
        return node_[size_t(sender)] != node_[size_t(receiver)];
    }

    // Where the links of a transfer are: of nodes, and behind them of processes.
    size_t from(int32_t x) const { return end_of(x, transfers_[x].sender); }
    size_t to(int32_t x) const { return end_of(x, transfers_[x].receiver); }
    size_t end_of(int32_t x, int32_t process) const {
        return size_t(between(transfers_[x].sender, transfers_[x].receiver)
                          ? node_[size_t(process)]
                          : nodes_ + process);
    }
    bool inside(size_t end) const { return end >= size_t(nodes_); }

    // A half-duplex link that goes in is one of those that go out.
    int32_t &free_inputs(size_t end) {
        return half_duplex_ && !inside(end) ? outputs_[end].free : inputs_[end].free;
    }

    void go(int32_t x) {
        const bool far = between(transfers_[x].sender, transfers_[x].receiver);
        if ((far ? links_ : within_) && !take_links(x))
            return;
        if (far && buses_ > 0) {
            if (under_way_ >= buses_) {
                waiting_for_bus_.push_back(x);
                return;
            }
            under_way_++;
        }
        arrivals_->push_back({x, now_ + transfers_[x].time});
        agenda_.end(now_ + transfers_[x].busy, x);
    }

    bool take_links(int32_t x) {
        State &mine = state_[size_t(x)];
        const size_t here = from(x), there = to(x);
        int32_t owner = -1; // of an output link that this one could take over
        if (!mine.output) {
            if (outputs_[here].free > 0) {
                outputs_[here].free--;
                hold(here, x);
            } else if ((owner = stuck(here)) < 0) {
                outputs_[here].waiting.push_back(x);
                return false;
            }
        }
        if (mine.input)
            return true;
        const bool free = free_inputs(there) > 0;
        const int32_t other = !free && half_duplex_ ? stuck(there) : -1;
        if (!free && other < 0) {
            (owner < 0 ? inputs_[there] : outputs_[here]).waiting.push_back(x);
            return false;
        }
        if (owner >= 0) {
            take_from(here, owner);
            hold(here, x);
        }
        if (free)
            free_inputs(there)--;
        else
            take_from(there, other);
        mine.input = true;
        return true;
    }

    void hold(size_t end, int32_t x) {
        outputs_[end].holders.push_back(x);
        state_[size_t(x)].output = true;
    }

    // The first one that holds an output link between nodes and waits for its input link, or -1.
    int32_t stuck(size_t end) const {
        if (inside(end))
            return -1;
        for (int32_t x : outputs_[end].holders)
            if (!state_[size_t(x)].input)
                return x;
        return -1;
    }

    void take_from(size_t end, int32_t owner) {
        extract(inputs_[to(owner)].waiting, owner);
        extract(outputs_[end].holders, owner);
        state_[size_t(owner)].output = false;
        outputs_[end].waiting.push_front(owner);
    }

    template <typename Queue> static void extract(Queue &queue, int32_t x) {
        queue.erase(std::find(queue.begin(), queue.end(), x));
    }

    void release(int32_t x) {
        const size_t here = from(x), there = to(x);
        const bool far = !inside(here);
        if (far ? links_ : within_) {
            outputs_[here].free++;
            extract(outputs_[here].holders, x);
            if (far && half_duplex_)
                serve(inputs_[here].waiting);
            serve(outputs_[here].waiting);
            free_inputs(there)++;
            if (far && half_duplex_)
                serve(outputs_[there].waiting);
            serve(inputs_[there].waiting);
        }
        if (far && buses_ > 0) {
            under_way_--;
            serve(waiting_for_bus_);
        }
        over_.push_back(x);
    }

    void serve(std::deque<int32_t> &waiting) {
        if (waiting.empty())
            return;
        const int32_t first = waiting.front();
        waiting.pop_front();
        go(first);
    }

    const bool half_duplex_, links_, within_;
    const int32_t buses_;
    const popmodel::LongVector<int32_t> &node_; // of each process
    const Transfers &transfers_;
    const int32_t nodes_;
    popmodel::LongVector<End> outputs_, inputs_; // of nodes, then of processes
    std::deque<int32_t> waiting_for_bus_;
    int32_t under_way_ = 0;
    popmodel::LongVector<State> state_; // of each transfer
    Agenda agenda_;
    double now_ = 0;
    popmodel::LongVector<Arrival> *arrivals_ = nullptr;
    popmodel::LongVector<int32_t> over_;
};

} // namespace popmodel::contended
