// Which calls take part in the same collective: those of one communicator match in call order.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "scratch.hpp"

#include "calls.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

constexpr int32_t NONE = -1;
// MPI_Init comes before any communicator: a turn of its own, over all processes. No trace has it.
constexpr int64_t OF_INIT = INT64_MIN;
constexpr uint8_t SENT = 1, RECEIVED = 2;
constexpr uint8_t INIT = 0, GATHER = 6, SCATTER = 7; // in popmodel.simulator.program.COLLECTIVES

// What some calls recorded at their entry, by call; of others nothing is known.
struct Arguments {
    In<int64_t> call;
    In<int64_t> sent, received, communicator;
    In<bool> is_root;
};

// The communicators of which a trace lists the members.
struct Listed {
    In<int64_t> number; // ascending
    In<int64_t> offsets;
    In<int32_t> member; // processes, ascending within a communicator

    bool excludes(int64_t communicator, int32_t process) const {
        const int64_t *end = number.data() + number.size();
        const int64_t *found = std::lower_bound(number.data(), end, communicator);
        if (found == end || *found != communicator)
            return false;
        const int64_t *bound = offsets.data() + (found - number.data());
        return !std::binary_search(member.data() + bound[0], member.data() + bound[1], process);
    }
};

// A call of a collective.
struct Caller {
    size_t row; // among all of them
    int32_t process, call;
    int64_t argument; // row, or -1
    uint8_t kind;
};

// Communicators by their numbers, and the rows that their collectives have.
struct Communicators {
    popmodel::LongVector<int64_t> number;   // ascending
    popmodel::LongVector<int32_t> callers;  // how many processes call on each
    popmodel::LongVector<int64_t> turns;    // how many collectives each has
    popmodel::LongVector<int64_t> first;    // row of the first of them

    size_t find(int64_t wanted) {
        if (number[last_] != wanted)
            last_ = size_t(std::lower_bound(number.begin(), number.end(), wanted) - number.begin());
        return last_;
    }

  private:
    size_t last_ = 0; // most calls are on the communicator of the call before
};

struct Collectives {
    popmodel::LongVector<int8_t> kind;
    popmodel::LongVector<int32_t> root;
    popmodel::LongVector<int64_t> sent, received, root_sent;
    popmodel::LongVector<uint8_t> uneven; // which amounts of members differ: SENT, RECEIVED
    popmodel::LongVector<int64_t> entered, left; // by the last to enter and the first to leave, if blocking
};

class Matcher {
  public:
    Matcher(const Calls &calls, const In<uint8_t> &kind_of, const Arguments &arguments)
        : calls_(calls), kind_of_(kind_of), arguments_(arguments) {}

    popmodel::LongVector<int32_t> call;       // calls of collectives, ascending
    popmodel::LongVector<int32_t> collective; // the collective of each
    Communicators communicators;
    Collectives made;

    void find_calls() {
        for (int32_t i = 0; i < int32_t(calls_.size()); i++)
            if (calls_.action(i) == Action::COLLECTIVE || calls_.action(i) == Action::ICOLLECTIVE)
                call.push_back(i);
        call.shrink_to_fit();
        popmodel::LongVector<int64_t> &number = communicators.number;
        size_t known = 0; // of them, ascending and each once; then what came since
        each([&](const Caller &c) {
            const int64_t wanted = communicator(c);
            if (number.size() == known || number.back() != wanted)
                number.push_back(wanted);
            if (number.size() > 2 * known + 1000)
                known = make_distinct(number);
        });
        make_distinct(number);
    }

    // Gives every call its turn; the first call of a process that is no member, or NONE.
    int32_t take_turns(const Listed &listed) {
        const size_t count = communicators.number.size();
        communicators.callers.assign(count, 0);
        communicators.turns.assign(count, 0);
        popmodel::LongVector<int64_t> turn(count, 0);
        popmodel::LongVector<size_t> called; // by the process
        collective.resize(call.size());
        int32_t process = NONE, stranger = NONE;
        auto leave = [&] {
            for (const size_t i : called) {
                communicators.turns[i] = std::max(communicators.turns[i], turn[i]);
                turn[i] = 0;
            }
            called.clear();
        };
        each([&](const Caller &c) {
            if (c.process != process)
                leave();
            process = c.process;
            const size_t i = communicators.find(communicator(c));
            if (turn[i] == 0) {
                called.push_back(i);
                communicators.callers[i]++;
                if (stranger == NONE && listed.excludes(communicators.number[i], process))
                    stranger = c.call;
            }
            collective[c.row] = int32_t(turn[i]++);
        });
        leave();
        communicators.first.assign(count, 0);
        for (size_t i = 1; i < count; i++)
            communicators.first[i] = communicators.first[i - 1] + communicators.turns[i - 1];
        return stranger;
    }

