// Replays a program on a network without shared resources: a longest path, computed by running
// each process until it blocks and waking it when what it waits for has happened. The result does
// not depend on the order in which processes run.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "flights.hpp"
#include "numpy.hpp"

namespace nb = nanobind;
using popmodel::Numpy;
using popmodel::numpy;

namespace {

template <typename T> using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Numbers shared with popmodel.simulator.program.Op.
enum Op : uint8_t {
    SEND,
    ISEND,
    RECEIVE,
    POST,
    WAIT_RECEIVE,
    WAIT_SEND,
    COLLECTIVE,
    ARRIVE,
    WAIT_COLLECTIVE
};

// Numbers shared with popmodel.simulator.engine.
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
    const double *receive_after;       // per charge, ns, after the message has arrived
    bool sender_waits_for_transfer;    // a rendezvous sender ends with the transfer, or when posted
};

// Of collectives that are carried out as messages.
struct Carried {
    const uint8_t *kind;           // per collective
    const int64_t *charge;         // per collective: the first of the charges of its message sizes
    const int32_t *root;           // per collective: rank of the root
    const int32_t *group;          // per collective
    const int64_t *offsets;        // per group, of the next two
    const int32_t *process;        // members of a group, ascending
    const int32_t *rank;           // rank of each of these members
};

