// From the matched calls of a run to the operations of its program: in order, each with the time
// that its process computes before it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "ascending.hpp"
#include "calls.hpp"
#include "operations.hpp"
#include "requests.hpp"
#include "trim.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

constexpr int32_t NONE = -1;

struct Messages {
    In<int32_t> send, post, wait; // calls
    In<int64_t> left;             // when each leaves its sender
    In<int32_t> request;          // of calls: the number of what they open or complete, if known
    size_t size() const { return send.size(); }
};

struct Members {
    In<int32_t> call, collective; // by call
    In<int32_t> root;             // of each collective, a process or -1
};

// The stretches of the run that are wanted, and where each begins in the part that they make up.
struct Part {
    bool whole;
    In<int64_t> begin, end, start;
};

// What takes no part: of each process, ascending and apart.
struct Disabled {
    In<int64_t> offsets, begin, end;
};

// Times of the run, in the part, of a process without its time disabled.
class Clock {
  public:
    Clock(const Part &part, const Disabled &disabled, size_t process)
        : part_(part), pieces_(part.begin.data(), part.begin.size()),
          first_(disabled.offsets.data()[process]),
          disabled_(disabled.begin.data() + first_,
                    size_t(disabled.offsets.data()[process + 1] - first_)),
          begin_(disabled.begin.data() + first_), end_(disabled.end.data() + first_),
          passed_(1, 0) {
        for (int64_t i = first_; i < disabled.offsets.data()[process + 1]; i++)
            passed_.push_back(passed_.back() + end_[i - first_] - begin_[i - first_]);
    }

    // What lies between two stretches is where they meet.
    int64_t in_part(int64_t time) {
        const size_t found = pieces_.until(time);
        const size_t i = found ? found - 1 : 0;
        const int64_t begin = part_.begin.data()[i];
        return std::min(std::max(time, begin), part_.end.data()[i]) + part_.start.data()[i] - begin;
    }

    int64_t without_disabled(int64_t time) {
        if (passed_.size() == 1)
            return time;
        const size_t count = disabled_.until(time);
        if (count == 0)
            return time;
        return time - passed_[count - 1] - std::min(time, end_[count - 1]) + begin_[count - 1];
    }

    int64_t operator()(int64_t time) { return without_disabled(in_part(time)); }

  private:
    const Part &part_;
    Ascending pieces_;
    int64_t first_;
    Ascending disabled_;
    const int64_t *begin_, *end_;
    popmodel::LongVector<int64_t> passed_; // disabled before each of its stretches
};

// What is known of a call.
enum Mark : uint8_t {
    INSIDE = 1,  // something of it lies in the part
    EARLIER = 2, // it lies before all of the part that comes last
    SENDS = 4,   // messages that it sends are known
    POSTS = 8,   // messages whose receives it posts are known
    RECEIVES = 16,
    OPENS = 32 // a request that another call completes
};

class Assembler {
  public:
    Assembler(const Calls &calls, const Messages &messages, const Members &members,
              const Part &part)
        : calls_(calls), messages_(messages), members_(members), part_(part),
          mark_(calls.size(), 0), takes_part_(messages.size(), 1), arrives_(members.call.size(), 1),
          root_(members.root.data(), members.root.data() + members.root.size()) {}

    popmodel::LongVector<int64_t> offsets;
    popmodel::LongVector<uint8_t> kind;
    popmodel::LongVector<int32_t> target, call;
    popmodel::LongVector<uint32_t> burst; // ns, while all of them fit
    popmodel::LongVector<double> wide;    // ns, once one does not
    popmodel::LongVector<double> tail;
    popmodel::LongVector<int32_t> arriving; // members of each collective; only of a part
    int64_t cut = 0;               // messages of which only one end lies in the part
    int64_t without_record = 0;    // calls that no message is known of
    int32_t first_without = NONE;

    popmodel::LongVector<int32_t> &root() { return root_; }

    void run(const Disabled &disabled, int64_t begin, const In<int64_t> &ends) {
        mark();
        find_without_record();
        complete_requests();
        if (!part_.whole)
            leave_out();
        place();
        for (size_t p = 0; p < calls_.processes(); p++)
            compute(p, disabled, begin, ends.data()[p]);
    }

