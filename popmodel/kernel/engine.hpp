// Carries a program out on a network without shared resources: a longest path, computed by running
// each process until it blocks and waking it when what it waits for has happened. The result does
// not depend on the order in which processes run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "scratch.hpp"

#include "algorithms.hpp"
#include "bursts.hpp"
#include "flights.hpp"
#include "operations.hpp"
#include "times.hpp"

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

constexpr int32_t NOBODY = -1;
constexpr uint8_t DETACHED = 2; // of a class's `rendezvous`: the sender does not wait for it

// What messages of one class cost.
template <typename Time> struct MessageCost {
    Duration<Time> transfer;       // latency and size / bandwidth, ns
    Duration<Time> send_overhead;  // ns, before the message leaves
    Duration<Time> receive_before; // ns, before a receive is posted or waited for
    Duration<Time> receive_after;  // ns, of a message that has arrived
    bool rendezvous;               // does the transfer wait for the receive?
    bool detached;                 // does the sender go on meanwhile?

    bool holds_sender() const { return rendezvous && !detached; }
};

// What collectives of one class cost.
template <typename Time> struct CollectiveCost {
    Duration<Time> cost;    // ns, of those who wait
    Duration<Time> member;  // ns, of members that do not wait
    Duration<Time> request; // ns, of a nonblocking call, and of its wait
    Rule rule;
};

template <typename Time> struct Network {
    popmodel::LongVector<Duration<Time>> cpu; // per process: multiplies its bursts
    popmodel::LongVector<MessageCost<Time>> message;
    popmodel::LongVector<CollectiveCost<Time>> collective;
    popmodel::LongVector<Duration<Time>> uneven; // ns, that arrivals bring
    bool sender_waits_for_transfer; // a rendezvous sender ends with the transfer, or when posted
};

// What is carried out; the columns belong to others.
struct Program {
    size_t processes, messages, collectives;
    const int64_t *offsets;
    const uint8_t *kind;
    const int32_t *target;
    Bursts burst;
    const double *tail;
    const int32_t *message_class;    // per message: row of the network's
    const int32_t *collective_class; // per collective: row of the network's
    const int32_t *members;
    const int32_t *root;
    size_t uneven; // arrivals that bring a cost
    const int64_t *uneven_operation; // ascending
};

// Of collectives that are carried out as messages.
struct Carried {
    const int32_t *algorithm;      // per collective
    const int64_t *parts;          // per algorithm: bounds of the next
    const Piece *part;
    const int32_t *root;           // per collective: rank of the root
    const int32_t *group;          // per collective
    const int64_t *offsets;        // per group, of the next two
    const int32_t *process;        // members of a group, ascending
    const int32_t *rank;           // rank of each of these members
    const int32_t *member;         // the members of a group by rank
    const int32_t *node;           // of each process; null where no distance matters
    int64_t far;                   // rows from the charge of a message inside a node to one between

    // Step `step` of process p, which is rank `at` of `members`, in a collective, with the rows of
    // its charges; false after the last.
    bool find(int32_t p, int32_t c, int32_t members, int32_t at, int32_t step, Step &x) const {
        const int64_t *bound = parts + algorithm[c];
        if (!find_step(part + bound[0], part + bound[1], members, root[c], at, step, x))
            return false;
        if (x.to >= 0)
            x.out += distance(p, c, x.to);
        if (x.source >= 0)
            x.in += distance(p, c, x.source);
        return true;
    }

    // What a message between process p and a rank of a collective adds to the row of its charge.
    int64_t distance(int32_t p, int32_t c, int32_t with) const {
        return node && node[p] != node[member[offsets[group[c]] + with]] ? far : 0;
    }

    int32_t rank_of(int32_t p, int32_t c, int32_t members) const {
        const int32_t *begin = process + offsets[group[c]];
        const int32_t *found = std::lower_bound(begin, begin + members, p);
        if (found == begin + members || *found != p)
            throw std::invalid_argument("a process takes part in a collective of others");
        const int32_t at = rank[found - process];
        if (at < 0 || at >= members)
            throw std::invalid_argument("a rank is not in its group");
        return at;
    }
};

template <typename Time> struct MessageState {
    Time sent = unknown(Time{});   // when the sender was ready
    Time posted = unknown(Time{}); // when the receive was posted
    int32_t receiver = NOBODY;     // process waiting for the arrival
    int32_t sender = NOBODY;       // process waiting for the receive to be posted
    bool half = false;             // one side of a rendezvous needs it no more
};

