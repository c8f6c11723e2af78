// From events to calls: the entry and the exit of each, which call it is, and what it tells of
// itself. What the numbers of events mean is decided in popmodel.traces.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "scratch.hpp"

#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

constexpr size_t ARGUMENTS = 4;
constexpr int MOST_TURNED = 100; // pairs of events that are looked at, to see what suits them
constexpr size_t MOST_KINDS = size_t(INT16_MAX) + 1;

// Pairs of type and value, numbered as they come.
class Kinds {
  public:
    using Kind = std::pair<uint32_t, int64_t>;

    size_t number(uint32_t type, int64_t value) {
        // A call follows one of a few others.
        size_t &guess = last_[(type * 31 + uint64_t(value)) % last_.size()];
        if (guess < all_.size() && all_[guess] == Kind(type, value))
            return guess;
        const auto [at, added] = known_.try_emplace({type, value}, all_.size());
        if (added)
            all_.emplace_back(type, value);
        return guess = at->second;
    }

    // In order, and where each of them stands now.
    std::pair<popmodel::LongVector<Kind>, popmodel::LongVector<int16_t>> sorted() const {
        popmodel::LongVector<Kind> kinds;
        popmodel::LongVector<int16_t> place(all_.size());
        for (const auto &[kind, number] : known_) {
            place[number] = int16_t(kinds.size());
            kinds.push_back(kind);
        }
        return {kinds, place};
    }

    size_t size() const { return all_.size(); }

  private:
    std::map<Kind, size_t> known_;
    popmodel::LongVector<Kind> all_;
    std::array<size_t, 256> last_{};
};

// Fed with the events of some locations after those of others.
class CallPairer {
  public:
    // first to last: types of events whose values are calls, 0 for the exit.
    // argument: the first of the types of what calls tell of themselves.
    // end: of calls that nothing follows.
    // events: how many come in all.
    CallPairer(uint32_t first, uint32_t last, uint32_t argument, int64_t end, size_t events)
        : first_(first), span_(last - first), argument_(argument), end_(end), events_(events) {}

    void feed(In<int64_t> offsets, In<int64_t> time, In<uint32_t> type, In<int64_t> value) {
        check_offsets(offsets, time.size());
        check(type.size() == time.size() && value.size() == time.size(), DIFFERENT_LENGTHS);
        nb::gil_scoped_release released;
        for (size_t l = 0; l + 1 < offsets.size(); l++)
            pair(offsets.data()[l], offsets.data()[l + 1], time.data(), type.data(), value.data());
        expect(time.size());
    }

    nb::dict finish() {
        const auto [kinds, place] = kinds_.sorted();
        if (kinds.size() <= MOST_KINDS)
            for (int16_t &name : name_)
                name = place[size_t(uint16_t(name))];
        nb::dict found;
        found["offsets"] = numpy(std::move(offsets_));
        found["entry"] = numpy(std::move(entry_));
        found["exit"] = numpy(std::move(exit_));
        found["name"] = numpy(std::move(name_));
        nb::list listed;
        for (const auto &[type, value] : kinds)
            listed.append(nb::make_tuple(type, value));
        found["kinds"] = listed;
        found["call"] = numpy(std::move(call_));
        nb::list arguments;
        for (popmodel::LongVector<int64_t> &each : argument_of_)
            arguments.append(numpy(std::move(each)));
        found["arguments"] = arguments;
        found["unclosed"] = unclosed_;
        found["orphans"] = orphans_;
        return found;
    }

  private:
    // Columns that grow step by step are copied again and again, and lie there twice meanwhile: once
    // some locations are known, the others are taken to be like them.
    void expect(size_t fed) {
        if (fed == 0 || fed >= events_)
            return;
        const size_t most = size_t(1.05 * double(entry_.size()) * double(events_) / double(fed));
        entry_.reserve(most);
        exit_.reserve(most);
        name_.reserve(most);
        events_ = 0; // expected once
    }

