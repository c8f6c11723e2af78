// What repeats in a sequence of tokens: nested loops, whose counts may vary.
//
// Maximal repetitions become items of their own, whatever their counts, and the search goes on in
// the shorter sequence: so loops around others whose counts vary are found, too. What was found too
// small to be a loop is unrolled in the end. Repetitions overlap, and which of them are loops is a
// matter of taste: where counts are constant the longest ones, searched in their bodies, are it;
// where they vary, long repetitions are chance, and the shortest ones are it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "scratch.hpp"

#include "numpy.hpp"
#include "runs.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

struct Found {
    int32_t begin, period, count;
};

// A loop has to save this many places: calls made twice in a row are none.
constexpr int64_t LEAST = 3;

// Before each item of a sequence the places of all items ahead of it: a loop has many.
using Places = popmodel::LongVector<int64_t>;

bool worth(const Places &before, int64_t begin, int64_t length, int64_t period) {
    return length >= 2 * period &&
           (length / period - 1) * (before[begin + period] - before[begin]) >= LEAST;
}

// Runs by where they are, those of similar length together.
class ByPlace {
  public:
    explicit ByPlace(popmodel::LongVector<Run> runs) {
        for (const Run &run : runs) {
            size_t size = 0;
            while (int64_t(run.end - run.begin) >> (size + 1))
                size++;
            if (size >= classes_.size())
                classes_.resize(size + 1);
            classes_[size].push_back(run); // in order of their begins, as they come
        }
    }

    // Those that share something with a stretch and have a period below another.
    template <typename Take>
    void each(int32_t begin, int32_t end, int32_t period, Take take) const {
        for (size_t size = 0; size < classes_.size(); size++) {
            const int64_t since = int64_t(begin) - (int64_t(2) << size);
            const auto &some = classes_[size];
            auto run = std::lower_bound(some.begin(), some.end(), since,
                                        [](const Run &r, int64_t at) { return r.begin < at; });
            for (; run != some.end() && run->begin < end; ++run)
                if (run->end > begin && run->period < period)
                    take(*run);
        }
    }

  private:
    popmodel::LongVector<popmodel::LongVector<Run>> classes_;
};

// The innermost loops of a stretch: of those that overlap the longest, then in its body.
void longest_first(int32_t begin, int32_t end, int32_t below, const ByPlace &runs,
                   const Places &before, popmodel::LongVector<Found> &chosen) {
    using Waiting = std::tuple<int32_t, int32_t, int32_t>; // length, minus period, minus begin
    std::priority_queue<Waiting> waiting;
    const auto add = [&](int32_t first, int32_t stop, int32_t period) {
        if (worth(before, first, stop - first, period))
            waiting.emplace(stop - first, -period, -first);
    };
    runs.each(begin, end, below, [&](const Run &run) {
        add(std::max(run.begin, begin), std::min(run.end, end), run.period);
    });
    std::map<int32_t, int32_t> free{{begin, end}};
    while (!waiting.empty()) {
        const auto [length, negative, minus] = waiting.top();
        waiting.pop();
        const int32_t period = -negative, first = -minus, stop = first + length;
        auto part = free.upper_bound(first);
        if (part != free.begin() && std::prev(part)->second > first)
            --part;
        if (part == free.end() || part->first >= stop)
            continue;
        if (part->first > first || part->second < stop) {
            for (; part != free.end() && part->first < stop; ++part)
                add(std::max(first, part->first), std::min(stop, part->second), period);
            continue;
        }
        const int32_t count = length / period, last = first + count * period;
        const int32_t whole_end = part->second;
        if (part->first == first)
            free.erase(part);
        else
            part->second = first;
        if (last < whole_end)
            free[last] = whole_end;
        popmodel::LongVector<Found> inner;
        longest_first(first, first + period, period, runs, before, inner);
        if (inner.empty())
            chosen.push_back({first, period, count});
        for (int32_t turn = 0; turn < count && !inner.empty(); turn++)
            for (const Found &each : inner)
                chosen.push_back({each.begin + turn * period, each.period, each.count});
    }
}