// States of the messages that are under way, each in a place that later ones use again: a replay
// works on few places, which stay in a cache, however many messages there are.
template <typename Time> class UnderWay {
  public:
    explicit UnderWay(size_t messages) : place_(messages, NOWHERE) {}

    // Valid until the next call.
    MessageState<Time> &operator[](int32_t m) {
        if (place_[m] == NOWHERE) {
            if (free_.empty()) {
                place_[m] = int32_t(state_.size());
                state_.emplace_back();
            } else {
                place_[m] = free_.back();
                free_.pop_back();
                state_[place_[m]] = {};
            }
        }
        return state_[place_[m]];
    }

    // One side needs the message no more; `both` sides do. A sender that never waits for it keeps
    // its place to the end.
    void through(int32_t m, bool both) {
        if (both && !state_[place_[m]].half) {
            state_[place_[m]].half = true;
            return;
        }
        free_.push_back(place_[m]);
        place_[m] = NOWHERE;
    }

  private:
    static constexpr int32_t NOWHERE = -1;
    popmodel::LongVector<int32_t> place_; // by message
    popmodel::LongVector<MessageState<Time>> state_;
    popmodel::LongVector<int32_t> free_;
};

// Who was last to arrive on each network; of several at once the last process.
template <typename Time> struct Last {
    int32_t process = NOBODY;

    void arrives(int32_t p, const Time &t, Time &latest, Duration<Time> &cost,
                 const Duration<Time> &brought) {
        if (time_of(t) > time_of(latest) || (time_of(t) == time_of(latest) && p > process)) {
            process = p;
            latest = t;
            cost = brought;
        }
    }
};

template <size_t N> struct Last<Lanes<N>> {
    Last() { std::fill_n(process, N, NOBODY); }
    int32_t process[N];

    bool decides(size_t k, int32_t p, const Lanes<N> &t, const Lanes<N> &latest) {
        if (t.v[k] < latest.v[k] || (t.v[k] == latest.v[k] && p <= process[k]))
            return false;
        process[k] = p;
        return true;
    }

    void arrives(int32_t p, const Lanes<N> &t, Lanes<N> &latest, Lanes<N> &cost,
                 const Lanes<N> &brought) {
        for (size_t k = 0; k < N; k++)
            if (decides(k, p, t, latest)) {
                latest.v[k] = t.v[k];
                cost.v[k] = brought.v[k];
            }
    }
};

template <size_t N> struct Last<Slopes<N>> : Last<Lanes<N>> {
    void arrives(int32_t p, const Slopes<N> &t, Slopes<N> &latest, Slopes<N> &cost,
                 const Slopes<N> &brought) {
        for (size_t k = 0; k < N; k++)
            if (this->decides(k, p, t.t, latest.t)) {
                latest.t.v[k] = t.t.v[k];
                latest.dt.v[k] = t.dt.v[k];
                cost.t.v[k] = brought.t.v[k];
                cost.dt.v[k] = brought.dt.v[k];
            }
    }
};

template <typename Time> struct CollectiveState {
    Time latest = unknown(Time{}); // latest arrival so far
    Time root = unknown(Time{});   // arrival of the root
    Duration<Time> cost{};         // brought by the last to arrive
    Last<Time> last;
    int32_t missing = 0;      // members still to arrive
    int32_t waiting = NOBODY; // head of the list of waiting processes
};

// Time in the calls of each place and name, which is summed up as calls are a multitude.
struct Spent {
    const int32_t *call;  // of each operation
    const int16_t *name;  // of each call
    const int32_t *place; // of each call; null if there is one for all
    size_t names;
    popmodel::LongVector<double> time; // ns, by place and name; empty if nobody asks

    void add(int64_t operation, double t) {
        const int32_t c = call[operation];
        time[(place ? size_t(place[c]) * names : 0) + size_t(name[c])] += t;
    }
};

// When each operation begins and ends.
struct Moments {
    double *begin, *end; // ns, by operation; begin is after the computing before it
};

// A message of a collective: gone when both its ends are through with it.
template <typename Time> struct Flight : MessageState<Time> {
    int8_t through = 0;
};

enum class Phase : uint8_t { POST, SENDING, WAIT };

// Where a process is in a collective that is carried out as messages.
struct Turn {
    int32_t rank = 0;
    int32_t step = 0;
    Phase phase = Phase::POST;
};

// What is asked for beside the ends.
struct Nothing {};