    // Describes the collectives; the first call whose kind is another one than that of the first
    // member to call, and that member's, or NONE.
    std::pair<int32_t, int32_t> describe() {
        const size_t count = size_t(
            std::accumulate(communicators.turns.begin(), communicators.turns.end(), int64_t(0)));
        popmodel::LongVector<int32_t> first(count, NONE);
        popmodel::LongVector<int64_t> least_sent(count, INT64_MAX), least_received(count, INT64_MAX);
        made.kind.assign(count, NONE);
        made.root.assign(count, NONE);
        made.uneven.assign(count, 0);
        for (popmodel::LongVector<int64_t> *each : {&made.sent, &made.received, &made.root_sent})
            each->assign(count, 0);
        made.entered.assign(count, 0);
        made.left.assign(count, INT64_MAX);
        std::pair<int32_t, int32_t> different(NONE, NONE);
        each([&](const Caller &c) {
            const size_t i = communicators.find(communicator(c));
            const size_t x = size_t(collective[c.row] + communicators.first[i]);
            collective[c.row] = int32_t(x);
            if (first[x] == NONE) {
                first[x] = c.call;
                made.kind[x] = int8_t(c.kind);
            } else if (made.kind[x] != int8_t(c.kind) && different.first == NONE) {
                different = {c.call, first[x]};
            }
            const bool known = c.argument >= 0;
            const int64_t sent = known ? arguments_.sent.data()[c.argument] : 0;
            const int64_t received = known ? arguments_.received.data()[c.argument] : 0;
            if (known && arguments_.is_root.data()[c.argument]) {
                made.root[x] = c.process;
                made.root_sent[x] = sent;
            }
            made.sent[x] = std::max(made.sent[x], sent);
            made.received[x] = std::max(made.received[x], received);
            // The own part of a root, which it may have in place, makes no difference.
            const bool root = made.root[x] == c.process;
            if (!(root && c.kind == GATHER && sent == 0))
                least_sent[x] = std::min(least_sent[x], sent);
            if (!(root && c.kind == SCATTER && received == 0))
                least_received[x] = std::min(least_received[x], received);
            if (calls_.action(c.call) == Action::COLLECTIVE) {
                made.entered[x] = std::max(made.entered[x], calls_.entry.data()[c.call]);
                made.left[x] = std::min(made.left[x], calls_.exit.data()[c.call]);
            }
        });
        for (size_t x = 0; x < count; x++)
            made.uneven[x] = uint8_t((least_sent[x] < made.sent[x] ? SENT : 0) |
                                     (least_received[x] < made.received[x] ? RECEIVED : 0));
        return different;
    }

  private:
    // All callers, by process and in order.
    template <typename Visit> void each(Visit visit) const {
        size_t process = 0;
        int64_t argument = 0;
        const int64_t arguments = int64_t(arguments_.call.size());
        for (size_t row = 0; row < call.size(); row++) {
            while (call[row] >= calls_.first(process + 1))
                process++;
            while (argument < arguments && arguments_.call.data()[argument] < call[row])
                argument++;
            const bool known =
                argument < arguments && arguments_.call.data()[argument] == call[row];
            visit(Caller{row, int32_t(process), call[row], known ? argument : NONE,
                         kind_of_.data()[calls_.code.data()[call[row]]]});
        }
    }

    int64_t communicator(const Caller &c) const {
        if (c.kind == INIT)
            return OF_INIT;
        return c.argument < 0 ? 0 : arguments_.communicator.data()[c.argument];
    }

    static size_t make_distinct(popmodel::LongVector<int64_t> &numbers) {
        std::sort(numbers.begin(), numbers.end());
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
        return numbers.size();
    }

    const Calls &calls_;
    const In<uint8_t> &kind_of_;
    const Arguments &arguments_;
};

// kind: of the collective that each code of calls carries out.
// The listed_* columns are communicators with their members.
nb::dict match_collectives(In<int64_t> offsets, In<int64_t> entry, In<int64_t> exit,
                           In<int16_t> code, In<uint8_t> action, In<uint8_t> kind,
                           In<int64_t> argument_call, In<int64_t> sent, In<int64_t> received,
                           In<int64_t> communicator, In<bool> is_root, In<int64_t> listed,
                           In<int64_t> listed_offsets, In<int32_t> listed_member) {
    const Calls calls{offsets, entry, exit, code, action};
    const Arguments arguments{argument_call, sent, received, communicator, is_root};
    const Listed members{listed, listed_offsets, listed_member};
    calls.check_columns();
    const size_t rows = argument_call.size();
    check(kind.size() == action.size() && sent.size() == rows && received.size() == rows &&
              communicator.size() == rows && is_root.size() == rows &&
              listed_offsets.size() == listed.size() + 1,
          DIFFERENT_LENGTHS);
    check_offsets(listed_offsets, listed_member.size());
    Matcher matcher(calls, kind, arguments);
    int32_t stranger;
    std::pair<int32_t, int32_t> different(NONE, NONE);
    {
        nb::gil_scoped_release released;
        matcher.find_calls();
        stranger = matcher.take_turns(members);
        different = matcher.describe();
    }
    Communicators &on = matcher.communicators;
    Collectives &made = matcher.made;
    nb::dict found;
    found["call"] = numpy(std::move(matcher.call));
    found["collective"] = numpy(std::move(matcher.collective));
    found["number"] = numpy(std::move(on.number));
    found["callers"] = numpy(std::move(on.callers));
    found["turns"] = numpy(std::move(on.turns));
    found["kind"] = numpy(std::move(made.kind));
    found["root"] = numpy(std::move(made.root));
    found["sent"] = numpy(std::move(made.sent));
    found["received"] = numpy(std::move(made.received));
    found["root_sent"] = numpy(std::move(made.root_sent));
    found["uneven"] = numpy(std::move(made.uneven));
    found["entered"] = numpy(std::move(made.entered));
    found["left"] = numpy(std::move(made.left));
    found["stranger"] = stranger;
    found["different"] = nb::make_tuple(different.first, different.second);
    return found;
}

} // namespace

void bind_collectives(nb::module_ &module) {
    module.def("match_collectives", &match_collectives, nb::kw_only(), nb::arg("offsets"),
               nb::arg("entry"), nb::arg("exit"), nb::arg("code"), nb::arg("action"),
               nb::arg("kind"), nb::arg("argument_call"), nb::arg("sent"), nb::arg("received"),
               nb::arg("communicator"), nb::arg("is_root"), nb::arg("listed"),
               nb::arg("listed_offsets"), nb::arg("listed_member"),
               "The collectives of a run by communicator and turn, and the one of each call.");
}
