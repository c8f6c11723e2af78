// Functions, or regions that users mark, out of events that begin one or end the innermost one.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "function_times.hpp"
#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

// Intervals of each location, in order.
struct Intervals {
    In<int64_t> offsets, begin, end;

    void check_columns(size_t locations) const {
        check(offsets.size() == locations + 1, DIFFERENT_LENGTHS);
        check_offsets(offsets, begin.size());
        check(begin.size() == end.size(), DIFFERENT_LENGTHS);
    }
};

// The useful time of a location in some pieces up to instants that do not go back.
class Useful {
  public:
    Useful(const Intervals &running, const Intervals &waits, const Pieces &pieces, size_t location)
        : running_(running), waits_(waits), pieces_(pieces), row_(running.offsets.data()[location]),
          last_(running.offsets.data()[location + 1]), wait_(waits.offsets.data()[location]),
          last_wait_(waits.offsets.data()[location + 1]) {}

    int64_t operator()(int64_t t) {
        for (; row_ < last_ && running_.end.data()[row_] <= t; row_++)
            done_ += between(running_.begin.data()[row_], running_.end.data()[row_]);
        for (; wait_ < last_wait_ && waits_.begin.data()[wait_] <= t; wait_++)
            if (pieces_.hold(waits_.begin.data()[wait_]))
                done_ -= waits_.end.data()[wait_];
        const bool inside = row_ < last_ && running_.begin.data()[row_] < t;
        return done_ + (inside ? between(running_.begin.data()[row_], t) : 0);
    }

  private:
    int64_t between(int64_t begin, int64_t end) const {
        return pieces_.passed(end) - pieces_.passed(begin);
    }

    const Intervals &running_, &waits_; // of these the instants, and how long each was
    const Pieces &pieces_;
    int64_t row_, last_, wait_, last_wait_, done_ = 0;
};

// The functions that are open on a thread. Where one goes on around the one that ends, its number can
// come again at once; where one ends before another that was begun inside it, that one ends with it
// and begins again at the same time.
class OpenFunctions {
  public:
    struct Occurrence {
        int64_t begin, end;
        int32_t location, function;
    };

    OpenFunctions(FunctionTimes &times, std::vector<Occurrence> &found, size_t functions)
        : times_(times), found_(found), open_(functions) {}

    void feed(int32_t location, int64_t t, int32_t function, int64_t useful) {
        if (t != now_) {
            now_ = t;
            ended_.clear();
            just_ended_ = false;
        }
        if (function < 0) {
            just_ended_ = !stack_.empty();
            if (just_ended_)
                end(location, t, useful);
            return;
        }
        const bool again = just_ended_ && !stack_.empty() && stack_.back().function == function;
        just_ended_ = false;
        if (again)
            return;
        int64_t begin = t;
        int visits = 1;
        if (open_[size_t(function)]++ == 0) {
            size_t at = ended_.size();
            while (at > 0 && ended_[at - 1].function != function)
                at--;
            if (at > 0 && at < ended_.size()) { // it goes on
                Occurrence &before = found_[size_t(ended_[at - 1].row)];
                begin = before.begin;
                before.location = -1;
                visits = 0;
            }
        }
        times_.open(function, t, useful, visits);
        times_.innermost(function, useful);
        stack_.push_back({function, begin});
    }

    void finish(int32_t location, int64_t t, int64_t useful) {
        while (!stack_.empty())
            end(location, t, useful);
        ended_.clear();
        just_ended_ = false;
        now_ = -1;
    }

  private:
    struct Open {
        int32_t function;
        int64_t begin;
    };
    struct Ended {
        int32_t function;
        int64_t row;
    };

    void end(int32_t location, int64_t t, int64_t useful) {
        const Open of = stack_.back();
        stack_.pop_back();
        times_.close(of.function, t, useful);
        times_.innermost(stack_.empty() ? -1 : stack_.back().function, useful);
        const bool outermost = --open_[size_t(of.function)] == 0;
        ended_.push_back({of.function, outermost ? int64_t(found_.size()) : -1});
        if (outermost)
            found_.push_back({of.begin, t, location, of.function});
    }

    FunctionTimes &times_;
    std::vector<Occurrence> &found_;
    std::vector<Open> stack_;
    std::vector<int32_t> open_; // how often each function is on the stack
    std::vector<Ended> ended_;  // at this time, in order
    int64_t now_ = -1;
    bool just_ended_ = false;
};