template <typename Time, typename Asked = Nothing> class Engine {
  public:
    Engine(const Program &program, const Network<Time> &network, const Carried &carried,
           Asked asked = {})
        : program_(program), net_(network), carried_(carried), asked_(asked),
          started_(WATCHED ? program.processes : 0), under_way_(program.messages),
          collective_(program.collectives), flights_(program.collectives),
          clock_(program.processes, Time{}),
          next_(program.offsets, program.offsets + program.processes),
          begun_(program.processes, 0), next_waiting_(program.processes, NOBODY),
          turn_(program.processes) {
        for (size_t c = 0; c < program.collectives; c++)
            collective_[c].missing = program.members[c];
        if constexpr (TRACED)
            for (size_t p = 0; p < program.processes; p++) {
                trail_.push_back({program.offsets[p] - 1, -1, int32_t(p), 0, Join::START, false});
                clock_[p].entry = int32_t(p);
            }
    }

    void run() {
        ready_.reserve(program_.processes);
        for (size_t p = program_.processes; p-- > 0;)
            ready_.push_back(int32_t(p));
        while (!ready_.empty()) {
            int32_t p = ready_.back();
            ready_.pop_back();
            advance(p);
        }
    }

    popmodel::LongVector<Time> &clock() { return clock_; }
    popmodel::LongVector<int64_t> &next() { return next_; }
    Trail &trail() { return trail_; }
    const Program &program() const { return program_; }

  private:
    static constexpr bool WATCHED = !std::is_same_v<Asked, Nothing>;
    static constexpr bool TRACED = std::is_same_v<Time, Traced>;

    // Where a process is.
    struct At {
        int32_t process;
        int64_t operation;
        int32_t step = 0; // of a collective carried out as messages
    };

    // Runs process p until it blocks or ends.
    void advance(int32_t p) {
        Time t = clock_[p];
        At at{p, next_[p]};
        int64_t &i = at.operation;
        const int64_t end = program_.offsets[p + 1];
        const Duration<Time> cpu = net_.cpu[p];
        bool begun = begun_[p];
        for (; i < end; i++, begun = false) {
            if (!begun) {
                t += program_.burst[i] * cpu;
                if constexpr (WATCHED)
                    begins(at, t);
            }
            if (!step(at, t, begun)) {
                clock_[p] = t;
                next_[p] = i;
                begun_[p] = 1;
                return;
            }
            if constexpr (WATCHED)
                ends(at, t);
        }
        clock_[p] = t + program_.tail[p] * cpu;
        next_[p] = i;
    }

    void begins(const At &at, double t) {
        if constexpr (std::is_same_v<Asked, Moments>)
            asked_.begin[at.operation] = t;
        else
            started_[at.process] = t;
    }

    void ends(const At &at, double t) {
        if constexpr (std::is_same_v<Asked, Moments>)
            asked_.end[at.operation] = t;
        else
            asked_->add(at.operation, t - started_[at.process]);
    }

    // Carries out an operation; false when the process has to wait.
    bool step(At &at, Time &t, bool begun) {
        const Op op = Op(program_.kind[at.operation]);
        const int32_t x = program_.target[at.operation];
        switch (op) {
        case SEND:
        case ISEND: {
            const Cost &cost = cost_of(x);
            if (!send(at, under_way_[x], cost, t, begun, op == SEND))
                return false;
            if (op == SEND && cost.holds_sender())
                under_way_.through(x, true);
            return true;
        }
        case RECEIVE:
            if (!begun) {
                t += cost_of(x).receive_before;
                if (cost_of(x).rendezvous)
                    post(under_way_[x], t);
            }
            return receive(at, x, t);
        case POST:
            if (cost_of(x).rendezvous) // nobody waits for the receive of an eager message
                post(under_way_[x], t);
            return true;
        case WAIT_RECEIVE:
            if (!begun)
                t += cost_of(x).receive_before;
            return receive(at, x, t);
        case WAIT_SEND: return wait_send(at, x, t);
        case COLLECTIVE:
            if (of_collective(x).rule == MESSAGES)
                return carry_out(at, x, t, begun);
            if (!begun)
                arrive(at, x, t);
            return leave(at, x, t);
        case ARRIVE:
            t += of_collective(x).request;
            if (of_collective(x).rule != MESSAGES)
                arrive(at, x, t);
            return true;
        case WAIT_COLLECTIVE:
            if (!begun)
                t += of_collective(x).request;
            return of_collective(x).rule == MESSAGES ? carry_out(at, x, t, begun)
                                                     : leave(at, x, t);
        }
        return true;
    }

    const MessageCost<Time> &cost_of(int32_t m) const {
        return net_.message[program_.message_class[m]];
    }
    const CollectiveCost<Time> &of_collective(int32_t c) const {
        return net_.collective[program_.collective_class[c]];
    }

    // A process goes on at its own time or at one that another decided, whichever is later.
    void meet(const At &at, Time &t, const Time &other, Join join, bool posted = false) {
        if constexpr (TRACED) {
            const double exact = later(t.t, other.t);
            if (!after(other, t)) {
                t.t = exact;
                return;
            }
            if (trail_.size() >= size_t(std::numeric_limits<int32_t>::max()))
                throw std::length_error("the critical path has too many candidates");
            trail_.push_back({at.operation, other.entry, at.process, at.step, join, posted});
            t = {exact, other.dt, int32_t(trail_.size() - 1)};
        } else {
            t = later(t, other);
        }
    }

    // Whether the post decides when the transfer starts; only a trail needs to know.
    static bool post_decides(const MessageState<Time> &m) {
        if constexpr (TRACED)
            return after(m.posted, m.sent);
        return false;
    }

    using Message = MessageState<Time>;
    using Cost = MessageCost<Time>;

    bool send(const At &at, Message &m, const Cost &cost, Time &t, bool begun, bool blocking) {
        if (!begun) {
            t += cost.send_overhead;
            m.sent = t;
            wake(m.receiver);
        }
        return !blocking || !cost.holds_sender() || wait_posted(at, m, cost, t);
    }

    bool wait_send(const At &at, int32_t x, Time &t) {
        const Cost &cost = cost_of(x);
        if (!cost.holds_sender() || !net_.sender_waits_for_transfer)
            return true;
        if (!wait_posted(at, under_way_[x], cost, t))
            return false;
        under_way_.through(x, true);
        return true;
    }

    bool receive(const At &at, int32_t x, Time &t) {
        const Cost &cost = cost_of(x);
        if (!receive(at, under_way_[x], cost, t))
            return false;
        under_way_.through(x, cost.holds_sender());
        return true;
    }

    bool wait_posted(const At &at, Message &m, const Cost &cost, Time &t) {
        if (!known(m.posted) || !known(m.sent)) {
            m.sender = at.process;
            return false;
        }
        Time start = later(m.sent, m.posted);
        if (net_.sender_waits_for_transfer)
            start += cost.transfer;
        meet(at, t, start, Join::SENT, post_decides(m));
        return true;
    }

    void post(Message &m, const Time &t) {
        m.posted = t;
        wake(m.receiver);
        wake(m.sender);
    }

    bool receive(const At &at, Message &m, const Cost &cost, Time &t) {
        if (!known(m.sent) || (cost.rendezvous && !known(m.posted))) {
            m.receiver = at.process;
            return false;
        }
        const Time start = cost.rendezvous ? later(m.sent, m.posted) : m.sent;
        meet(at, t, start + cost.transfer, Join::RECEIVED, cost.rendezvous && post_decides(m));
        t += cost.receive_after;
        return true;
    }

    void arrive(const At &at, int32_t x, Time t) {
        CollectiveState<Time> &c = collective_[x];
        const CollectiveCost<Time> &cost = of_collective(x);
        const bool root = program_.root[x] == at.process;
        if (root)
            c.root = t;
        if (cost.rule == TO_ROOT_PAID)
            t += root ? cost.cost : cost.member;
        if (cost.rule == LAST_DECIDES)
            c.last.arrives(at.process, t, c.latest, c.cost, cost_brought(at.operation));
        else
            c.latest = later(c.latest, t);
        c.missing--;
        if (c.missing == 0 || (root && cost.rule == FROM_ROOT)) {
            int32_t waiting = c.waiting;
            c.waiting = NOBODY;
            while (waiting != NOBODY) {
                int32_t following = next_waiting_[waiting];
                ready_.push_back(waiting);
                waiting = following;
            }
        }
    }

    const Duration<Time> &cost_brought(int64_t i) const {
        const int64_t *end = program_.uneven_operation + program_.uneven;
        const int64_t *found = std::lower_bound(program_.uneven_operation, end, i);
        if (found == end || *found != i)
            throw std::invalid_argument("an arrival lacks the cost that it brings");
        return net_.uneven[found - program_.uneven_operation];
    }

    bool leave(const At &at, int32_t x, Time &t) {
        CollectiveState<Time> &c = collective_[x];
        const CollectiveCost<Time> &charge = of_collective(x);
        Duration<Time> cost = charge.cost;
        const bool root = program_.root[x] == at.process;
        switch (charge.rule) {
        case FROM_ROOT:
            if (root)
                return true;
            if (!known(c.root))
                return wait_collective(at.process, c);
            meet(at, t, c.root + cost, Join::COLLECTIVE);
            return true;
        case TO_ROOT:
            if (!root)
                return true;
            break;
        case TO_ROOT_PAID:
            if (!root) {
                t += charge.member;
                return true;
            }
            cost = {}; // which the arrivals hold
            break;
        case LAST_DECIDES: cost = c.cost; break;
        default: break;
        }
        if (c.missing > 0)
            return wait_collective(at.process, c);
        meet(at, t, c.latest + cost, Join::COLLECTIVE);
        return true;
    }

    // Runs a process through its steps of a collective; false when it has to wait.
    bool carry_out(At &at, int32_t c, Time &t, bool begun) {
        Turn &turn = turn_[at.process];
        if (!begun) {
            turn = Turn{carried_.rank_of(at.process, c, program_.members[c]), 0, Phase::POST};
            if (!flights_[c])
                flights_[c] = open_flights();
        }
        Step next;
        while (carried_.find(at.process, c, program_.members[c], turn.rank, turn.step, next)) {
            at.step = turn.step;
            if (!exchange(at, turn, next, *flights_[c], t))
                return false;
            turn.step++;
            turn.phase = Phase::POST;
        }
        at.step = 0;
        if (--collective_[c].missing == 0) {
            if (flights_[c]->empty())
                spare_.push_back(std::move(flights_[c]));
            flights_[c].reset();
        }
        return true;
    }

    using Underway = Flights<Flight<Time>>;

    // One step: post, send, wait for the message; each as the operation of that name does.
    bool exchange(const At &at, Turn &turn, const Step &x, Underway &flights, Time &t) {
        const bool sends = x.to >= 0, receives = x.source >= 0;
        const Cost &out = net_.message[x.out];
        const Cost &in = net_.message[x.in];
        if (x.posts >= 0)
            post(flights.at(turn.rank, x.posts), t);
        if (turn.phase == Phase::POST && receives) {
            if (!sends)
                t += in.receive_before;
            if (!x.posted)
                post(flights.at(turn.rank, turn.step), t);
        }
        if (turn.phase <= Phase::SENDING && sends) {
            Flight<Time> &flight = flights.at(x.to, x.arrives_in);
            if (!send(at, flight, out, t, turn.phase == Phase::SENDING, true)) {
                turn.phase = Phase::SENDING;
                return false;
            }
            if (++flight.through == 2)
                flights.erase(x.to, x.arrives_in);
        }
        if (!receives)
            return true;
        if (turn.phase < Phase::WAIT && sends)
            t += in.receive_before;
        turn.phase = Phase::WAIT;
        Flight<Time> &flight = flights.at(turn.rank, turn.step);
        if (!receive(at, flight, in, t))
            return false;
        if (++flight.through == 2)
            flights.erase(turn.rank, turn.step);
        return true;
    }

    std::unique_ptr<Underway> open_flights() {
        if (spare_.empty())
            return std::make_unique<Underway>();
        std::unique_ptr<Underway> empty = std::move(spare_.back());
        spare_.pop_back();
        return empty;
    }

    bool wait_collective(int32_t p, CollectiveState<Time> &c) {
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

    const Program program_;
    const Network<Time> &net_;
    const Carried carried_;
    Asked asked_;
    popmodel::LongVector<double> started_; // when each process began the operation that it is in
    UnderWay<Time> under_way_;
    popmodel::LongVector<CollectiveState<Time>> collective_;
    popmodel::LongVector<std::unique_ptr<Underway>> flights_; // of collectives that some members are in
    popmodel::LongVector<std::unique_ptr<Underway>> spare_;
    popmodel::LongVector<Time> clock_;
    popmodel::LongVector<int64_t> next_;
    popmodel::LongVector<uint8_t> begun_;
    popmodel::LongVector<int32_t> next_waiting_;
    popmodel::LongVector<Turn> turn_;
    popmodel::LongVector<int32_t> ready_;
    Trail trail_;
};

} // namespace popmodel