struct MessageState {
    double sent = UNKNOWN;    // rendezvous: when the sender was ready
    double posted = UNKNOWN;  // when the receive was posted
    double arrival = UNKNOWN; // when the message is with the receiver
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
           const double *burst, const double *tail, size_t messages, size_t collectives,
           const int32_t *members, const int32_t *root, const Network &network,
           const Carried &carried, std::vector<double> &spent)
        : processes_(processes), offsets_(offsets), kind_(kind), target_(target), burst_(burst),
          tail_(tail), members_(members), root_(root), net_(network), carried_(carried),
          spent_(spent), started_(spent.empty() ? 0 : processes), message_(messages),
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
                if (!spent_.empty())
                    started_[p] = t;
            }
            if (!step(p, i, t, begun)) {
                clock_[p] = t;
                next_[p] = i;
                begun_[p] = 1;
                return;
            }
            if (!spent_.empty())
                spent_[i] = t - started_[p];
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
                post(message_[x], x, t);
            }
            return receive(p, message_[x], x, t);
        case POST: post(message_[x], x, t); return true;
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
            if (!net_.rendezvous[x]) {
                m.sent = t;
                deliver(m, t + net_.transfer[x]);
                return true;
            }
            m.sent = t;
            if (m.posted != UNKNOWN)
                deliver(m, std::max(m.sent, m.posted) + net_.transfer[x]);
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

    void deliver(MessageState &m, double arrival) {
        m.arrival = arrival;
        wake(m.receiver);
    }

    void post(MessageState &m, int64_t x, double t) {
        m.posted = t;
        if (net_.rendezvous[x] && m.sent != UNKNOWN)
            deliver(m, std::max(m.sent, t) + net_.transfer[x]);
        wake(m.sender);
    }

    bool receive(int32_t p, MessageState &m, int64_t x, double &t) {
        if (m.arrival == UNKNOWN) {
            m.receiver = p;
            return false;
        }
        t = std::max(t, m.arrival) + net_.receive_after[x];
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
        popmodel::Exchange x;
        const auto kind = popmodel::Kind(carried_.kind[c]);
        while (popmodel::exchange(kind, members_[c], carried_.root[c], turn.rank, turn.step, x)) {
            if (!exchange(p, turn, x, *flights_[c], carried_.charge[c], t))
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

    using Flights = popmodel::Flights<Flight>;

    // One step: post, send, wait for the message; each as the operation of that name does.
    bool exchange(int32_t p, Turn &turn, const popmodel::Exchange &x, Flights &flights,
                  int64_t charges, double &t) {
        const int64_t out = charges + x.size_out, in = charges + x.size_in;
        const bool sends = x.to >= 0, receives = x.source >= 0;
        if (turn.phase == Phase::POST && receives) {
            if (!sends)
                t += net_.receive_before[in];
            post(flights.at(turn.rank, turn.step), in, t);
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

    std::unique_ptr<Flights> open_flights() {
        if (spare_.empty())
            return std::make_unique<Flights>();
        std::unique_ptr<Flights> empty = std::move(spare_.back());
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
    const double *burst_;
    const double *tail_;
    const int32_t *members_;
    const int32_t *root_;
    const Network net_;
    const Carried carried_;
    std::vector<double> &spent_;  // in each operation; empty if nobody asks
    std::vector<double> started_; // when each process began the operation that it is in
    std::vector<MessageState> message_;
    std::vector<CollectiveState> collective_;
    std::vector<std::unique_ptr<Flights>> flights_; // of collectives that some members are in
    std::vector<std::unique_ptr<Flights>> spare_;
    std::vector<double> clock_;
    std::vector<int64_t> next_;
    std::vector<uint8_t> begun_;
    std::vector<int32_t> next_waiting_;
    std::vector<Turn> turn_;
    std::vector<int32_t> ready_;
};

// What follows indexes without checks, so offsets and programs are checked once before.
void check_offsets(const In<int64_t> &offsets, size_t rows) {
    if (offsets.size() == 0 || offsets.data()[0] != 0 ||
        offsets.data()[offsets.size() - 1] != int64_t(rows))
        throw std::invalid_argument("offsets do not cover the rows");
    for (size_t p = 1; p < offsets.size(); p++)
        if (offsets.data()[p - 1] > offsets.data()[p])
            throw std::invalid_argument("offsets must not decrease");
}

void check(size_t processes, const In<int64_t> &offsets, const In<uint8_t> &kind,
           const In<int32_t> &target, size_t operations, size_t messages, size_t collectives) {
    if (offsets.size() != processes + 1)
        throw std::invalid_argument("offsets do not fit the processes");
    check_offsets(offsets, operations);
    for (size_t i = 0; i < operations; i++) {
        const uint8_t op = kind.data()[i];
        const int32_t x = target.data()[i];
        if (op > WAIT_COLLECTIVE || x < 0 ||
            size_t(x) >= (op >= COLLECTIVE ? collectives : messages))
            throw std::invalid_argument("operation " + std::to_string(i) +
                                        " has an unknown kind or target");
    }
}

// Whether one collective has members, a root among them, and charges for its message sizes.
bool carries(int32_t members, uint8_t kind, int64_t charge, int32_t root, int32_t group,
             const In<int64_t> &offsets, size_t charges) {
    if (kind >= popmodel::KINDS || members < 1 || root < 0 || root >= members || group < 0 ||
        size_t(group) + 1 >= offsets.size())
        return false;
    const int64_t *bound = offsets.data() + group;
    return bound[1] - bound[0] == members && charge >= 0 &&
           charge + popmodel::sizes(popmodel::Kind(kind), members) <= int64_t(charges);
}

void check_carried(const In<uint8_t> &rule, const In<int32_t> &members, const In<uint8_t> &kind,
                   const In<int64_t> &charge, const In<int32_t> &root, const In<int32_t> &group,
                   const In<int64_t> &offsets, const In<int32_t> &process, const In<int32_t> &rank,
                   size_t charges) {
    check_offsets(offsets, process.size());
    const size_t collectives = members.size();
    if (rank.size() != process.size() || kind.size() != collectives ||
        charge.size() != collectives || root.size() != collectives || group.size() != collectives)
        throw std::invalid_argument("columns of different lengths");
    for (size_t c = 0; c < collectives; c++)
        if (rule.data()[c] == MESSAGES &&
            !carries(members.data()[c], kind.data()[c], charge.data()[c], root.data()[c],
                     group.data()[c], offsets, charges))
            throw std::invalid_argument("collective " + std::to_string(c) +
                                        " cannot be carried out as messages");
}

nb::tuple replay(In<int64_t> offsets, In<uint8_t> kind, In<int32_t> target, In<double> burst,
                 In<double> tail, In<int32_t> members, In<int32_t> root, double cpu,
                 In<double> transfer, In<uint8_t> rendezvous, In<double> send_overhead,
                 In<double> receive_before, In<double> receive_after,
                 bool sender_waits_for_transfer, In<double> collective_cost,
                 In<double> member_cost, In<uint8_t> collective_rule, In<double> request_cost,
                 In<int64_t> uneven_operation, In<double> uneven_cost, size_t messages,
                 In<uint8_t> collective_kind, In<int64_t> collective_charge,
                 In<int32_t> root_rank, In<int32_t> group, In<int64_t> group_offsets,
                 In<int32_t> group_process, In<int32_t> group_rank, bool timed) {
    const size_t processes = tail.size(), operations = kind.size();
    const size_t charges = transfer.size(), collectives = members.size();
    if (target.size() != operations || burst.size() != operations || messages > charges ||
        rendezvous.size() != charges || send_overhead.size() != charges ||
        receive_before.size() != charges || receive_after.size() != charges ||
        root.size() != collectives || collective_cost.size() != collectives ||
        member_cost.size() != collectives || collective_rule.size() != collectives ||
        request_cost.size() != collectives || uneven_operation.size() != uneven_cost.size())
        throw std::invalid_argument("columns of different lengths");
    check(processes, offsets, kind, target, operations, messages, collectives);
    check_carried(collective_rule, members, collective_kind, collective_charge, root_rank, group,
                  group_offsets, group_process, group_rank, charges);
    Network network{cpu,
                    transfer.data(),
                    rendezvous.data(),
                    collective_cost.data(),
                    member_cost.data(),
                    collective_rule.data(),
                    request_cost.data(),
                    uneven_cost.size(),
                    uneven_operation.data(),
                    uneven_cost.data(),
                    send_overhead.data(),
                    receive_before.data(),
                    receive_after.data(),
                    sender_waits_for_transfer};
    const Carried carried{collective_kind.data(), collective_charge.data(), root_rank.data(),
                          group.data(),           group_offsets.data(),     group_process.data(),
                          group_rank.data()};
    std::vector<double> end, spent(timed ? operations : 0);
    std::vector<int64_t> next;
    {
        nb::gil_scoped_release released;
        Engine engine(processes, offsets.data(), kind.data(), target.data(), burst.data(),
                      tail.data(), messages, collectives, members.data(), root.data(), network,
                      carried, spent);
        engine.run();
        end = std::move(engine.clock());
        next = std::move(engine.next());
    }
    return nb::make_tuple(numpy(std::move(end)), numpy(std::move(next)), numpy(std::move(spent)));
}

// Index of the last of `times` that is <= `time` in the slice of `group`, or the slice's begin - 1.
// Times ascend within a slice.
Numpy<int64_t> locate(In<int64_t> offsets, In<int64_t> times, In<int64_t> group,
                      In<int64_t> time) {
    check_offsets(offsets, times.size());
    if (group.size() != time.size())
        throw std::invalid_argument("columns of different lengths");
    std::vector<int64_t> found(group.size());
    for (size_t i = 0; i < group.size(); i++) {
        const int64_t g = group.data()[i];
        if (g < 0 || size_t(g) + 1 >= offsets.size())
            throw std::invalid_argument("group outside the offsets");
        const int64_t *begin = times.data() + offsets.data()[g];
        const int64_t *end = times.data() + offsets.data()[g + 1];
        found[i] = std::upper_bound(begin, end, time.data()[i]) - times.data() - 1;
    }
    return numpy(std::move(found));
}

// First-in-first-out completion of requests whose identity a trace does not record.
// action: 0 nothing, 1 opens a request, 2 completes the oldest open one, 3 completes all open ones.
// Returns for each row the row that completes the request it opens, or -1.
Numpy<int64_t> complete_requests(In<int64_t> offsets, In<uint8_t> action) {
    check_offsets(offsets, action.size());
    std::vector<int64_t> completed(action.size(), -1);
    std::vector<int64_t> open;
    for (size_t p = 0; p + 1 < offsets.size(); p++) {
        open.clear();
        size_t first = 0;
        for (int64_t i = offsets.data()[p]; i < offsets.data()[p + 1]; i++) {
            switch (action.data()[i]) {
            case 1: open.push_back(i); break;
            case 2:
                if (first < open.size())
                    completed[size_t(open[first++])] = i;
                break;
            case 3:
                while (first < open.size())
                    completed[size_t(open[first++])] = i;
                break;
            default: break;
            }
        }
    }
    return numpy(std::move(completed));
}

} // namespace

void bind_replay(nb::module_ &module) {
    module.def("replay", &replay, nb::arg("offsets"), nb::arg("kind"), nb::arg("target"),
               nb::arg("burst"), nb::arg("tail"), nb::arg("members"), nb::arg("root"),
               nb::arg("cpu"), nb::arg("transfer"), nb::arg("rendezvous"),
               nb::arg("send_overhead"), nb::arg("receive_before"), nb::arg("receive_after"),
               nb::arg("sender_waits_for_transfer"), nb::arg("collective_cost"),
               nb::arg("member_cost"), nb::arg("collective_rule"), nb::arg("request_cost"),
               nb::arg("uneven_operation"), nb::arg("uneven_cost"), nb::arg("messages"),
               nb::arg("collective_kind"), nb::arg("collective_charge"), nb::arg("root_rank"),
               nb::arg("group"), nb::arg("group_offsets"), nb::arg("group_process"),
               nb::arg("group_rank"), nb::arg("timed"),
               "Replay a program; returns the time at which each process ends or is stuck (ns), the "
               "operation at which it is then, and the time in each operation (ns; empty unless "
               "timed).");
    module.def("locate", &locate, nb::arg("offsets"), nb::arg("times"), nb::arg("group"),
               nb::arg("time"),
               "Index of the last time of each group that is not after each time, or the group's "
               "begin - 1.");
    module.def("complete_requests", &complete_requests, nb::arg("offsets"), nb::arg("action"),
               "The row that completes the request that each row opens, first in, first out; or -1.");
}
