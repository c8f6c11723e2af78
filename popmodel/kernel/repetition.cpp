// What repeats in a sequence of tokens: nested loops, whose counts may vary.
//
// The longest maximal repetitions become loops; those inside of a body are found in the body. The
// innermost loops then become tokens of their own, whatever their counts, and the search goes on in
// the shorter sequence: so loops around others whose counts vary are found, too.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

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

bool worth(int64_t length, int64_t period) {
    return length >= 2 * period && (length / period - 1) * period >= LEAST;
}

// Runs by where they are, those of similar length together.
class ByPlace {
  public:
    explicit ByPlace(std::vector<Run> runs) {
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
    std::vector<std::vector<Run>> classes_;
};

// The innermost loops of a stretch: of those that overlap the longest.
void choose(int32_t begin, int32_t end, int32_t below, const ByPlace &runs,
            std::vector<Found> &chosen) {
    using Waiting = std::tuple<int32_t, int32_t, int32_t>; // length, minus period, minus begin
    std::priority_queue<Waiting> waiting;
    const auto add = [&](int32_t first, int32_t stop, int32_t period) {
        if (worth(stop - first, period))
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
        std::vector<Found> inner;
        choose(first, first + period, period, runs, inner);
        if (inner.empty())
            chosen.push_back({first, period, count});
        for (int32_t turn = 0; turn < count && !inner.empty(); turn++)
            for (const Found &each : inner)
                chosen.push_back({each.begin + turn * period, each.period, each.count});
    }
}

// Sequences that become shorter: in each, the innermost loops of the one below are items.
class Levels {
  public:
    Levels(std::vector<int32_t> tokens, int32_t symbols) : symbols_(symbols) {
        sequence_.push_back(std::move(tokens));
        while (collapse()) {
        }
    }

    bool is_loop(int32_t symbol) const { return symbol >= symbols_; }

    const std::vector<int32_t> &body(int32_t symbol) const { return bodies_[symbol - symbols_]; }

    const std::vector<int32_t> &top() const { return sequence_.back(); }

    int32_t depth() const { return int32_t(first_.size()); }

    // Items of the level below that an item of a level (from 1) stands for.
    std::pair<int32_t, int32_t> below(int32_t level, int32_t item) const {
        const auto &first = first_[level - 1];
        return {first[item], first[item + 1]};
    }

  private:
    bool collapse() {
        const std::vector<int32_t> &level = sequence_.back();
        std::vector<Found> chosen;
        const Stretches stretches(level);
        choose(0, int32_t(level.size()), int32_t(level.size()),
               ByPlace(runs_of(level, stretches)), chosen);
        if (chosen.empty())
            return false;
        std::sort(chosen.begin(), chosen.end(),
                  [](const Found &a, const Found &b) { return a.begin < b.begin; });
        std::vector<int32_t> above, first;
        auto loop = chosen.begin();
        for (int32_t at = 0; at < int32_t(level.size());) {
            first.push_back(at);
            if (loop != chosen.end() && loop->begin == at) {
                above.push_back(symbol(level, stretches, *loop));
                at += loop->period * loop->count;
                ++loop;
            } else {
                above.push_back(level[at++]);
            }
        }
        first.push_back(int32_t(level.size()));
        first_.push_back(std::move(first));
        sequence_.push_back(std::move(above));
        return true;
    }

    int32_t symbol(const std::vector<int32_t> &level, const Stretches &stretches,
                   const Found &loop) {
        const int32_t end = loop.begin + loop.period;
        const auto key = std::make_pair(stretches.hash(loop.begin, end), loop.period);
        const auto [place, fresh] = known_.emplace(key, symbols_ + int32_t(bodies_.size()));
        if (fresh)
            bodies_.emplace_back(level.begin() + loop.begin, level.begin() + end);
        return place->second;
    }

    int32_t symbols_;
    std::vector<std::vector<int32_t>> sequence_, first_, bodies_;
    std::map<std::pair<uint64_t, int32_t>, int32_t> known_;
};

// The nodes of the nest, numbered depth first, and where in it each token of the sequence is.
struct Nest {
    std::vector<int32_t> token, parent, node, iteration;
    std::vector<std::vector<int32_t>> children, counts;

    Nest(const Levels &levels, size_t tokens) : node(tokens), iteration(tokens), levels_(levels) {
        add(-1, -1, levels.top());
        counts[0].push_back(1);
        for (size_t item = 0; item < levels.top().size(); item++)
            walk(levels.depth(), int32_t(item), children[0][item], 0);
    }

  private:
    void add(int32_t symbol, int32_t above, const std::vector<int32_t> &body) {
        const size_t mine = token.size();
        token.push_back(symbol);
        parent.push_back(above);
        children.emplace_back();
        counts.emplace_back();
        passed_.push_back(0);
        for (const int32_t each : body) {
            children[mine].push_back(int32_t(token.size()));
            if (levels_.is_loop(each))
                add(-1, int32_t(mine), levels_.body(each));
            else
                add(each, int32_t(mine), {});
        }
    }

    void walk(int32_t level, int32_t item, int32_t mine, int32_t turn) {
        int32_t end = item + 1;
        for (; level > 0; level--) {
            std::tie(item, end) = levels_.below(level, item);
            if (end - item > 1)
                break;
        }
        if (level == 0) {
            node[item] = mine;
            iteration[item] = turn;
            return;
        }
        const int32_t period = int32_t(children[mine].size());
        counts[mine].push_back((end - item) / period);
        for (int32_t at = item; at < end; at++) {
            const int32_t place = (at - item) % period;
            passed_[mine] += place == 0;
            walk(level - 1, at, children[mine][place], passed_[mine] - 1);
        }
    }

    const Levels &levels_;
    std::vector<int32_t> passed_;
};

nb::tuple repetition(In<int32_t> tokens) {
    int32_t symbols = 0;
    for (size_t i = 0; i < tokens.size(); i++) {
        check(tokens.data()[i] >= 0 && tokens.data()[i] < INT32_MAX / 2, "tokens must count from 0");
        symbols = std::max(symbols, tokens.data()[i] + 1);
    }
    check(tokens.size() < size_t(INT32_MAX / 2), "too many tokens");
    std::vector<int64_t> offsets{0};
    std::vector<int32_t> counts, token, parent, node, iteration;
    {
        nb::gil_scoped_release released;
        const Levels levels({tokens.data(), tokens.data() + tokens.size()}, symbols);
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
    module.def("repetition", &repetition, nb::arg("tokens"),
               "Nested loops of a sequence: token and parent of each node, offsets and counts of "
               "its executions, node and iteration of each token.");
}
