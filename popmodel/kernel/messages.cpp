// Which calls send, post and complete each message of a trace.
//
// A record names its calls by their times. Calls can share a time where the clock is coarse, so those
// who ask for the same process and time get its calls there in turn.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "scratch.hpp"

#include "ascending.hpp"
#include "calls.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

constexpr int32_t NONE = -1;

// Whether a call may send and post several messages.
bool starts(Action action) {
    return action == Action::START || action == Action::EXCHANGE || action == Action::IEXCHANGE;
}

// Some calls of a process by a time of theirs, which ascends with them.
class Timetable {
  public:
    void clear() {
        call_.clear();
        time_.clear();
    }

    void add(int32_t call, int64_t time) {
        call_.push_back(call);
        time_.push_back(time);
    }

    void open() {
        asked_.assign(call_.size(), 0);
        times_ = Ascending(time_.data(), time_.size());
    }

    bool share_times() const {
        return std::adjacent_find(time_.begin(), time_.end()) != time_.end();
    }

    // The call at exactly a time that is next in turn, or none. Where a call may serve several, the
    // last one of a time serves those for whom none is left. It has to come after the call `after`.
    int32_t find(int64_t time, bool shared, int32_t after = NONE) {
        const size_t first = times_.until(time - 1);
        if (first == time_.size() || time_[first] != time)
            return NONE;
        size_t index = first + asked_[first]++;
        if (index < call_.size() && call_[index] <= after)
            index = size_t(std::upper_bound(call_.begin() + ptrdiff_t(index), call_.end(), after) -
                           call_.begin());
        if (index >= time_.size() || time_[index] != time) {
            if (!shared)
                return NONE;
            index = size_t(std::upper_bound(time_.begin() + ptrdiff_t(first), time_.end(), time) -
                           time_.begin()) -
                    1;
        }
        return call_[index] > after ? call_[index] : NONE;
    }

  private:
    popmodel::LongVector<int32_t> call_;
    popmodel::LongVector<int64_t> time_;
    popmodel::LongVector<uint32_t> asked_; // at the first call of each time: how often it was asked for
    Ascending times_;
};

struct Records {
    In<int64_t> offsets; // by sending location
    In<int32_t> receiver;
    In<int64_t> logical_send, logical_receive, physical_receive;
};

struct Matched {
    popmodel::LongVector<int32_t> send, post, wait;
};

class Matcher {
  public:
    Matcher(const Calls &calls, const Records &records, Matched &found)
        : calls_(calls), records_(records), found_(found) {}

    // The messages of rows first to last, which a process sends.
    void sends(size_t process, size_t first, size_t last) {
        fill(process, [this](int32_t call, Action action) {
            const int64_t entry = calls_.entry.data()[call];
            if (action == Action::SEND || action == Action::ISEND || action == Action::SENDRECEIVE)
                at_once_.add(call, entry);
            else if (starts(action))
                starts_.add(call, entry);
        });
        const int64_t *begin = records_.logical_send.data();
        for (size_t m = first; m < last; m++)
            found_.send[m] = at_once_.find(begin[m], false);
        for (size_t m = first; m < last; m++)
            if (found_.send[m] == NONE)
                found_.send[m] = starts_.find(begin[m], true);
    }

    // Some messages, which a process receives, in their order.
    void receives(size_t process, const int32_t *first, const int32_t *last) {
        fill(process, [this](int32_t call, Action action) {
            const int64_t entry = calls_.entry.data()[call], exit = calls_.exit.data()[call];
            if (action == Action::RECEIVE || action == Action::SENDRECEIVE)
                (exit > entry ? at_once_ : instant_).add(call, entry);
            else if (action == Action::IRECEIVE)
                posts_.add(call, exit);
            else if (starts(action))
                starts_.add(call, entry);
            else if (action == Action::WAIT || action == Action::WAITALL)
                waits_.add(call, exit);
        });
        const int64_t *posted = records_.logical_receive.data();
        const int64_t *received = records_.physical_receive.data();
        popmodel::LongVector<int32_t> &post = found_.post, &wait = found_.wait;
        // One call that posts and completes, from the one time to the other. Those of no length can
        // share their times; of the others one begins at a time.
        for (const int32_t *m = first; m < last; m++) {
            if (received[*m] < posted[*m])
                continue;
            Timetable &table = received[*m] > posted[*m] ? at_once_ : instant_;
            const int32_t call = table.find(posted[*m], false);
            if (call != NONE && calls_.exit.data()[call] == received[*m])
                post[*m] = wait[*m] = call;
        }
        later_.clear();
        for (const int32_t *m = first; m < last; m++)
            if (post[*m] == NONE)
                later_.push_back(*m);
        // Of receives that were posted at one time, those that were completed first were first.
        if (posts_.share_times())
            std::stable_sort(later_.begin(), later_.end(), [&](int32_t a, int32_t b) {
                return received[a] < received[b];
            });
        for (const int32_t m : later_)
            post[m] = posts_.find(posted[m], false);
        for (const int32_t *m = first; m < last; m++)
            if (post[*m] == NONE) {
                const int32_t call = post[*m] = starts_.find(posted[*m], true);
                if (call != NONE && calls_.action(call) == Action::EXCHANGE)
                    wait[*m] = call;
            }
        later_.clear();
        for (const int32_t *m = first; m < last; m++)
            if (post[*m] != NONE && wait[*m] == NONE)
                later_.push_back(*m);
        std::stable_sort(later_.begin(), later_.end(),
                         [&post](int32_t a, int32_t b) { return post[a] < post[b]; });
        for (const int32_t m : later_)
            wait[m] = waits_.find(received[m], true, post[m]);
    }

