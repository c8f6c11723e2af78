// Carries a program out on a network whose links messages share, in order of time.
//
// A process runs ahead until it waits for somebody: whatever it does on the way happens no earlier
// than now, so only what messages do on shared links has to be looked at in order of time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "scratch.hpp"

#include "algorithms.hpp"
#include "bursts.hpp"
#include "engine.hpp"
#include "flights.hpp"
#include "operations.hpp"
#include "transfers.hpp"

namespace popmodel::contended {

constexpr double NEVER = -1.0; // times are never negative

// What is carried out, and between whom its messages go; columns of others.
struct Plan : Program {
    const int32_t *sender, *receiver; // per message
};

// What it costs; times in ns.
struct Prices {
    const double *cpu;           // per process: multiplies its bursts
    const double *transfer;      // per class
    const double *busy;          // per class: of that, while links are held
    const double *bytes;         // per class
    const uint8_t *rendezvous;   // per class: does the transfer wait for the receive?
    const double *send_overhead; // per class, before the message leaves
    const double *receive_before; // per class, before a receive is posted or waited for
    const double *receive_after;  // per class, of a message that has arrived
    bool sender_waits_for_transfer;
    const double *collective_cost, *member_cost; // per class of collectives
    const uint8_t *collective_rule;
    const double *request_cost;
    const double *uneven_cost; // that arrivals bring
};

// When operations begin (after the computing before them) and end, ns; null if nobody asks.
struct Times {
    double *begin, *end;
};

struct Message {
    double sent = NEVER, posted = NEVER, arrived = NEVER;
    int32_t receiver = NOBODY, sender = NOBODY; // processes that wait for it
    uint32_t turn = 0; // how many messages its sender sent before
    bool started = false;
};

// Which message, and between whom.
struct Which {
    int32_t sender, receiver; // processes
    int64_t charge;
    int32_t message;    // row, or -1: one of a collective
    int32_t collective; // which is that
    int32_t rank, step; // of its receiver
};

// A message of a collective: gone when both its ends are through with it.
struct InFlight : Message {
    Which which{}; // once it is sent
    int8_t through = 0;
};

struct Gathering {
    double latest = 0, root = NEVER; // arrivals: the latest so far, that of the root
    double cost = 0;                 // brought by the last to arrive
    int32_t last = NOBODY;           // who that is; of several at once the last process
    int32_t missing = 0;
    int32_t waiting = NOBODY; // head of the list of waiting processes
};

template <typename Links> class Engine {
  public:
    template <typename... Arguments>
    Engine(const Plan &plan, const Prices &prices, const Carried &carried, const Times &times,
           Arguments &&...links)
        : plan_(plan), prices_(prices), carried_(carried), times_(times),
          links_(std::forward<Arguments>(links)..., transfers_), message_(plan.messages),
          gathering_(plan.collectives), flights_(plan.collectives), clock_(plan.processes, 0.0),
          next_(plan.offsets, plan.offsets + plan.processes), begun_(plan.processes, 0),
          turns_(plan.processes, 0), next_waiting_(plan.processes, NOBODY),
          turn_(plan.processes) {
        for (size_t c = 0; c < plan.collectives; c++)
            gathering_[c].missing = plan.members[c];
    }

    void run() {
        for (size_t p = plan_.processes; p-- > 0;)
            ready_.push_back(int32_t(p));
        do {
            while (!ready_.empty()) {
                const int32_t p = ready_.back();
                ready_.pop_back();
                advance(p);
            }
        } while (go_on());
    }

    popmodel::LongVector<double> &clock() { return clock_; }
    popmodel::LongVector<int64_t> &next() { return next_; }

  private:
    using Underway = Flights<InFlight>;

    // The next event on the links.
    bool go_on() {
        arrivals_.clear();
        if (!links_.next(arrivals_))
            return false;
        for (const Arrival &arrival : arrivals_) {
            const Transfer &transfer = transfers_[arrival.transfer];
            arrive(transfer.message >= 0
                       ? message_[size_t(transfer.message)]
                       : flights_[size_t(transfer.collective)]->at(transfer.rank, transfer.step),
                   arrival.time);
        }
        for (int32_t x : links_.over())
            transfers_.remove(x);
        links_.over().clear();
        return true;
    }

    // Runs process p until it blocks or ends.
    void advance(int32_t p) {
        double t = clock_[size_t(p)];
        int64_t i = next_[size_t(p)];
        const int64_t end = plan_.offsets[p + 1];
        const double cpu = prices_.cpu[p];
        bool begun = begun_[size_t(p)];
        for (; i < end; i++, begun = false) {
            if (!begun) {
                t += plan_.burst[i] * cpu;
                if (times_.begin)
                    times_.begin[i] = t;
            }
            if (!step(p, i, t, begun)) {
                clock_[size_t(p)] = t;
                next_[size_t(p)] = i;
                begun_[size_t(p)] = 1;
                return;
            }
            if (times_.end)
                times_.end[i] = t;
        }
        clock_[size_t(p)] = t + plan_.tail[p] * cpu;
        next_[size_t(p)] = i;
    }

    // Carries out operation i; false when the process has to wait.
    bool step(int32_t p, int64_t i, double &t, bool begun) {
        const Op op = Op(plan_.kind[i]);
        const int32_t x = plan_.target[i];
        if (op >= COLLECTIVE)
            return collective(p, i, op, t, begun);
        const int32_t charge = plan_.message_class[x];
        const Which which{plan_.sender[x], plan_.receiver[x], charge, x, -1, 0, 0};
        Message &m = message_[size_t(x)];
        if (!begun && (op == RECEIVE || op == WAIT_RECEIVE))
            t += prices_.receive_before[charge];
        switch (op) {
        case SEND:
        case ISEND: return send(p, m, which, t, begun, op == SEND);
        case RECEIVE:
            if (!begun)
                post(m, which, t);
            return receive(p, m, charge, t);
        case POST: post(m, which, t); return true;
        case WAIT_RECEIVE: return receive(p, m, charge, t);
        default:
            return !holds_sender(charge) || !prices_.sender_waits_for_transfer ||
                   wait_for_receiver(p, m, t);
        }
    }

    bool collective(int32_t p, int64_t i, Op op, double &t, bool begun) {
        const int32_t c = plan_.target[i], charge = plan_.collective_class[c];
        const bool as_messages = prices_.collective_rule[charge] == MESSAGES;
        if (!begun && op != COLLECTIVE)
            t += prices_.request_cost[charge];
        if (!begun && op != WAIT_COLLECTIVE && !as_messages)
            join(p, i, t);
        if (op == ARRIVE)
            return true;
        return as_messages ? carry_out(p, c, t, begun) : leave(p, c, t);
    }

    // Messages.

    bool send(int32_t p, Message &m, const Which &which, double &t, bool begun, bool blocking) {
        if (!begun) {
            t += prices_.send_overhead[which.charge];
            m.sent = t;
            m.turn = turns_[size_t(p)]++;
            start(m, which);
        }
        return !blocking || !holds_sender(which.charge) || wait_for_receiver(p, m, t);
    }

    bool holds_sender(int64_t charge) const {
        return prices_.rendezvous[charge] && prices_.rendezvous[charge] != DETACHED;
    }

    void post(Message &m, const Which &which, double t) {
        m.posted = t;
        start(m, which);
        if (!prices_.sender_waits_for_transfer)
            wake(m.sender);
    }

    // Lets a message go if it can.
    void start(Message &m, const Which &which) {
        if (m.started || m.sent == NEVER)
            return;
        const bool rendezvous = prices_.rendezvous[which.charge];
        if (rendezvous && m.posted == NEVER)
            return;
        m.started = true;
        const double ready = rendezvous ? std::max(m.sent, m.posted) : m.sent;
        const double time = prices_.transfer[which.charge];
        if (!links_.shared(which.sender, which.receiver))
            return arrive(m, ready + time);
        links_.add(transfers_.add({which.sender, which.receiver, m.turn, ready, time,
                                   prices_.busy[which.charge], prices_.bytes[which.charge],
                                   which.message, which.collective, which.rank, which.step}));
    }

    void arrive(Message &m, double time) {
        m.arrived = time;
        wake(m.receiver);
        wake(m.sender);
    }

    bool wait_for_receiver(int32_t p, Message &m, double &t) {
        const bool transfer = prices_.sender_waits_for_transfer;
        if (transfer ? m.arrived == NEVER : m.posted == NEVER || m.sent == NEVER) {
            m.sender = p;
            return false;
        }
        t = std::max(t, transfer ? m.arrived : std::max(m.sent, m.posted));
        return true;
    }

    bool receive(int32_t p, Message &m, int64_t charge, double &t) {
        if (m.arrived == NEVER) {
            m.receiver = p;
            return false;
        }
        t = std::max(t, m.arrived) + prices_.receive_after[charge];
        return true;
    }

    // Collectives that cost what their members say.

    void join(int32_t p, int64_t i, double t) {
        const int32_t c = plan_.target[i], charge = plan_.collective_class[c];
        Gathering &here = gathering_[size_t(c)];
        const uint8_t rule = prices_.collective_rule[charge];
        const bool root = plan_.root[c] == p;
        if (root)
            here.root = t;
        if (rule == TO_ROOT_PAID)
            t += root ? prices_.collective_cost[charge] : prices_.member_cost[charge];
        if (rule == LAST_DECIDES && (t > here.latest || (t == here.latest && p > here.last))) {
            here.cost = cost_brought(i);
            here.last = p;
        }
        here.latest = std::max(here.latest, t);
        if (--here.missing > 0 && !(root && rule == FROM_ROOT))
            return;
        for (int32_t waiting = std::exchange(here.waiting, NOBODY); waiting != NOBODY;
             waiting = next_waiting_[size_t(waiting)])
            ready_.push_back(waiting);
    }

    double cost_brought(int64_t i) const {
        const int64_t *end = plan_.uneven_operation + plan_.uneven;
        const int64_t *found = std::lower_bound(plan_.uneven_operation, end, i);
        if (found == end || *found != i)
            throw std::invalid_argument("an arrival lacks the cost that it brings");
        return prices_.uneven_cost[found - plan_.uneven_operation];
    }

    bool leave(int32_t p, int32_t c, double &t) {
        Gathering &here = gathering_[size_t(c)];
        const int32_t charge = plan_.collective_class[c];
        const uint8_t rule = prices_.collective_rule[charge];
        const bool root = plan_.root[c] == p;
        if (root ? rule == FROM_ROOT : rule == TO_ROOT)
            return true;
        if (rule == TO_ROOT_PAID && !root) {
            t += prices_.member_cost[charge];
            return true;
        }
        if (rule == FROM_ROOT ? here.root == NEVER : here.missing > 0) {
            next_waiting_[size_t(p)] = here.waiting;
            here.waiting = p;
            return false;
        }
        const double cost = rule == TO_ROOT_PAID   ? 0 // which the arrivals hold
                            : rule == LAST_DECIDES ? here.cost
                                                   : prices_.collective_cost[charge];
        t = std::max(t, (rule == FROM_ROOT ? here.root : here.latest) + cost);
        return true;
    }

    // Collectives that are carried out as messages.

    // Runs process p through its steps; false when it has to wait.
    bool carry_out(int32_t p, int32_t c, double &t, bool begun) {
        Turn &turn = turn_[size_t(p)];
        if (!begun) {
            turn = Turn{carried_.rank_of(p, c, plan_.members[c]), 0, Phase::POST};
            if (!flights_[size_t(c)])
                flights_[size_t(c)] = std::make_unique<Underway>();
        }
        Step next;
        while (carried_.find(p, c, plan_.members[c], turn.rank, turn.step, next)) {
            if (!exchange(p, c, turn, next, t))
                return false;
            turn.step++;
            turn.phase = Phase::POST;
        }
        if (--gathering_[size_t(c)].missing == 0)
            flights_[size_t(c)].reset();
        return true;
    }

    // One step: post, send, wait for the message; each as the operation of that name does.
    bool exchange(int32_t p, int32_t c, Turn &turn, const Step &x, double &t) {
        Underway &flights = *flights_[size_t(c)];
        const bool sends = x.to >= 0, receives = x.source >= 0;
        if (x.posts >= 0)
            post_step(flights.at(turn.rank, x.posts), t);
        if (turn.phase == Phase::POST && receives) {
            if (!sends)
                t += prices_.receive_before[x.in];
            if (!x.posted)
                post_step(flights.at(turn.rank, turn.step), t);
        }
        if (turn.phase <= Phase::SENDING && sends) {
            InFlight &flight = flights.at(x.to, x.arrives_in);
            flight.which = {p, process_of(x.to, c), x.out, -1, c, x.to, x.arrives_in};
            if (!send(p, flight, flight.which, t, turn.phase == Phase::SENDING, true)) {
                turn.phase = Phase::SENDING;
                return false;
            }
            let_go(flights, x.to, x.arrives_in);
        }
        if (!receives)
            return true;
        if (turn.phase < Phase::WAIT && sends)
            t += prices_.receive_before[x.in];
        turn.phase = Phase::WAIT;
        if (!receive(p, flights.at(turn.rank, turn.step), x.in, t))
            return false;
        let_go(flights, turn.rank, turn.step);
        return true;
    }

    // Who will send the message is known once it is sent.
    void post_step(InFlight &flight, double t) { post(flight, flight.which, t); }

    static void let_go(Underway &flights, int32_t rank, int32_t step) {
        if (++flights.at(rank, step).through == 2)
            flights.erase(rank, step);
    }

    int32_t process_of(int32_t rank, int32_t c) const {
        return carried_.member[carried_.offsets[carried_.group[c]] + rank];
    }

    void wake(int32_t &process) {
        if (process != NOBODY)
            ready_.push_back(std::exchange(process, NOBODY));
    }

    const Plan plan_;
    const Prices prices_;
    const Carried carried_;
    const Times times_;
    Transfers transfers_;
    Links links_;
    popmodel::LongVector<Message> message_;
    popmodel::LongVector<Gathering> gathering_;
    popmodel::LongVector<std::unique_ptr<Underway>> flights_; // of collectives that some members are in
    popmodel::LongVector<double> clock_;
    popmodel::LongVector<int64_t> next_;
    popmodel::LongVector<uint8_t> begun_;
    popmodel::LongVector<uint32_t> turns_; // messages that each process sent
    popmodel::LongVector<int32_t> next_waiting_;
    popmodel::LongVector<Turn> turn_;
    popmodel::LongVector<int32_t> ready_;
    popmodel::LongVector<Arrival> arrivals_;
};

} // namespace popmodel::contended