// Loops of a sequence, none inside another.
popmodel::LongVector<Found> loops_of(const popmodel::LongVector<int32_t> &level, const Stretches &stretches,
                            const Places &before) {
    const int32_t size = int32_t(level.size());
    popmodel::LongVector<Found> found;
    longest_first(0, size, size, ByPlace(runs_of(level, stretches)), before, found);
    std::sort(found.begin(), found.end(),
              [](const Found &a, const Found &b) { return a.begin < b.begin; });
    return found;
}

// Sequences that become shorter: in each, the innermost loops of the one below are items. Bodies of
// loops may be known again where they stand alone: wherever counts vary they can be 1. Of a level the
// shortest loops may be taken alone: in short sequences longer ones are equal counts by chance.
class Levels {
  public:
    Levels(popmodel::LongVector<int32_t> tokens, int32_t symbols, bool alone, bool shortest)
        : symbols_(symbols), alone_(alone), shortest_(shortest) {
        sequence_.push_back(std::move(tokens));
        while (collapse()) {
        }
    }

    bool is_loop(int32_t symbol) const { return symbol >= symbols_; }

    const popmodel::LongVector<int32_t> &body(int32_t symbol) const { return bodies_[symbol - symbols_]; }

    const popmodel::LongVector<int32_t> &top() const { return sequence_.back(); }

    int32_t at(int32_t level, int32_t item) const { return sequence_[level][item]; }

    int32_t depth() const { return int32_t(first_.size()); }

    // Items of the level below that an item of a level (from 1) stands for.
    std::pair<int32_t, int32_t> below(int32_t level, int32_t item) const {
        const auto &first = first_[level - 1];
        return {first[item], first[item + 1]};
    }

  private:
    bool collapse() {
        const popmodel::LongVector<int32_t> &level = sequence_.back();
        const int32_t size = int32_t(level.size());
        const Stretches stretches(level);
        Places before(size + 1);
        for (int32_t at = 0; at < size; at++)
            before[at + 1] = before[at] + places(level[at]);
        popmodel::LongVector<Found> loops = loops_of(level, stretches, before);
        if (loops.empty())
            return false;
        if (shortest_) {
            const auto shorter = [](const Found &a, const Found &b) { return a.period < b.period; };
            const int32_t period = std::min_element(loops.begin(), loops.end(), shorter)->period;
            const auto longer = [&](const Found &loop) { return loop.period > period; };
            loops.erase(std::remove_if(loops.begin(), loops.end(), longer), loops.end());
        }
        for (const Found &loop : loops)
            learn(level, stretches, loop);
        popmodel::LongVector<int32_t> above, first;
        auto loop = loops.begin();
        for (int32_t at = 0; at < size;) {
            const int32_t until = loop == loops.end() ? size : loop->begin;
            const int32_t known =
                at == until ? symbol(stretches, at, loop->period) : once(stretches, at, until);
            first.push_back(at);
            above.push_back(known < 0 ? level[at++] : known);
            if (known < 0)
                continue;
            // The loop goes on with all that has its body, in loops and alone.
            const int32_t period = int32_t(body(known).size());
            for (bool goes_on = true; goes_on;) {
                const bool looped = loop != loops.end() && loop->begin == at;
                const int32_t most = loop == loops.end() ? size : loop->begin;
                goes_on = (looped ? loop->period == period : at + period <= most) &&
                          symbol(stretches, at, period) == known;
                if (goes_on)
                    at += looped ? period * (loop++)->count : period;
            }
        }
        first.push_back(size);
        first_.push_back(std::move(first));
        sequence_.push_back(std::move(above));
        return true;
    }

    int64_t places(int32_t symbol) const {
        return is_loop(symbol) ? places_[symbol - symbols_] : 1;
    }

