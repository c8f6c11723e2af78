// Carries a program out on a network without shared resources: a longest path, computed by running
// each process until it blocks and waking it when what it waits for has happened. The result does
// not depend on the order in which processes run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "algorithms.hpp"
#include "bursts.hpp"
#include "flights.hpp"
#include "operations.hpp"

namespace popmodel {

// Numbers shared with popmodel.simulator.charges.Rule.
enum Rule : uint8_t {
    SYNCHRONISING, // all leave when the last has arrived, plus the cost
    FROM_ROOT,     // members leave when the root has arrived, plus the cost; the root goes on
    TO_ROOT,       // the root leaves when all have arrived, plus the cost; members go on
    TO_ROOT_PAID,  // every one pays a cost of its own; the root leaves when all have, members go on
    MESSAGES,      // carried out as messages
    LAST_DECIDES   // all leave when the last has arrived, plus the cost that it brings
};

constexpr double UNKNOWN = -1.0; // times are never negative
constexpr int32_t NOBODY = -1;

struct Network {
    double cpu;                        // multiplies every burst
    const double *transfer;            // per charge: latency and size / bandwidth, ns
    const uint8_t *rendezvous;         // per charge: does the sender wait for the receive?
    const double *collective_cost;     // per collective, ns
    const double *member_cost;         // per collective, ns: of members that do not wait
    const uint8_t *collective_rule;    // per collective
    const double *request_cost;        // per collective, ns: of a nonblocking call, and of its wait
    size_t uneven;                     // arrivals that bring a cost
    const int64_t *uneven_operation;   // ascending
    const double *uneven_cost;         // ns
    const double *send_overhead;       // per charge, ns, before the message leaves
    const double *receive_before;      // per charge, ns, before a receive is posted or waited for
    const double *receive_after;       // per charge, ns, of a message that has arrived
    bool sender_waits_for_transfer;    // a rendezvous sender ends with the transfer, or when posted
};

// Of collectives that are carried out as messages.
struct Carried {
    const int32_t *algorithm;      // per collective
    const int64_t *parts;          // per algorithm: bounds of the next
    const std::vector<Piece> part;
    const int32_t *root;           // per collective: rank of the root
    const int32_t *group;          // per collective
    const int64_t *offsets;        // per group, of the next two
    const int32_t *process;        // members of a group, ascending
    const int32_t *rank;           // rank of each of these members
    const int32_t *member;         // the members of a group by rank
    const int32_t *node;           // of each process; null where no distance matters
    int64_t far;                   // rows from the charge of a message inside a node to one between

    // What a message between process p and a rank of collective c adds to the row of its charge.
    int64_t distance(int32_t p, int32_t c, int32_t with) const {
        return node && node[p] != node[member[offsets[group[c]] + with]] ? far : 0;
    }
};

struct MessageState {
    double sent = UNKNOWN;     // when the sender was ready
    double posted = UNKNOWN;   // when the receive was posted
    int32_t receiver = NOBODY; // process waiting for the arrival
    int32_t sender = NOBODY;   // process waiting for the receive to be posted
};

struct CollectiveState {
    double latest = 0;      // latest arrival so far
    double root = UNKNOWN;  // arrival of the root
    double cost = 0;        // brought by the last to arrive
    int32_t last = NOBODY;  // who that is; of several at once the last process
    int32_t missing = 0;    // members still to arrive
    int32_t waiting = NOBODY; // head of the list of waiting processes
};

// Time in the calls of each place and name, which is summed up as calls are a multitude.
struct Spent {
    const int32_t *call;  // of each operation
    const int16_t *name;  // of each call
    const int32_t *place; // of each call; null if there is one for all
    size_t names;
    std::vector<double> time; // ns, by place and name; empty if nobody asks