nb::tuple times_of_functions(In<int64_t> offsets, In<int64_t> time, In<int32_t> function,
                             int32_t functions, In<uint8_t> masters, int64_t last,
                             In<int64_t> running_offsets, In<int64_t> running_begin,
                             In<int64_t> running_end, In<int64_t> wait_offsets,
                             In<int64_t> wait_time, In<int64_t> waited, In<int64_t> fork_offsets,
                             In<int64_t> fork_begin, In<int64_t> fork_end,
                             In<int64_t> part_offsets, In<int64_t> part_begin,
                             In<int64_t> part_end, In<int64_t> piece_begin,
                             In<int64_t> piece_end) {
    check_offsets(offsets, time.size());
    check(time.size() == function.size(), DIFFERENT_LENGTHS);
    for (size_t i = 0; i < function.size(); i++)
        check(function.data()[i] >= -1 && function.data()[i] < functions, "no such function");
    const size_t locations = offsets.size() - 1;
    check(masters.size() == locations, DIFFERENT_LENGTHS);
    const Intervals running{running_offsets, running_begin, running_end},
        waits{wait_offsets, wait_time, waited}, forks{fork_offsets, fork_begin, fork_end},
        parts{part_offsets, part_begin, part_end};
    for (const Intervals &each : {running, waits, forks, parts})
        each.check_columns(locations);

    FunctionTimes times;
    std::vector<OpenFunctions::Occurrence> found;
    times.assign(size_t(functions));
    times.pieces.assign(piece_begin, piece_end);
    OpenFunctions open(times, found, size_t(functions));
    for (size_t l = 0; l < locations; l++) {
        const bool master = masters.data()[l];
        const Intervals &regions = master ? forks : parts;
        times.begin(int32_t(l), master);
        Useful useful(running, waits, times.pieces, l);
        int64_t region = regions.offsets.data()[l];
        const int64_t last_region = regions.offsets.data()[l + 1];
        bool inside = false;
        // Where all happens at one time, functions are begun before the master forks, and by workers
        // inside of their part.
        auto regions_before = [&](int64_t t, bool all) {
            while (region < last_region) {
                const int64_t begin = regions.begin.data()[region], end = regions.end.data()[region];
                if (!inside && (all || begin < t || (begin == t && !master))) {
                    master ? times.fork(begin) : times.begin_part(begin, useful(begin));
                    inside = true;
                } else if (inside && (all || end < t)) {
                    master ? times.join(end) : times.end_part(end, useful(end));
                    inside = false;
                    region++;
                } else
                    return;
            }
        };
        for (int64_t i = offsets.data()[l]; i < offsets.data()[l + 1]; i++) {
            const int64_t t = time.data()[i];
            regions_before(t, false);
            open.feed(int32_t(l), t, function.data()[i], useful(t));
        }
        regions_before(last, true);
        open.finish(int32_t(l), last, useful(last));
        times.finish(last, useful(last));
    }

    std::vector<int64_t> location, index, begin, end;
    for (const auto &occurrence : found) {
        if (occurrence.location < 0)
            continue;
        location.push_back(occurrence.location);
        index.push_back(occurrence.function);
        begin.push_back(occurrence.begin);
        end.push_back(occurrence.end);
    }
    return nb::make_tuple(times.rows(),
                          nb::make_tuple(numpy(std::move(index)), numpy(std::move(location)),
                                         numpy(std::move(begin)), numpy(std::move(end))));
}

} // namespace

void bind_functions(nb::module_ &module) {
    module.def("times_of_functions", &times_of_functions, nb::arg("offsets"), nb::arg("time"),
               nb::arg("function"), nb::arg("functions"), nb::arg("masters"), nb::arg("last"),
               nb::arg("running_offsets"), nb::arg("running_begin"), nb::arg("running_end"),
               nb::arg("wait_offsets"), nb::arg("wait_time"), nb::arg("waited"),
               nb::arg("fork_offsets"), nb::arg("fork_begin"), nb::arg("fork_end"),
               nb::arg("part_offsets"), nb::arg("part_begin"), nb::arg("part_end"),
               nb::arg("piece_begin"), nb::arg("piece_end"),
               "Rows of times by location and function, and occurrences that are in no other one.");
}