    void learn(const popmodel::LongVector<int32_t> &level, const Stretches &stretches, const Found &loop) {
        const int32_t end = loop.begin + loop.period;
        const auto key = std::make_pair(loop.period, stretches.hash(loop.begin, end));
        if (known_.emplace(key, symbols_ + int32_t(bodies_.size())).second) {
            bodies_.emplace_back(level.begin() + loop.begin, level.begin() + end);
            places_.push_back(0);
            for (const int32_t each : bodies_.back())
                places_.back() += places(each);
            if (alone_ && loop.period <= LONGEST)
                lengths_.insert(loop.period);
        }
    }

    // The loop that has a stretch as its body, or -1.
    int32_t symbol(const Stretches &stretches, int32_t begin, int32_t period) const {
        const auto found = known_.find({period, stretches.hash(begin, begin + period)});
        return found == known_.end() ? -1 : found->second;
    }

    // The loop whose body stands at a place once, or too seldom to be a loop by itself, or -1.
    int32_t once(const Stretches &stretches, int32_t at, int32_t until) const {
        for (auto length = lengths_.rbegin(); length != lengths_.rend(); ++length)
            if (at + *length <= until)
                if (const int32_t known = symbol(stretches, at, *length); known >= 0)
                    return known;
        return -1;
    }

    // Bodies up to this length are known again where they stand alone.
    static constexpr int32_t LONGEST = 64;

    int32_t symbols_;
    bool alone_, shortest_;
    popmodel::LongVector<popmodel::LongVector<int32_t>> sequence_, first_, bodies_;
    std::map<std::pair<int32_t, uint64_t>, int32_t> known_;
    std::set<int32_t> lengths_;
    Places places_;
};

// How often each loop of the nest is repeated: always as often, or not.
struct Constant {
    int32_t count = -1;
    bool holds = true;

    void add(int32_t other) {
        holds = holds && (count < 0 || count == other);
        count = other;
    }
};

// A token or loop in a body. Of a loop that is too small `body` holds all that it executes.
struct Slot {
    int32_t symbol, node = -1;
    bool unrolled = false;
    popmodel::LongVector<Slot> body;
    Constant constant;

    int64_t places() const {
        int64_t sum = body.empty();
        for (const Slot &inner : body)
            sum += inner.places();
        return sum;
    }
};

// The nodes of the nest, numbered depth first, and where in it each token of the sequence is.
struct Nest {
    popmodel::LongVector<int32_t> token, parent, node, iteration;
    popmodel::LongVector<popmodel::LongVector<int32_t>> counts;

    Nest(const Levels &levels, size_t tokens) : node(tokens), iteration(tokens), levels_(levels) {
        Slot root{-1};
        for (const int32_t symbol : levels.top())
            root.body.push_back(slot(symbol));
        each(root, [&](int32_t item, Slot &mine) { tally(levels_.depth(), item, mine); });
        for (Slot &mine : root.body)
            unroll(mine);
        number(root, -1);
        counts[0].push_back(1);
        each(root, [&](int32_t item, Slot &mine) { walk(levels_.depth(), item, mine, 0); });
    }

  private:
    template <typename Do>
    void each(Slot &root, Do act) {
        for (size_t item = 0; item < root.body.size(); item++)
            act(int32_t(item), root.body[item]);
    }

    Slot slot(int32_t symbol) const {
        Slot made{symbol};
        if (levels_.is_loop(symbol))
            for (const int32_t inner : levels_.body(symbol))
                made.body.push_back(slot(inner));
        return made;
    }

    // Items that one stands for, in the level where they are more than one or tokens.
    std::pair<int32_t, int32_t> expanded(int32_t &level, int32_t item, const Slot &mine) const {
        int32_t end = item + 1;
        while (level > 0) {
            std::tie(item, end) = levels_.below(level--, item);
            if (levels_.at(level, item) != mine.symbol)
                break; // down to here it was one item
        }
        return {item, end};
    }