    void add(int64_t operation, double t) {
        const int32_t c = call[operation];
        time[(place ? size_t(place[c]) * names : 0) + size_t(name[c])] += t;
    }
};

// A message of a collective: gone when both its ends are through with it.
struct Flight : MessageState {
    int8_t through = 0;
};

enum class Phase : uint8_t { POST, SENDING, WAIT };

// Where a process is in a collective that is carried out as messages.
struct Turn {
    int32_t rank = 0;
    int32_t step = 0;
    Phase phase = Phase::POST;
};

class Engine {
  public:
    Engine(size_t processes, const int64_t *offsets, const uint8_t *kind, const int32_t *target,
           const Bursts &burst, const double *tail, size_t messages, size_t collectives,
           const int32_t *members, const int32_t *root, const Network &network,
           const Carried &carried, Spent &spent)
        : processes_(processes), offsets_(offsets), kind_(kind), target_(target), burst_(burst),
          tail_(tail), members_(members), root_(root), net_(network), carried_(carried),
          spent_(spent), started_(spent.time.empty() ? 0 : processes), message_(messages),
          collective_(collectives), flights_(collectives), clock_(processes, 0.0),
          next_(offsets, offsets + processes), begun_(processes, 0),
          next_waiting_(processes, NOBODY), turn_(processes) {
        for (size_t c = 0; c < collectives; c++)
            collective_[c].missing = members[c];
    }

    void run() {
        ready_.reserve(processes_);
        for (size_t p = processes_; p-- > 0;)
            ready_.push_back(int32_t(p));
        while (!ready_.empty()) {
            int32_t p = ready_.back();
            ready_.pop_back();
            advance(p);
        }
    }

    std::vector<double> &clock() { return clock_; }
    std::vector<int64_t> &next() { return next_; }

  private:
    // Runs process p until it blocks or ends.
    void advance(int32_t p) {
        double t = clock_[p];
        int64_t i = next_[p];
        const int64_t end = offsets_[p + 1];
        bool begun = begun_[p];
        for (; i < end; i++, begun = false) {
            if (!begun) {
                t += burst_[i] * net_.cpu;
                if (!started_.empty())
                    started_[p] = t;
            }
            if (!step(p, i, t, begun)) {
                clock_[p] = t;
                next_[p] = i;
                begun_[p] = 1;
                return;
            }
            if (!started_.empty())
                spent_.add(i, t - started_[p]);
        }
        clock_[p] = t + tail_[p] * net_.cpu;
        next_[p] = i;
    }

    // Carries out operation i; false when the process has to wait.
    bool step(int32_t p, int64_t i, double &t, bool begun) {
        const Op op = Op(kind_[i]);
        const int32_t x = target_[i];
        switch (op) {
        case SEND:
        case ISEND: return send(p, message_[x], x, t, begun, op == SEND);
        case RECEIVE:
            if (!begun) {
                t += net_.receive_before[x];
                post(message_[x], t);
            }
            return receive(p, message_[x], x, t);
        case POST: post(message_[x], t); return true;
        case WAIT_RECEIVE:
            if (!begun)
                t += net_.receive_before[x];
            return receive(p, message_[x], x, t);
        case WAIT_SEND: return wait_send(p, message_[x], x, t);
        case COLLECTIVE:
            if (net_.collective_rule[x] == MESSAGES)
                return carry_out(p, x, t, begun);
            if (!begun)
                arrive(p, i, t);
            return leave(p, x, t);
        case ARRIVE:
            t += net_.request_cost[x];
            if (net_.collective_rule[x] != MESSAGES)
                arrive(p, i, t);
            return true;
        case WAIT_COLLECTIVE:
            if (!begun)
                t += net_.request_cost[x];
            return net_.collective_rule[x] == MESSAGES ? carry_out(p, x, t, begun)
                                                       : leave(p, x, t);
        }
        return true;
    }

    // Messages m are charged what row x says: a row of their own, or one for all of their size.

    bool send(int32_t p, MessageState &m, int64_t x, double &t, bool begun, bool blocking) {
        if (!begun) {
            t += net_.send_overhead[x];
            m.sent = t;
            wake(m.receiver);
        }
        return !blocking || !net_.rendezvous[x] || wait_posted(p, m, x, t);
    }