  private:
    template <typename Add> void fill(size_t process, Add add) {
        Timetable *const tables[] = {&at_once_, &instant_, &posts_, &starts_, &waits_};
        for (Timetable *each : tables)
            each->clear();
        for (int32_t call = calls_.first(process); call < calls_.first(process + 1); call++)
            add(call, calls_.action(call));
        for (Timetable *each : tables)
            each->open();
    }

    const Calls &calls_;
    const Records &records_;
    Matched &found_;
    Timetable at_once_, instant_, posts_, starts_, waits_;
    popmodel::LongVector<int32_t> later_; // messages whose receive is completed by another call
};

// Rows of messages by the process that receives them, in their order, and where those of each begin.
popmodel::LongVector<int32_t> by_receiver(const Records &records, const In<int32_t> &process_of,
                                 popmodel::LongVector<int64_t> &begin) {
    const size_t messages = records.receiver.size();
    auto process = [&](size_t m) {
        return size_t(process_of.data()[records.receiver.data()[m]]);
    };
    for (size_t m = 0; m < messages; m++)
        begin[process(m) + 1]++;
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    popmodel::LongVector<int64_t> next(begin);
    popmodel::LongVector<int32_t> rows(messages);
    for (size_t m = 0; m < messages; m++)
        rows[size_t(next[process(m)]++)] = int32_t(m);
    return rows;
}

// process_of: of each location, -1 where its thread is no master.
// Returns the calls of each message, -1 for none, and the first message of a thread that is no
// master, or -1; then there is nothing else.
nb::tuple match_messages(In<int64_t> offsets, In<int64_t> entry, In<int64_t> exit,
                         In<int16_t> code, In<uint8_t> action, In<int32_t> process_of,
                         In<int64_t> message_offsets, In<int32_t> receiver,
                         In<int64_t> logical_send, In<int64_t> logical_receive,
                         In<int64_t> physical_receive) {
    const Calls calls{offsets, entry, exit, code, action};
    const Records records{message_offsets, receiver, logical_send, logical_receive,
                          physical_receive};
    calls.check_columns();
    const size_t messages = receiver.size(), locations = process_of.size();
    check(messages < size_t(INT32_MAX), "more messages than 32 bits can number");
    check(message_offsets.size() == locations + 1 && logical_send.size() == messages &&
              logical_receive.size() == messages && physical_receive.size() == messages,
          DIFFERENT_LENGTHS);
    check_offsets(message_offsets, messages);
    check_below(receiver, int64_t(locations), "a message to a location that is not there");
    for (size_t l = 0; l < locations; l++)
        check(process_of.data()[l] < int64_t(calls.processes()), "a process that is not there");
    Matched found;
    int64_t stranger = NONE;
    {
        nb::gil_scoped_release released;
        for (size_t l = 0; l < locations && stranger == NONE; l++)
            for (int64_t m = message_offsets.data()[l]; m < message_offsets.data()[l + 1]; m++)
                if (process_of.data()[l] < 0 || process_of.data()[receiver.data()[m]] < 0) {
                    stranger = m;
                    break;
                }
        if (stranger == NONE) {
            for (popmodel::LongVector<int32_t> *each : {&found.send, &found.post, &found.wait})
                each->assign(messages, NONE);
            Matcher matcher(calls, records, found);
            popmodel::LongVector<int64_t> begin(calls.processes() + 1, 0);
            const popmodel::LongVector<int32_t> rows = by_receiver(records, process_of, begin);
            for (size_t l = 0; l < locations; l++)
                if (process_of.data()[l] >= 0)
                    matcher.sends(size_t(process_of.data()[l]), size_t(message_offsets.data()[l]),
                                  size_t(message_offsets.data()[l + 1]));
            for (size_t p = 0; p < calls.processes(); p++)
                matcher.receives(p, rows.data() + begin[p], rows.data() + begin[p + 1]);
        }
    }
    return nb::make_tuple(numpy(std::move(found.send)), numpy(std::move(found.post)),
                          numpy(std::move(found.wait)), stranger);
}

} // namespace

void bind_messages(nb::module_ &module) {
    module.def("match_messages", &match_messages, nb::kw_only(), nb::arg("offsets"),
               nb::arg("entry"), nb::arg("exit"), nb::arg("code"), nb::arg("action"),
               nb::arg("process_of"), nb::arg("message_offsets"), nb::arg("receiver"),
               nb::arg("logical_send"), nb::arg("logical_receive"), nb::arg("physical_receive"),
               "The calls that send, post and complete each message, or -1; and the first message of "
               "a thread that is no master, or -1.");
}