  private:
    void mark() {
        for (size_t m = 0; m < messages_.size(); m++) {
            const bool opens = !blocks(send(m)) && calls_.action(send(m)) != Action::EXCHANGE;
            mark_[size_t(send(m))] |= SENDS | (opens ? OPENS : 0);
            mark_[size_t(post(m))] |= POSTS;
            mark_[size_t(wait(m))] |= RECEIVES;
        }
        for (size_t i = 0; i < members_.call.size(); i++)
            if (calls_.action(member_call(i)) != Action::COLLECTIVE)
                mark_[size_t(member_call(i))] |= OPENS;
        if (part_.whole)
            return;
        const int64_t last = part_.begin.data()[part_.begin.size() - 1];
        for (size_t p = 0; p < calls_.processes(); p++) {
            Ascending ends(part_.end.data(), part_.end.size());
            for (int32_t c = calls_.first(p); c < calls_.first(p + 1); c++) {
                const size_t piece = ends.until(calls_.entry.data()[c]);
                const int64_t exit = calls_.exit.data()[c];
                if (piece < part_.end.size() && part_.begin.data()[piece] < exit)
                    mark_[size_t(c)] |= INSIDE;
                else if (exit <= last)
                    mark_[size_t(c)] |= EARLIER;
            }
        }
    }

    void find_without_record() {
        for (int32_t c = 0; c < int32_t(calls_.size()); c++) {
            const Action action = calls_.action(c);
            const bool both = action == Action::SENDRECEIVE;
            const bool sends = both || action == Action::SEND || action == Action::ISEND;
            const bool receives = both || action == Action::RECEIVE || action == Action::IRECEIVE;
            if ((sends && !marked(c, SENDS)) || (receives && !marked(c, POSTS))) {
                if (without_record++ == 0)
                    first_without = c;
            }
        }
    }

    // Where a trace does not tell which request a call completes, it is the oldest open one, unless
    // the call completes a receive that is known.
    void complete_requests() {
        completed_ = popmodel::complete_requests(
            calls_, messages_.request,
            [this](int32_t c) {
                return marked(c, OPENS) &&
                       !(calls_.action(c) == Action::IEXCHANGE && marked(c, POSTS));
            },
            [this](int32_t c) { return !marked(c, RECEIVES); });
        // What completes the receives of an exchange has one request for all of it.
        for (size_t m = 0; m < messages_.size(); m++) {
            if (calls_.action(send(m)) == Action::EXCHANGE)
                completed_[size_t(send(m))] = send(m);
            if (calls_.action(post(m)) == Action::IEXCHANGE)
                completed_[size_t(post(m))] = wait(m);
        }
    }

    // Of a part of the run: a request that is open when it begins, and is completed inside, is made
    // at its begin. Of other messages with a call outside nothing is left: before it they have
    // arrived, after it nobody waits. A collective counts the members that call it inside or have it
    // open.
    void leave_out() {
        for (size_t m = 0; m < messages_.size(); m++) {
            const bool sent = marked(send(m), INSIDE) || is_open_at_begin(send(m));
            // A receive that is completed inside was posted there or before.
            takes_part_[m] = sent && marked(wait(m), INSIDE);
            const bool touched = marked(send(m), INSIDE) || marked(post(m), INSIDE) ||
                                 marked(wait(m), INSIDE);
            cut += touched && !takes_part_[m];
        }
        arriving.assign(root_.size(), 0);
        popmodel::LongVector<int32_t> root(root_.size(), NONE);
        size_t process = 0;
        for (size_t i = 0; i < members_.call.size(); i++) {
            const int32_t c = member_call(i);
            while (c >= calls_.first(process + 1))
                process++;
            arrives_[i] = marked(c, INSIDE) || is_open_at_begin(c);
            if (!arrives_[i])
                continue;
            const size_t x = size_t(members_.collective.data()[i]);
            arriving[x]++;
            if (root_[x] == int32_t(process))
                root[x] = root_[x];
        }
        root_ = std::move(root);
    }

    bool is_open_at_begin(int32_t c) const {
        const int32_t completed = completed_[size_t(c)];
        return marked(c, EARLIER) && completed != NONE && marked(completed, INSIDE);
    }

