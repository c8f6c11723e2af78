// Which message each receive from any process, or with any tag, gets where messages take no time.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "actions.hpp"

namespace popmodel::untimed {
namespace {

using Pattern = std::pair<std::int32_t, std::int64_t>;  // of whom, with which tag

struct PatternHash {
    std::size_t operator()(const Pattern &one) const {
        return static_cast<std::size_t>(
            (static_cast<std::uint64_t>(static_cast<std::uint32_t>(one.first)) << 32 ^
             static_cast<std::uint64_t>(one.second)) *
            0x9E3779B97F4A7C15u);
    }
};

// The receives that a message, or a receive that names as much, fits; but for any at all.
std::vector<Pattern> patterns(std::int32_t sender, std::int64_t tag) {
    std::vector<Pattern> found;
    for (const Pattern &one :
         {Pattern{sender, tag}, Pattern{kAnySource, tag}, Pattern{sender, kAnyTag}})
        if (one != Pattern{kAnySource, kAnyTag} &&
            std::find(found.begin(), found.end(), one) == found.end())
            found.push_back(one);
    return found;
}

struct Message {
    std::int32_t sender;
    std::int64_t tag;
    double time;
    std::size_t row;  // of the call that sends it
};

// What a process is about to do.
struct Process {
    std::size_t at = 0;  // its next call
    double late = 0.0;   // how far it is behind its computing
    std::deque<Message> arrived;
    std::vector<std::size_t> posted;  // receives without a message
    std::unordered_map<std::int32_t, std::size_t> open;  // request: its receive
    std::set<std::size_t> waiting;
    std::unordered_set<std::size_t> collectives;
    std::unordered_map<std::size_t, Message> got;  // by receive
    std::unordered_map<std::size_t, double> slept;  // ns of each test
    std::unordered_set<std::size_t> tested;         // tests that have slept
    std::unordered_set<std::int32_t> done;          // requests that a test has found
    // Messages beyond the receives that name as much of them.
    std::unordered_map<Pattern, std::int64_t, PatternHash> spare;
};

class Matching {
  public:
    Matching(const std::vector<Actions> &actions, double sleep)
        : actions_(actions), sleep_(sleep), processes(actions.size()) {
        for (std::size_t rank = 0; rank < actions.size(); ++rank) {
            ready_.emplace(0.0, rank);
            for (const CollectiveCall &one : actions[rank].collectives)
                processes[rank].collectives.insert(static_cast<std::size_t>(one.call));
            for (std::size_t row = 0; row < actions[rank].calls.size(); ++row) {
                const Call &call = actions[rank].calls[row];
                if (call.name == kTest) processes[rank].slept[row] = sleep;
                if (is_send(call.name) && known(call.partner)) {
                    for (const Pattern &one :
                         patterns(static_cast<std::int32_t>(rank), call.tag))
                        ++process(call.partner).spare[one];
                } else if (is_receive(call.name)) {
                    for (const Pattern &one : patterns(call.partner, call.tag))
                        --processes[rank].spare[one];
                }
            }
        }
    }

    void run() {
        while (!ready_.empty()) {
            const auto [time, rank] = ready_.top();
            ready_.pop();
            Process &mine = processes[rank];
            if (mine.at == actions_[rank].calls.size()) continue;
            const Call &call = actions_[rank].calls[mine.at];
            const double now = call.time + mine.late;
            if (now > time)
                ready_.emplace(now, rank);
            else if (call.name == kTest)
                test(rank, call.request, time);
            else
                act(rank, time);
        }
    }

  private:
    bool known(std::int32_t rank) const {
        return rank >= 0 && static_cast<std::size_t>(rank) < actions_.size();
    }
    Process &process(std::int32_t rank) { return processes[static_cast<std::size_t>(rank)]; }