    void tally(int32_t level, int32_t item, Slot &mine) {
        if (!levels_.is_loop(mine.symbol))
            return;
        const auto [begin, end] = expanded(level, item, mine);
        const int32_t period = int32_t(mine.body.size());
        mine.constant.add((end - begin) / period);
        for (int32_t at = begin; at < end; at++)
            tally(level, at, mine.body[(at - begin) % period]);
    }

    static void unroll(Slot &mine) {
        for (Slot &inner : mine.body)
            unroll(inner);
        if (mine.body.empty() || !mine.constant.holds)
            return;
        const int64_t count = mine.constant.count;
        if (count > 1 && (count - 1) * mine.places() >= LEAST)
            return;
        mine.unrolled = true;
        const popmodel::LongVector<Slot> body = mine.body;
        for (int64_t turn = 1; turn < count; turn++)
            mine.body.insert(mine.body.end(), body.begin(), body.end());
    }

    void number(Slot &mine, int32_t above) {
        if (!mine.unrolled) {
            mine.node = int32_t(token.size());
            token.push_back(mine.body.empty() && above >= 0 ? mine.symbol : -1);
            parent.push_back(above);
            counts.emplace_back();
            passed_.push_back(0);
            above = mine.node;
        }
        for (Slot &inner : mine.body)
            number(inner, above);
    }

    void walk(int32_t level, int32_t item, const Slot &mine, int32_t turn) {
        const auto [begin, end] = expanded(level, item, mine);
        if (!levels_.is_loop(mine.symbol)) {
            node[begin] = mine.node;
            iteration[begin] = turn;
            return;
        }
        const int32_t period = int32_t(mine.body.size());
        if (!mine.unrolled)
            counts[mine.node].push_back((end - begin) / period);
        for (int32_t at = begin; at < end; at++) {
            const int32_t place = (at - begin) % period;
            if (!mine.unrolled && place == 0)
                passed_[mine.node]++;
            walk(level, at, mine.body[place], mine.unrolled ? turn : passed_[mine.node] - 1);
        }
    }

    const Levels &levels_;
    popmodel::LongVector<int32_t> passed_;
};

nb::tuple repetition(In<int32_t> tokens, bool alone, bool shortest) {
    int32_t symbols = 0;
    for (size_t i = 0; i < tokens.size(); i++) {
        check(tokens.data()[i] >= 0 && tokens.data()[i] < INT32_MAX / 2, "tokens must count from 0");
        symbols = std::max(symbols, tokens.data()[i] + 1);
    }
    check(tokens.size() < size_t(INT32_MAX / 2), "too many tokens");
    popmodel::LongVector<int64_t> offsets{0};
    popmodel::LongVector<int32_t> counts, token, parent, node, iteration;
    {
        nb::gil_scoped_release released;
        const Levels levels({tokens.data(), tokens.data() + tokens.size()}, symbols, alone, shortest);
        Nest nest(levels, tokens.size());
        for (const auto &each : nest.counts) {
            counts.insert(counts.end(), each.begin(), each.end());
            offsets.push_back(int64_t(counts.size()));
        }
        token = std::move(nest.token);
        parent = std::move(nest.parent);
        node = std::move(nest.node);
        iteration = std::move(nest.iteration);
    }
    return nb::make_tuple(numpy(std::move(token)), numpy(std::move(parent)),
                          numpy(std::move(offsets)), numpy(std::move(counts)),
                          numpy(std::move(node)), numpy(std::move(iteration)));
}

} // namespace

void bind_repetition(nb::module_ &module) {
    module.def("repetition", &repetition, nb::arg("tokens"), nb::arg("alone"), nb::arg("shortest"),
               "Nested loops of a sequence: token and parent of each node, offsets and counts of "
               "its executions, node and iteration of each token.");
}