    // Calls do not nest: the event after an entry is its exit. Arguments stand behind the entry, or
    // before it, at the same time.
    void pair(int64_t begin, int64_t end, const int64_t *time, const uint32_t *type,
              const int64_t *value) {
        const size_t before = entry_.size();
        bool open = false;
        int64_t taken = begin - 1; // an event that was taken before its turn
        pending_.clear();
        const auto next = [&](int64_t i) {
            for (i++; i < end && type[i] - first_ > span_;)
                i++;
            return i;
        };
        for (int64_t i = begin; i < end; i++) {
            if (i == taken)
                continue;
            if (type[i] - first_ <= span_) {
                const bool fits = open != (value[i] != 0);
                const int64_t other = fits ? end : next(i);
                if (!fits && turned(i, other, end, open, next, time, value)) {
                    const int64_t entry = open ? i : other;
                    if (open)
                        exit_.push_back(time[i]);
                    enter(time[entry], type[entry], value[entry]);
                    if (!open)
                        exit_.push_back(time[i]);
                    taken = other;
                    continue;
                }
                if (open)
                    exit_.push_back(time[i]);
                unclosed_ += open && value[i] != 0;
                orphans_ += !open && value[i] == 0;
                open = value[i] != 0;
                if (open)
                    enter(time[i], type[i], value[i]);
            } else if (type[i] - argument_ < ARGUMENTS) {
                const size_t which = type[i] - argument_;
                if (entry_.size() > before && entry_.back() == time[i])
                    tell(which, value[i]);
                else
                    pending_.push_back({time[i], which, value[i]});
            }
        }
        if (open)
            exit_.push_back(end_);
        unclosed_ += open;
        offsets_.push_back(int64_t(entry_.size()));
    }

    // Whether an event and the other behind it, at one time, have lost their order: an exit belongs
    // before an entry in a call, and behind it outside of one, if that suits what follows.
    template <class Next>
    static bool turned(int64_t i, int64_t other, int64_t end, bool open, const Next &next,
                       const int64_t *time, const int64_t *value) {
        const auto pairs = [&](int64_t one, int64_t two) {
            return two < end && time[one] == time[two] && (value[one] != 0) == open &&
                   (value[two] != 0) != open;
        };
        if (!pairs(i, other))
            return false;
        int64_t after = next(other);
        for (int further = 0; further < MOST_TURNED && after < end; further++) {
            const int64_t behind = next(after);
            if (!pairs(after, behind)) // else these may be turned as well
                break;
            after = next(behind);
        }
        return (after < end && value[after] == 0) == open;
    }

    void enter(int64_t time, uint32_t type, int64_t value) {
        entry_.push_back(time);
        name_.push_back(int16_t(kinds_.number(type, value)));
        for (const Told &each : pending_)
            if (each.time == time)
                tell(each.which, each.value);
        pending_.clear();
    }

    // Of the last call.
    void tell(size_t which, int64_t value) {
        const int64_t call = int64_t(entry_.size()) - 1;
        if (call_.empty() || call_.back() != call) {
            call_.push_back(call);
            for (popmodel::LongVector<int64_t> &each : argument_of_)
                each.push_back(0);
        }
        argument_of_[which].back() = value;
    }

    struct Told {
        int64_t time;
        size_t which;
        int64_t value;
    };

    const uint32_t first_, span_, argument_;
    const int64_t end_;
    size_t events_;
    Kinds kinds_;
    popmodel::LongVector<int64_t> offsets_ = {0}, entry_, exit_;
    popmodel::LongVector<int16_t> name_;
    popmodel::LongVector<int64_t> call_; // calls that tell something of themselves
    std::array<popmodel::LongVector<int64_t>, ARGUMENTS> argument_of_;
    popmodel::LongVector<Told> pending_; // since the last entry
    int64_t unclosed_ = 0, orphans_ = 0;
};

} // namespace

void bind_pairing(nb::module_ &module) {
    nb::class_<CallPairer>(module, "CallPairer",
                           "Pairs entries and exits of calls, and what calls tell of themselves.")
        .def(nb::init<uint32_t, uint32_t, uint32_t, int64_t, size_t>(), nb::arg("first"), nb::arg("last"),
             nb::arg("argument"), nb::arg("end"), nb::arg("events"))
        .def("feed", &CallPairer::feed, nb::arg("offsets"), nb::arg("time"), nb::arg("type"),
             nb::arg("value"), "Take the events of further locations.")
        .def("finish", &CallPairer::finish, "The calls of all locations.");
}