    void act(std::size_t rank, double now) {
        Process &mine = processes[rank];
        const std::size_t row = mine.at;
        const Call &call = actions_[rank].calls[row];
        std::set<std::size_t> needed;  // receives that it waits for
        if (call.request < 0 && mine.collectives.count(row)) {
            gathered_.push_back(rank);
            if (gathered_.size() == actions_.size()) {
                std::vector<std::size_t> together;
                together.swap(gathered_);
                for (const std::size_t one : together) go_on(one, now);
            }
            return;
        }
        if (is_send(call.name)) {
            const bool taken = deliver(
                call.partner, {static_cast<std::int32_t>(rank), call.tag, now, row});
            if (call.name == kSsend && !taken) return;
        } else if (is_receive(call.name)) {
            if (!mine.got.count(row) &&
                std::find(mine.posted.begin(), mine.posted.end(), row) == mine.posted.end())
                post(rank, row, now);
            if (call.request >= 0)
                mine.open[call.request] = row;
            else
                needed = {row};
        } else if (call.name == kWaitall) {
            for (const auto &[request, receive] : mine.open) needed.insert(receive);
        } else if (mine.open.count(call.request)) {
            needed = {mine.open[call.request]};
        }
        mine.waiting.clear();
        for (const std::size_t one : needed)
            if (!mine.got.count(one)) mine.waiting.insert(one);
        if (!mine.waiting.empty()) return;
        for (const std::size_t one : needed) now = std::max(now, mine.got.at(one).time);
        if (call.name == kWaitall)
            mine.open.clear();
        else if (call.name == kWait)
            mine.open.erase(call.request);
        go_on(rank, now);
    }

    // A test sleeps, then looks whether its receive has a message, or is of a send.
    void test(std::size_t rank, std::int32_t request, double now) {
        Process &mine = processes[rank];
        const std::size_t row = mine.at;
        if (mine.done.count(request)) {
            mine.slept[row] = 0.0;
        } else if (mine.tested.insert(row).second) {
            mine.slept[row] = sleep_ * turns_;
            ready_.emplace(now + mine.slept[row], rank);
            return;
        } else if (const auto open = mine.open.find(request);
                   open == mine.open.end() || mine.got.count(open->second)) {
            turns_ = 1;
            mine.done.insert(request);
        } else {
            ++turns_;
        }
        go_on(rank, now);
    }

    void go_on(std::size_t rank, double now) {
        Process &mine = processes[rank];
        mine.late = now - actions_[rank].calls[mine.at].time;
        ++mine.at;
        ready_.emplace(now, rank);
    }

    // Whether a receive takes a message, and leaves enough for those that name more of it.
    bool matches(std::int32_t rank, std::size_t row, const Message &message) {
        const Call &call = actions_[static_cast<std::size_t>(rank)].calls[row];
        if ((call.partner != kAnySource && call.partner != message.sender) ||
            (call.tag != kAnyTag && call.tag != message.tag))
            return false;
        auto &spare = process(rank).spare;
        const auto mine = patterns(call.partner, call.tag);
        const auto theirs = patterns(message.sender, message.tag);
        for (const Pattern &one : theirs) {
            if (std::find(mine.begin(), mine.end(), one) != mine.end()) continue;
            const auto left = spare.find(one);
            if (left == spare.end() || left->second <= 0) return false;
        }
        for (const Pattern &one : mine) ++spare[one];
        for (const Pattern &one : theirs) --spare[one];
        return true;
    }

    void post(std::size_t rank, std::size_t row, double now) {
        Process &mine = processes[rank];
        for (std::size_t at = 0; at < mine.arrived.size(); ++at) {
            const Message message = mine.arrived[at];
            if (!matches(static_cast<std::int32_t>(rank), row, message)) continue;
            mine.arrived.erase(mine.arrived.begin() + static_cast<std::ptrdiff_t>(at));
            mine.got.emplace(row, message);
            const auto sender = static_cast<std::size_t>(message.sender);
            if (processes[sender].at == message.row &&
                actions_[sender].calls[message.row].name == kSsend)
                go_on(sender, now);
            return;
        }
        mine.posted.push_back(row);
    }