    bool wait_send(int32_t p, MessageState &m, int64_t x, double &t) {
        if (!net_.rendezvous[x] || !net_.sender_waits_for_transfer)
            return true;
        return wait_posted(p, m, x, t);
    }

    bool wait_posted(int32_t p, MessageState &m, int64_t x, double &t) {
        if (m.posted == UNKNOWN || m.sent == UNKNOWN) {
            m.sender = p;
            return false;
        }
        double start = std::max(m.sent, m.posted);
        t = std::max(t, net_.sender_waits_for_transfer ? start + net_.transfer[x] : start);
        return true;
    }

    void post(MessageState &m, double t) {
        m.posted = t;
        wake(m.receiver);
        wake(m.sender);
    }

    bool receive(int32_t p, MessageState &m, int64_t x, double &t) {
        const bool rendezvous = net_.rendezvous[x];
        if (m.sent == UNKNOWN || (rendezvous && m.posted == UNKNOWN)) {
            m.receiver = p;
            return false;
        }
        const double start = rendezvous ? std::max(m.sent, m.posted) : m.sent;
        t = std::max(t, start + net_.transfer[x]) + net_.receive_after[x];
        return true;
    }

    void arrive(int32_t p, int64_t i, double t) {
        const int32_t x = target_[i];
        CollectiveState &c = collective_[x];
        const bool root = root_[x] == p;
        if (root)
            c.root = t;
        if (net_.collective_rule[x] == TO_ROOT_PAID)
            t += root ? net_.collective_cost[x] : net_.member_cost[x];
        if (net_.collective_rule[x] == LAST_DECIDES &&
            (t > c.latest || (t == c.latest && p > c.last))) {
            c.cost = cost_brought(i);
            c.last = p;
        }
        c.latest = std::max(c.latest, t);
        c.missing--;
        if (c.missing == 0 || (root && net_.collective_rule[x] == FROM_ROOT)) {
            int32_t waiting = c.waiting;
            c.waiting = NOBODY;
            while (waiting != NOBODY) {
                int32_t following = next_waiting_[waiting];
                ready_.push_back(waiting);
                waiting = following;
            }
        }
    }

    double cost_brought(int64_t i) const {
        const int64_t *end = net_.uneven_operation + net_.uneven;
        const int64_t *found = std::lower_bound(net_.uneven_operation, end, i);
        if (found == end || *found != i)
            throw std::invalid_argument("an arrival lacks the cost that it brings");
        return net_.uneven_cost[found - net_.uneven_operation];
    }

    bool leave(int32_t p, int32_t x, double &t) {
        CollectiveState &c = collective_[x];
        double cost = net_.collective_cost[x];
        const bool root = root_[x] == p;
        switch (net_.collective_rule[x]) {
        case FROM_ROOT:
            if (root)
                return true;
            if (c.root == UNKNOWN)
                return wait_collective(p, c);
            t = std::max(t, c.root + cost);
            return true;
        case TO_ROOT:
            if (!root)
                return true;
            break;
        case TO_ROOT_PAID:
            if (!root) {
                t += net_.member_cost[x];
                return true;
            }
            cost = 0; // which the arrivals hold
            break;
        case LAST_DECIDES: cost = c.cost; break;
        default: break;
        }
        if (c.missing > 0)
            return wait_collective(p, c);
        t = std::max(t, c.latest + cost);
        return true;
    }

