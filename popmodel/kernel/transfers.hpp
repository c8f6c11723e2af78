// Messages that are on their way over shared resources, and what happens to them in order of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "scratch.hpp"

namespace popmodel::contended {

// A message between two processes that is ready to go. Times in ns.
struct Transfer {
    int32_t sender, receiver; // processes
    uint32_t turn;            // how many messages its sender sent before
    double ready;             // when it could go
    double time;              // from its start to its arrival, alone
    double busy;              // of that, for how long it holds what it needs, alone
    double bytes;
    int32_t message;    // row of the program's messages, or -1: one of a collective
    int32_t collective; // which is that
    int32_t rank, step; // of its receiver
};

// Transfers by number; numbers are used again.
class Transfers {
  public:
    int32_t add(const Transfer &transfer) {
        if (spare_.empty()) {
            held_.push_back(transfer);
            return int32_t(held_.size() - 1);
        }
        const int32_t x = spare_.back();
        spare_.pop_back();
        held_[size_t(x)] = transfer;
        return x;
    }

    void remove(int32_t x) { spare_.push_back(x); }
    const Transfer &operator[](int32_t x) const { return held_[size_t(x)]; }
    size_t size() const { return held_.size(); }

  private:
    popmodel::LongVector<Transfer> held_;
    popmodel::LongVector<int32_t> spare_;
};

struct Arrival {
    int32_t transfer;
    double time; // ns
};

struct Event {
    double time;     // ns
    uint64_t order;  // of events at the same time
    int32_t transfer;
    uint32_t version; // an event is void if its transfer has a later one

    bool ends() const { return !(order >> 63); }
    bool operator>(const Event &other) const {
        return time != other.time ? time > other.time : order > other.order;
    }
};

// Events in order of time. At the same time transfers end before others begin; these do so in the
// order of their senders' numbers and of what a sender sent, so that the order in which processes
// are looked at does not matter.
class Agenda {
  public:
    void begin(double time, int32_t x, const Transfer &transfer) {
        const uint64_t sender = uint64_t(uint32_t(transfer.sender)) << 32;
        events_.push({time, uint64_t(1) << 63 | sender | transfer.turn, x, 0});
    }
    void end(double time, int32_t x, uint32_t version = 0) {
        events_.push({time, ends_++, x, version});
    }
    bool empty() const { return events_.empty(); }
    const Event &next() const { return events_.top(); }
    Event take() {
        const Event event = events_.top();
        events_.pop();
        return event;
    }

  private:
    std::priority_queue<Event, popmodel::LongVector<Event>, std::greater<>> events_;
    uint64_t ends_ = 0;
};

} // namespace popmodel::contended