    // Whether a receive takes it at once.
    bool deliver(std::int32_t rank, const Message &message) {
        if (!known(rank)) return true;  // of a process that does nothing: it is refused later
        Process &there = process(rank);
        for (std::size_t at = 0; at < there.posted.size(); ++at) {
            const std::size_t row = there.posted[at];
            if (!matches(rank, row, message)) continue;
            there.posted.erase(there.posted.begin() + static_cast<std::ptrdiff_t>(at));
            there.got.emplace(row, message);
            if (there.waiting.erase(row) && there.waiting.empty())
                ready_.emplace(message.time, static_cast<std::size_t>(rank));
            return true;
        }
        there.arrived.push_back(message);
        return false;
    }

    using Event = std::pair<double, std::size_t>;
    const std::vector<Actions> &actions_;
    double sleep_;
    double turns_ = 1;
    std::priority_queue<Event, std::vector<Event>, std::greater<Event>> ready_;
    std::vector<std::size_t> gathered_;  // in the collective that all are coming to

  public:
    std::vector<Process> processes;
};

// Let tests take some ns each, by their calls, and take these calls out.
void spend(Actions &actions, const std::unordered_map<std::size_t, double> &slept) {
    LongVector<Call> calls;
    std::deque<std::pair<double, double>> tests;
    std::vector<std::int64_t> place(actions.calls.size());
    double late = 0.0;
    for (std::size_t row = 0; row < actions.calls.size(); ++row) {
        Call call = actions.calls[row];
        if (call.name == kTest) {
            const double length = slept.at(row);
            tests.emplace_back(call.time, length);
            late += length;
        } else {
            place[row] = static_cast<std::int64_t>(calls.size());
            call.time += late;
            calls.push_back(call);
        }
    }
    LongVector<std::pair<double, double>> bursts;
    constexpr double never = std::numeric_limits<double>::infinity();
    double passed = 0.0;
    actions.bursts.emplace_back(never, never);
    for (const auto &[begin, end] : actions.bursts) {
        while (!tests.empty() && tests.front().first <= begin) {
            const auto [time, length] = tests.front();
            tests.pop_front();
            bursts.emplace_back(time + passed, time + passed + length);
            passed += length;
        }
        bursts.emplace_back(begin + passed, end + passed);
    }
    bursts.pop_back();
    actions.calls = std::move(calls);
    actions.bursts = std::move(bursts);
    for (CollectiveCall &one : actions.collectives)
        one.call = place[static_cast<std::size_t>(one.call)];
    actions.time += passed;
}

}  // namespace

std::int64_t match_receives(std::vector<Actions> &processes, double sleep) {
    std::vector<std::pair<std::size_t, std::size_t>> wild;  // process and call
    bool tests = false;
    for (std::size_t rank = 0; rank < processes.size(); ++rank)
        for (std::size_t row = 0; row < processes[rank].calls.size(); ++row) {
            const Call &call = processes[rank].calls[row];
            tests |= call.name == kTest;
            if (is_receive(call.name) && (call.partner == kAnySource || call.tag == kAnyTag))
                wild.emplace_back(rank, row);
        }
    if (wild.empty() && !tests) return 0;
    Matching matching(processes, sleep);
    matching.run();
    for (const auto &[rank, row] : wild) {
        const auto found = matching.processes[rank].got.find(row);
        if (found == matching.processes[rank].got.end())
            throw LineProblem("a receive of process " + std::to_string(rank) +
                              " from any process, or with any tag, gets no message");
        processes[rank].calls[row].partner = found->second.sender;
        processes[rank].calls[row].tag = found->second.tag;
    }
    for (std::size_t rank = 0; rank < processes.size(); ++rank)
        spend(processes[rank], matching.processes[rank].slept);
    return static_cast<std::int64_t>(wild.size());
}

}  // namespace popmodel::untimed
