// Time that threads spend in functions: while these are on their stack, how much of that is useful,
// and how much of it is the functions' own. A worker's stack continues that of its master: while it
// takes part in a parallel region, it is in all functions that the region was begun in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "numpy.hpp"

namespace popmodel {

// Stretches of time of a run, ascending and apart; none for all of it.
class Pieces {
  public:
    void assign(In<int64_t> begin, In<int64_t> end) {
        check(begin.size() == end.size(), DIFFERENT_LENGTHS);
        begin_.assign(begin.data(), begin.data() + begin.size());
        end_.assign(end.data(), end.data() + end.size());
        before_.assign(1, 0);
        for (size_t i = 0; i < begin_.size(); i++)
            before_.push_back(before_.back() + end_[i] - begin_[i]);
    }
    bool whole() const { return begin_.empty(); }

    // Time inside of them up to an instant.
    int64_t passed(int64_t t) const {
        if (whole())
            return t;
        const size_t piece = begun(t);
        return piece == 0 ? 0 : before_[piece - 1] + std::min(t, end_[piece - 1]) - begin_[piece - 1];
    }
    bool hold(int64_t t) const {
        if (whole())
            return true;
        const size_t piece = begun(t);
        return piece > 0 && t <= end_[piece - 1];
    }

  private:
    size_t begun(int64_t t) const {
        return size_t(std::upper_bound(begin_.begin(), begin_.end(), t) - begin_.begin());
    }
    std::vector<int64_t> begin_, end_, before_;
};

// Fed with one location after the other, each master before its workers. Times are nanoseconds;
// `useful` is the useful time of the location so far, inside of the pieces. Visits are counted that
// begin in these.
class FunctionTimes {
  public:
    void assign(size_t functions) { times_.assign(functions + 1, {}); } // one for none
    Pieces pieces;

    void begin(int32_t location, bool master) {
        location_ = location;
        master_ = master;
        if (master) {
            forks_.clear();
            contexts_.clear();
            numbers_.clear();
        }
        for (const int32_t function : seen_)
            of(function) = {};
        seen_.clear();
        around_ = innermost_ = -1;
        charged_ = 0;
    }

    // The innermost function, -1 for none, is another one from now on; around it the parallel region.
    void innermost(int32_t function, int64_t useful) {
        of(innermost_).own += useful - charged_;
        charged_ = useful;
        innermost_ = function < 0 ? around_ : function;
    }
    int32_t innermost() const { return innermost_; }

    // Where nothing else is on the stack.
    void around(int32_t function, int64_t useful) {
        around_ = function;
        innermost(function, useful);
    }
    int32_t around() const { return around_; }

    void open(int32_t function, int64_t t, int64_t useful, int visits = 1) {
        Times &times = of(function);
        if (!times.seen) {
            times.seen = true;
            seen_.push_back(function);
        }
        times.visits += pieces.hold(t) ? visits : 0;
        if (times.open++ == 0) {
            times.since = pieces.passed(t);
            times.useful_since = useful;
        }
    }
    void close(int32_t function, int64_t t, int64_t useful) {
        Times &times = of(function);
        if (--times.open == 0) {
            times.inclusive += pieces.passed(t) - times.since;
            times.useful += useful - times.useful_since;
        }
    }

    // A master begins a parallel region, and ends it.
    void fork(int64_t t) {
        if (!master_)
            return;
        std::vector<int32_t> open;
        for (const int32_t function : seen_)
            if (of(function).open > 0)
                open.push_back(function);
        open.push_back(innermost_);
        const auto [at, added] = numbers_.try_emplace(open, contexts_.size());
        if (added)
            contexts_.push_back(std::move(open));
        forks_.push_back({t, FOREVER, at->second});
    }
    void join(int64_t t) {
        if (master_ && !forks_.empty())
            forks_.back().end = t;
    }

    // A worker begins its part in the region of its master, and ends it.
    void begin_part(int64_t t, int64_t useful) {
        if (master_)
            return;
        auto after = std::upper_bound(forks_.begin(), forks_.end(), t,
                                      [](int64_t time, const Fork &fork) { return time < fork.begin; });
        part_ = nullptr;
        if (after == forks_.begin() || (--after)->end <= t)
            return;
        part_ = &contexts_[after->context];
        for (size_t i = 0; i + 1 < part_->size(); i++)
            open((*part_)[i], t, useful, 0);
        around(part_->back(), useful);
    }
    void end_part(int64_t t, int64_t useful) {
        if (master_ || part_ == nullptr)
            return;
        for (size_t i = 0; i + 1 < part_->size(); i++)
            close((*part_)[i], t, useful);
        part_ = nullptr;
        around(-1, useful);
    }

    // What is still open ends.
    void finish(int64_t t, int64_t useful) {
        innermost(-1, useful);
        part_ = nullptr;
        std::sort(seen_.begin(), seen_.end());
        for (const int32_t function : seen_) {
            Times &times = of(function);
            if (times.open > 0) {
                times.open = 1;
                close(function, t, useful);
            }
            if (!pieces.whole() && times.visits == 0 && times.inclusive == 0)
                continue;
            locations.push_back(location_);
            functions.push_back(function);
            visits.push_back(times.visits);
            inclusive.push_back(times.inclusive);
            this->useful.push_back(std::max<int64_t>(times.useful, 0));
            own.push_back(std::max<int64_t>(times.own, 0));
        }
    }

    // Take the rows of further locations.
    void take(FunctionTimes &other) {
        const auto append = [](auto &to, auto &from) {
            to.insert(to.end(), from.begin(), from.end());
            from = {};
        };
        append(locations, other.locations), append(functions, other.functions);
        append(visits, other.visits), append(inclusive, other.inclusive);
        append(useful, other.useful), append(own, other.own);
    }

    // Location and function of each row, and its numbers.
    nanobind::tuple rows() {
        return nanobind::make_tuple(
            numpy(std::exchange(locations, {})), numpy(std::exchange(functions, {})),
            numpy(std::exchange(visits, {})), numpy(std::exchange(inclusive, {})),
            numpy(std::exchange(useful, {})), numpy(std::exchange(own, {})));
    }

  private:
    static constexpr int64_t FOREVER = INT64_MAX;
    struct Times {
        int64_t visits = 0, inclusive = 0, useful = 0, own = 0, since = 0, useful_since = 0;
        int32_t open = 0;
        bool seen = false;
    };
    Times &of(int32_t function) { return times_[size_t(function + 1)]; }

    struct Fork {
        int64_t begin, end;
        size_t context;
    };

    std::vector<int32_t> locations, functions;
    std::vector<int64_t> visits, inclusive, useful, own;

    // Of the location that is read; of its process the forks, and the functions they are in.
    std::vector<Times> times_;
    std::vector<int32_t> seen_;
    std::vector<Fork> forks_;
    std::vector<std::vector<int32_t>> contexts_; // the innermost one behind them, or -1
    std::map<std::vector<int32_t>, size_t> numbers_;
    const std::vector<int32_t> *part_ = nullptr;
    int32_t location_ = -1, around_ = -1, innermost_ = -1;
    int64_t charged_ = 0;
    bool master_ = false;
};

} // namespace popmodel