    // Runs process p through its steps of a collective; false when it has to wait.
    bool carry_out(int32_t p, int32_t c, double &t, bool begun) {
        Turn &turn = turn_[p];
        if (!begun) {
            turn = Turn{rank_of(p, c), 0, Phase::POST};
            if (!flights_[c])
                flights_[c] = open_flights();
        }
        Step next;
        const int64_t *bound = carried_.parts + carried_.algorithm[c];
        const Piece *parts = carried_.part.data() + bound[0];
        const Piece *end = carried_.part.data() + bound[1];
        while (find_step(parts, end, members_[c], carried_.root[c], turn.rank, turn.step, next)) {
            if (!exchange(p, c, turn, next, *flights_[c], t))
                return false;
            turn.step++;
            turn.phase = Phase::POST;
        }
        if (--collective_[c].missing == 0) {
            if (flights_[c]->empty())
                spare_.push_back(std::move(flights_[c]));
            flights_[c].reset();
        }
        return true;
    }

    using Underway = Flights<Flight>;

    // One step: post, send, wait for the message; each as the operation of that name does.
    bool exchange(int32_t p, int32_t c, Turn &turn, const Step &x, Underway &flights, double &t) {
        const bool sends = x.to >= 0, receives = x.source >= 0;
        const int64_t out = sends ? x.out + carried_.distance(p, c, x.to) : 0;
        const int64_t in = receives ? x.in + carried_.distance(p, c, x.source) : 0;
        if (x.posts >= 0)
            post(flights.at(turn.rank, x.posts), t);
        if (turn.phase == Phase::POST && receives) {
            if (!sends)
                t += net_.receive_before[in];
            if (!x.posted)
                post(flights.at(turn.rank, turn.step), t);
        }
        if (turn.phase <= Phase::SENDING && sends) {
            Flight &flight = flights.at(x.to, x.arrives_in);
            if (!send(p, flight, out, t, turn.phase == Phase::SENDING, true)) {
                turn.phase = Phase::SENDING;
                return false;
            }
            if (++flight.through == 2)
                flights.erase(x.to, x.arrives_in);
        }
        if (!receives)
            return true;
        if (turn.phase < Phase::WAIT && sends)
            t += net_.receive_before[in];
        turn.phase = Phase::WAIT;
        Flight &flight = flights.at(turn.rank, turn.step);
        if (!receive(p, flight, in, t))
            return false;
        if (++flight.through == 2)
            flights.erase(turn.rank, turn.step);
        return true;
    }

    int32_t rank_of(int32_t p, int32_t c) const {
        const int32_t *begin = carried_.process + carried_.offsets[carried_.group[c]];
        const int32_t *found = std::lower_bound(begin, begin + members_[c], p);
        if (found == begin + members_[c] || *found != p)
            throw std::invalid_argument("a process takes part in a collective of others");
        const int32_t rank = carried_.rank[found - carried_.process];
        if (rank < 0 || rank >= members_[c])
            throw std::invalid_argument("a rank is not in its group");
        return rank;
    }

    std::unique_ptr<Underway> open_flights() {
        if (spare_.empty())
            return std::make_unique<Underway>();
        std::unique_ptr<Underway> empty = std::move(spare_.back());
        spare_.pop_back();
        return empty;
    }

    bool wait_collective(int32_t p, CollectiveState &c) {
        next_waiting_[p] = c.waiting;
        c.waiting = p;
        return false;
    }

    void wake(int32_t &process) {
        if (process != NOBODY) {
            ready_.push_back(process);
            process = NOBODY;
        }
    }

    const size_t processes_;
    const int64_t *offsets_;
    const uint8_t *kind_;
    const int32_t *target_;
    const Bursts burst_;
    const double *tail_;
    const int32_t *members_;
    const int32_t *root_;
    const Network net_;
    const Carried carried_;
    Spent &spent_;
    std::vector<double> started_; // when each process began the operation that it is in
    std::vector<MessageState> message_;
    std::vector<CollectiveState> collective_;
    std::vector<std::unique_ptr<Underway>> flights_; // of collectives that some members are in
    std::vector<std::unique_ptr<Underway>> spare_;
    std::vector<double> clock_;
    std::vector<int64_t> next_;
    std::vector<uint8_t> begun_;
    std::vector<int32_t> next_waiting_;
    std::vector<Turn> turn_;
    std::vector<int32_t> ready_;
};

} // namespace popmodel