    // Every operation with its call and what it is about; inside one call it posts, then sends, then
    // waits, for messages in the order in which they left (see `compute`).
    template <typename Visit> void each(Visit visit) const {
        const size_t messages = messages_.size(), members = members_.call.size();
        for (size_t m = 0; m < messages; m++)
            if (takes_part_[m] && !at_once(m))
                visit(post(m), POST, m);
        for (size_t i = 0; i < members; i++)
            if (arrives_[i])
                visit(member_call(i), marked(member_call(i), OPENS) ? ARRIVE : COLLECTIVE, i);
        for (size_t m = 0; m < messages; m++)
            if (takes_part_[m])
                visit(send(m), blocks(send(m)) ? SEND : ISEND, m);
        for (size_t m = 0; m < messages; m++)
            if (takes_part_[m])
                visit(wait(m), at_once(m) ? RECEIVE : WAIT_RECEIVE, m);
        for (size_t m = 0; m < messages; m++)
            if (takes_part_[m] && !blocks(send(m)) && is_waited_for(send(m)))
                visit(completed_[size_t(send(m))], WAIT_SEND, m);
        for (size_t i = 0; i < members; i++)
            if (arrives_[i] && marked(member_call(i), OPENS) && is_waited_for(member_call(i)))
                visit(completed_[size_t(member_call(i))], WAIT_COLLECTIVE, i);
    }

    // A request that no call completes, or that one after the part does, is not waited for.
    bool is_waited_for(int32_t opened) const {
        const int32_t completed = completed_[size_t(opened)];
        return completed != NONE && (part_.whole || marked(completed, INSIDE));
    }

    // Puts the operations in the order of their calls.
    void place() {
        popmodel::LongVector<int32_t> row(root_.size()); // of each collective, those of nobody left out
        int32_t rows = 0;
        for (size_t x = 0; x < row.size(); x++)
            row[x] = part_.whole || arriving[x] > 0 ? rows++ : NONE;
        next_.assign(calls_.size() + 1, 0);
        each([this](int32_t c, Op, size_t) { next_[size_t(c) + 1]++; });
        int64_t total = 0;
        for (int32_t &next : next_) {
            total += next;
            check(total < INT32_MAX, "more operations than 32 bits can number");
            next = int32_t(total);
        }
        kind.resize(size_t(total));
        target.resize(size_t(total));
        each([&](int32_t c, Op op, size_t i) {
            const size_t at = size_t(next_[size_t(c)]++);
            kind[at] = op;
            target[at] = op >= COLLECTIVE ? row[size_t(members_.collective.data()[i])] : int32_t(i);
        });
        // Now next_ holds where the operations of each call end.
        for (popmodel::LongVector<int32_t> *each : {&completed_, &row})
            popmodel::LongVector<int32_t>().swap(*each);
        trim();
        call.resize(size_t(total));
        burst.resize(size_t(total));
        offsets.assign(1, 0);
    }

    // The bursts of a process: its time outside MPI between the calls of two operations.
    void compute(size_t process, const Disabled &disabled, int64_t begin, int64_t end) {
        Clock clock(part_, disabled, process);
        const int64_t started = clock.without_disabled(begin);
        int64_t in_mpi = 0, counted = 0; // counted: outside MPI, up to the last operation
        int32_t at = int32_t(offsets.back());
        for (int32_t c = calls_.first(process); c < calls_.first(process + 1); c++) {
            const int64_t entry = clock(calls_.entry.data()[c]);
            const int32_t last = next_[size_t(c)];
            if (last - at > 1)
                wait_in_order(at, last);
            for (; at < last; at++) {
                const int64_t outside = entry - started - in_mpi;
                call[size_t(at)] = c;
                put(size_t(at), outside - counted);
                counted = outside;
            }
            in_mpi += clock(calls_.exit.data()[c]) - entry;
        }
        offsets.push_back(at);
        // A process whose last call goes on after its end has nothing left to do.
        tail.push_back(double(std::max(clock(end) - started - in_mpi, int64_t(0)) - counted));
    }

    void put(size_t at, int64_t length) {
        if (wide.empty() && (length < 0 || length > int64_t(UINT32_MAX))) {
            wide.assign(burst.begin(), burst.end());
            popmodel::LongVector<uint32_t>().swap(burst);
        }
        if (wide.empty())
            burst[at] = uint32_t(length);
        else
            wide[at] = double(length);
    }

    // Several receives that one call waits for: in the order in which their messages left.
    void wait_in_order(int32_t first, int32_t last) {
        const auto begin = kind.begin() + first;
        const auto from = std::find(begin, kind.begin() + last, uint8_t(WAIT_RECEIVE));
        const auto to = std::find_if(from, kind.begin() + last,
                                     [](uint8_t op) { return op != WAIT_RECEIVE; });
        const int64_t *left = messages_.left.data();
        std::stable_sort(target.begin() + (from - kind.begin()),
                         target.begin() + (to - kind.begin()),
                         [left](int32_t a, int32_t b) { return left[a] < left[b]; });
    }

    int32_t send(size_t m) const { return messages_.send.data()[m]; }
    int32_t post(size_t m) const { return messages_.post.data()[m]; }
    int32_t wait(size_t m) const { return messages_.wait.data()[m]; }
    int32_t member_call(size_t i) const { return members_.call.data()[i]; }
    bool marked(int32_t c, uint8_t what) const { return mark_[size_t(c)] & what; }
    bool blocks(int32_t c) const {
        return calls_.action(c) == Action::SEND || calls_.action(c) == Action::SENDRECEIVE;
    }
    bool at_once(size_t m) const {
        return post(m) == wait(m) && calls_.action(post(m)) == Action::RECEIVE;
    }

    const Calls &calls_;
    const Messages &messages_;
    const Members &members_;
    const Part &part_;
    popmodel::LongVector<uint8_t> mark_;       // of each call
    popmodel::LongVector<int32_t> completed_;  // the call that completes the request of each
    popmodel::LongVector<uint8_t> takes_part_; // of each message
    popmodel::LongVector<uint8_t> arrives_;    // of each member
    popmodel::LongVector<int32_t> root_;
    popmodel::LongVector<int32_t> next_; // of each call: where its next operation goes
};

// begin, ends: of the part, and of each process in the time of the run.
nb::dict operations(In<int64_t> offsets, In<int64_t> entry, In<int64_t> exit, In<int16_t> code,
                    In<uint8_t> action, In<int32_t> send, In<int32_t> post, In<int32_t> wait,
                    In<int64_t> left, In<int32_t> request, In<int32_t> member_call,
                    In<int32_t> member_collective, In<int32_t> root, bool whole, In<int64_t> piece_begin, In<int64_t> piece_end,
                    In<int64_t> piece_start, In<int64_t> disabled_offsets,
                    In<int64_t> disabled_begin, In<int64_t> disabled_end, int64_t begin,
                    In<int64_t> ends) {
    const Calls calls{offsets, entry, exit, code, action};
    const Messages messages{send, post, wait, left, request};
    const Members members{member_call, member_collective, root};
    const Part part{whole, piece_begin, piece_end, piece_start};
    const Disabled disabled{disabled_offsets, disabled_begin, disabled_end};
    calls.check_columns();
    check(post.size() == send.size() && wait.size() == send.size() && left.size() == send.size() &&
              member_collective.size() == member_call.size() &&
              piece_end.size() == piece_begin.size() && piece_start.size() == piece_begin.size() &&
              disabled_end.size() == disabled_begin.size() &&
              (request.size() == 0 || request.size() == calls.size()) &&
              disabled_offsets.size() == offsets.size() && ends.size() == calls.processes(),
          DIFFERENT_LENGTHS);
    check(piece_begin.size() > 0, "a part of nothing");
    check_offsets(disabled_offsets, disabled_begin.size());
    for (const In<int32_t> &each : {send, post, wait, member_call})
        check_below(each, int64_t(calls.size()), "a call that is not there");
    check_below(member_collective, int64_t(root.size()), "a collective that is not there");
    Assembler made(calls, messages, members, part);
    {
        nb::gil_scoped_release released;
        made.run(disabled, begin, ends);
    }
    nb::dict found;
    found["offsets"] = numpy(std::move(made.offsets));
    found["kind"] = numpy(std::move(made.kind));
    found["target"] = numpy(std::move(made.target));
    if (made.wide.empty())
        found["burst"] = numpy(std::move(made.burst));
    else
        found["burst"] = numpy(std::move(made.wide));
    found["tail"] = numpy(std::move(made.tail));
    found["call"] = numpy(std::move(made.call));
    found["root"] = numpy(std::move(made.root()));
    found["arriving"] = numpy(std::move(made.arriving));
    found["cut"] = made.cut;
    found["without_record"] = nb::make_tuple(made.without_record, made.first_without);
    return found;
}

} // namespace

void bind_operations(nb::module_ &module) {
    module.def("operations", &operations, nb::kw_only(), nb::arg("offsets"), nb::arg("entry"),
               nb::arg("exit"), nb::arg("code"), nb::arg("action"), nb::arg("send"),
               nb::arg("post"), nb::arg("wait"), nb::arg("left"), nb::arg("request"), nb::arg("member_call"),
               nb::arg("member_collective"), nb::arg("root"), nb::arg("whole"),
               nb::arg("piece_begin"), nb::arg("piece_end"), nb::arg("piece_start"),
               nb::arg("disabled_offsets"), nb::arg("disabled_begin"), nb::arg("disabled_end"),
               nb::arg("begin"), nb::arg("ends"),
               "The operations of a run, or of a part of it, with the time computed before each.");
}
