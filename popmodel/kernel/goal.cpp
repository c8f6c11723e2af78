#include "goal.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

namespace popmodel::untimed {

using scan::in_quotes;
using scan::is_digit;
using scan::is_space;
using scan::is_word;
using scan::ScanError;
using std::string_view;

// ---- labels -----------------------------------------------------------------------------------

std::size_t Labels::slot_of(string_view label) const {
    std::uint64_t hash = 0;
    for (const char c : label)
        hash = is_digit(c) ? hash * 10 + static_cast<std::uint64_t>(c - '0')
                           : (hash ^ static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15u;
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash ^ hash >> 40) & mask;
    // Where a run of numbers meets another one, a step of 1 would go through all of it.
    const std::size_t step = static_cast<std::size_t>(hash * 0xD6E8FEB86659FD93u >> 32) | 1;
    while (slots_[at].operation >= 0 &&
           string_view(text_.data() + slots_[at].text, slots_[at].length) != label)
        at = (at + step) & mask;
    return at;
}

std::int32_t Labels::find(string_view label) const {
    return slots_.empty() ? -1 : slots_[slot_of(label)].operation;
}

bool Labels::add(string_view label, std::int32_t operation) {
    if (2 * (used_ + 1) > slots_.size()) {
        std::vector<Slot> before(std::max<std::size_t>(16, 4 * slots_.size()));
        before.swap(slots_);
        for (const Slot &slot : before)
            if (slot.operation >= 0)
                slots_[slot_of(string_view(text_.data() + slot.text, slot.length))] = slot;
    }
    Slot &slot = slots_[slot_of(label)];
    if (slot.operation >= 0) return false;
    slot = {text_.size(), static_cast<std::uint32_t>(label.size()), operation};
    text_.append(label);
    ++used_;
    return true;
}

std::string Labels::of(std::int32_t operation) const {
    for (const Slot &slot : slots_)
        if (slot.operation == operation) return text_.substr(slot.text, slot.length);
    return "";
}

// ---- lines ------------------------------------------------------------------------------------

namespace {

// Takes a text apart from left to right.
class Cursor {
  public:
    explicit Cursor(string_view text) : at_(text.data()), end_(text.data() + text.size()) {}
    bool spaces() {  // at least one
        const char *const from = at_;
        while (at_ < end_ && is_space(*at_)) ++at_;
        return at_ > from;
    }
    string_view word() { return take(is_word); }
    string_view digits() { return take(is_digit); }
    bool literal(string_view text) {
        if (static_cast<std::size_t>(end_ - at_) < text.size() ||
            string_view(at_, text.size()) != text)
            return false;
        at_ += text.size();
        return true;
    }
    bool done() const { return at_ == end_; }

  private:
    template <typename Belongs>
    string_view take(Belongs belongs) {
        const char *const from = at_;
        while (at_ < end_ && belongs(*at_)) ++at_;
        return {from, static_cast<std::size_t>(at_ - from)};
    }
    const char *at_, *end_;
};

std::int64_t whole(string_view digits) {
    std::int64_t number = 0;
    if (digits.size() <= 18)
        for (const char digit : digits) number = number * 10 + (digit - '0');
    if (digits.size() > 18 || number > static_cast<std::int64_t>(kMost))
        throw LineProblem(std::string(digits.substr(0, 40)) +
                          " is larger than can be represented");
    return number;
}

// "(cpu N)? (nic N)?" and the end of the line.
bool place(Cursor &cursor, string_view &cpu) {
    Cursor before = cursor;
    if (cursor.spaces() && cursor.literal("cpu") && cursor.spaces()) {
        cpu = cursor.digits();
        if (cpu.empty() || cpu.size() > 3) return false;
        before = cursor;
    } else {
        cursor = before;
    }
    if (cursor.spaces() && cursor.literal("nic") && cursor.spaces() && !cursor.digits().empty())
        return cursor.done();
    cursor = before;
    return cursor.done();
}

}  // namespace

void GoalScanner::feed(const char *text, std::size_t size) {
    lines_.feed(text, size, [this](string_view one) { line(one); });
}

void GoalScanner::line(string_view text) {
    try {
        text = scan::stripped(without_remarks(text));
        if (text.empty()) return;
        if (inside_ < 0)
            outside(text);
        else if (text == "}")
            close();
        else
            inside(text);
    } catch (const LineProblem &problem) {
        throw ScanError(lines_.number, problem.what());
    }
}

string_view GoalScanner::without_remarks(string_view text) {
    if (!remark_ && text.find('/') == text.npos) return text;
    kept_.clear();
    std::size_t at = 0;
    while (at < text.size()) {
        if (remark_) {
            const std::size_t end = text.find("*/", at);
            remark_ = end == text.npos;
            at = remark_ ? text.size() : end + 2;
            continue;
        }
        std::size_t begin = text.find('/', at);
        while (begin != text.npos &&
               (begin + 1 == text.size() || (text[begin + 1] != '/' && text[begin + 1] != '*')))
            begin = text.find('/', begin + 1);
        kept_.append(text.substr(at, begin == text.npos ? text.npos : begin - at));
        if (begin == text.npos || text[begin + 1] == '/') break;
        remark_ = true;
        at = begin + 2;
    }
    return kept_;
}

void GoalScanner::outside(string_view text) {
    Cursor counted(text), named(text);
    if (counted.literal("num_ranks") && counted.spaces()) {
        const string_view digits = counted.digits();
        if (!digits.empty() && counted.done()) {
            if (count_) throw LineProblem("num_ranks is given twice");
            count_ = whole(digits);
            return;
        }
    }
    if (named.literal("rank") && named.spaces()) {
        const string_view digits = named.digits();
        named.spaces();
        if (!digits.empty() && named.literal("{") && named.done()) {
            const std::int64_t rank = whole(digits);
            if (rank >= count_)
                throw LineProblem("rank " + std::to_string(rank) + " of num_ranks " +
                                  std::to_string(count_));
            if (given_.count(rank))
                throw LineProblem("rank " + std::to_string(rank) + " is given twice");
            rank_ = (given_[rank] = std::make_unique<GoalRank>()).get();
            labels_ = std::make_unique<Labels>();
            inside_ = rank;
            return;
        }
    }
    throw LineProblem("must be num_ranks or rank, not " + in_quotes(text));
}

void GoalScanner::inside(string_view text) {
    if (!operation(text) && !need(text))
        throw LineProblem("not an operation of a rank: " + in_quotes(text));
}

bool GoalScanner::operation(string_view text) {
    Cursor cursor(text);
    string_view what = cursor.word(), label;
    Cursor after = cursor;
    after.spaces();
    if (!what.empty() && after.literal(":")) {
        label = what;
        cursor = after;
        cursor.spaces();
        what = cursor.word();
    }
    GoalOperation operation{0, 0, -1, 0, kCalc};
    string_view cpu;
    if (what == "calc") {
        if (!cursor.spaces()) return false;
        const string_view amount = cursor.digits();
        if (amount.empty() || !place(cursor, cpu)) return false;
        operation.amount = whole(amount);
    } else if (what == "send" || what == "recv") {
        operation.what = what == "send" ? kSends : kReceives;
        if (!cursor.spaces()) return false;
        const string_view size = cursor.digits();
        cursor.spaces();
        if (size.empty() || !cursor.literal("b") || !cursor.spaces()) return false;
        if (!cursor.literal(operation.what == kSends ? "to" : "from") || !cursor.spaces())
            return false;
        bool any = cursor.literal("-1");
        const string_view partner = any ? string_view() : cursor.digits();
        if (!any && partner.empty()) return false;
        string_view tag = "0";
        Cursor before = cursor;
        if (cursor.spaces() && cursor.literal("tag") && cursor.spaces()) {
            if (cursor.literal("-1"))
                any = true;
            else
                tag = cursor.digits();
            if (tag.empty()) return false;
        } else {
            cursor = before;
        }
        if (!place(cursor, cpu)) return false;
        if (any) throw LineProblem("a receive from any rank or with any tag: name them");
        operation.amount = whole(size);
        const std::int64_t other = whole(partner);
        if (other >= count_)
            throw LineProblem("rank " + std::string(partner) + " of num_ranks " +
                              std::to_string(count_));
        operation.partner = static_cast<std::int32_t>(other);
        operation.tag = whole(tag);
    } else {
        return false;
    }
    if (!cpu.empty()) operation.cpu = static_cast<std::int16_t>(whole(cpu));
    add(label, operation);
    return true;
}

void GoalScanner::add(string_view label, const GoalOperation &operation) {
    GoalRank &rank = *rank_;
    if (rank.operations.size() >= 0x7FFFFFFF)
        throw LineProblem("a rank has more operations than can be read");
    if (!label.empty() && !labels_->add(label, static_cast<std::int32_t>(rank.operations.size())))
        throw LineProblem("label " + in_quotes(label, label.size()) + " is used twice");
    rank.operations.push_back(operation);
}

bool GoalScanner::need(string_view text) {
    Cursor cursor(text);
    const string_view later = cursor.word();
    if (later.empty() || !cursor.spaces()) return false;
    const string_view what = cursor.word();
    if ((what != "requires" && what != "irequires") || !cursor.spaces()) return false;
    const string_view earlier = cursor.word();
    if (earlier.empty() || !cursor.done()) return false;
    std::int32_t ends[2];
    for (const bool second : {false, true}) {
        const string_view label = second ? earlier : later;
        if ((ends[second] = labels_->find(label)) < 0)
            throw LineProblem("no operation " + in_quotes(label, label.size()) +
                              " before this line");
    }
    rank_->needs.push_back(
        {ends[0], ends[1], what == "requires"});
    return true;
}

// The rank is complete: its needs by operation, and the operations as they are written, but each
// after those that it needs; one that waits for a message after those that are ready and do not.
void GoalScanner::close() {
    GoalRank &rank = *rank_;
    const std::size_t count = rank.operations.size();
    rank.operations.shrink_to_fit();
    rank.cpus.push_back(0);
    for (const GoalOperation &each : rank.operations)
        if (!std::binary_search(rank.cpus.begin(), rank.cpus.end(), each.cpu))
            rank.cpus.insert(std::lower_bound(rank.cpus.begin(), rank.cpus.end(), each.cpu),
                             each.cpu);
    std::stable_sort(rank.needs.begin(), rank.needs.end(),
                     [](const Need &a, const Need &b) { return a.later < b.later; });
    rank.needs.shrink_to_fit();
    rank.first.assign(count + 1, 0);
    std::vector<std::int64_t> after_first(count + 1, 0);
    for (const Need &each : rank.needs) {
        ++rank.first[static_cast<std::size_t>(each.later) + 1];
        ++after_first[static_cast<std::size_t>(each.earlier) + 1];
    }
    for (std::size_t at = 0; at < count; ++at) {
        rank.first[at + 1] += rank.first[at];
        after_first[at + 1] += after_first[at];
    }
    std::vector<std::int32_t> after(rank.needs.size());
    std::vector<std::int64_t> next(after_first.begin(), after_first.end() - 1);
    std::vector<std::uint8_t> waits(count);
    for (const Need &each : rank.needs) {
        const auto earlier = static_cast<std::size_t>(each.earlier);
        after[static_cast<std::size_t>(next[earlier]++)] = each.later;
        waits[static_cast<std::size_t>(each.later)] |=
            each.complete && rank.operations[earlier].what != kCalc;
    }
    using Ready = std::pair<bool, std::int32_t>;
    std::priority_queue<Ready, std::vector<Ready>, std::greater<Ready>> ready;
    std::vector<std::int32_t> missing(count);
    for (std::size_t at = 0; at < count; ++at) {
        missing[at] = static_cast<std::int32_t>(rank.first[at + 1] - rank.first[at]);
        if (!missing[at]) ready.emplace(false, static_cast<std::int32_t>(at));
    }
    rank.order.reserve(count);
    while (!ready.empty()) {
        const auto number = static_cast<std::size_t>(ready.top().second);
        ready.pop();
        rank.order.push_back(static_cast<std::int32_t>(number));
        for (std::int64_t at = after_first[number]; at < after_first[number + 1]; ++at) {
            const std::int32_t later = after[static_cast<std::size_t>(at)];
            if (!--missing[static_cast<std::size_t>(later)])
                ready.emplace(waits[static_cast<std::size_t>(later)] != 0, later);
        }
    }
    if (rank.order.size() < count) {
        const auto stuck = std::find_if(missing.begin(), missing.end(),
                                        [](std::int32_t number) { return number > 0; });
        const std::string label =
            labels_->of(static_cast<std::int32_t>(stuck - missing.begin()));
        throw ScanError(0, "operations of rank " + std::to_string(inside_) +
                               " need one another (" + in_quotes(label, label.size()) +
                               " first)");
    }
    labels_.reset();
    inside_ = -1;
}

// ---- sequences --------------------------------------------------------------------------------

namespace {

using Dependence = std::pair<std::int32_t, bool>;  // operation, and whether it must be complete

struct Processor {
    Actions *actions = nullptr;
    std::int32_t waits = 0;           // how often it has waited
    std::vector<Dependence> of_last;  // what the last operation that waited needed
};

// The operations of a rank as a sequence for each of its processors. What an operation needs of
// another processor is an empty message from there.
class Sequences {
  public:
    Sequences(const GoalRank &rank, Actions *first, const std::vector<std::int32_t> &partners,
              std::int32_t first_process)
        : rank_(rank), partners_(partners), first_process_(first_process) {
        processors_.resize(rank.cpus.size());
        for (std::size_t at = 0; at < processors_.size(); ++at)
            processors_[at].actions = first + at;
        const std::size_t count = rank.operations.size();
        place_.resize(count);
        for (std::size_t at = 0; at < count; ++at)
            place_[at] = static_cast<std::int16_t>(
                std::lower_bound(rank.cpus.begin(), rank.cpus.end(), rank.operations[at].cpu) -
                rank.cpus.begin());
        following_.assign(count, -1);
        request_.assign(count, 0);
        level_.assign(count, 0);
    }

    // How many operations begin later than the schedule asks for.
    std::int64_t fill() {
        std::vector<std::int32_t> last(processors_.size(), -1);
        for (const std::int32_t number : rank_.order) {
            std::int32_t &before = last[place(number)];
            if (before >= 0) following_[index(before)] = number;
            before = number;
            if (processors_.size() == 1) continue;
            for (const std::int32_t other : abroad(number)) {
                const auto tag = -1 - static_cast<std::int64_t>(tags_.size());
                tags_[{other, number}] = tag;
                if (!needs(number, {other, true}) || rank_.operations[index(other)].what == kCalc)
                    elsewhere_[other].push_back(number);
            }
        }
        std::int64_t held = 0;
        for (const std::int32_t number : rank_.order) held += act(number);
        for (const std::int32_t number : rank_.order) complete(number);
        return held;
    }

  private:
    static std::size_t index(std::int32_t number) { return static_cast<std::size_t>(number); }
    std::size_t place(std::int32_t number) const {
        return static_cast<std::size_t>(place_[index(number)]);
    }
    const Need *begin(std::int32_t number) const {
        return rank_.needs.data() + rank_.first[index(number)];
    }
    const Need *end(std::int32_t number) const {
        return rank_.needs.data() + rank_.first[index(number) + 1];
    }
    bool needs(std::int32_t number, const Dependence &wanted) const {
        return std::any_of(begin(number), end(number), [&](const Need &each) {
            return each.earlier == wanted.first && each.complete == wanted.second;
        });
    }
    // The operations of other processors that an operation needs.
    std::vector<std::int32_t> abroad(std::int32_t number) const {
        std::vector<std::int32_t> others;
        for (const Need *each = begin(number); each < end(number); ++each)
            if (place(each->earlier) != place(number) &&
                std::find(others.begin(), others.end(), each->earlier) == others.end())
                others.push_back(each->earlier);
        return others;
    }
    // Wait for a message, unless this is done.
    bool complete(std::int32_t number) {
        std::int32_t &request = request_[index(number)];
        if (!request) return false;
        processors_[place(number)].actions->call(kWait, request);
        request = 0;
        return true;
    }
    // Send the message that lets an operation of another processor begin.
    void tell(std::int32_t later, std::int32_t earlier) {
        processors_[place(earlier)].actions->message(kIsend, process(place(later)),
                                                     tags_.at({earlier, later}), 0);
    }
    // Wait until an operation of another processor is as far as one needs it.
    void hear(std::int32_t later, std::int32_t earlier) {
        Processor &there = processors_[place(earlier)];
        const auto told = elsewhere_.find(earlier);
        if (told == elsewhere_.end() ||
            std::find(told->second.begin(), told->second.end(), later) == told->second.end()) {
            if (complete(earlier)) {  // a message that has to be complete
                ++there.waits;
                there.of_last = {{earlier, true}};
            }
            tell(later, earlier);
        }
        processors_[place(later)].actions->message(kRecv, process(place(earlier)),
                                                   tags_.at({earlier, later}), 0);
    }
    std::int32_t process(std::size_t place) const {
        return first_process_ + static_cast<std::int32_t>(place);
    }

    // Do the next operation; whether it begins later than the schedule asks for.
    bool act(std::int32_t number) {
        Processor &mine = processors_[place(number)];
        std::int32_t &level = level_[index(number)];
        bool waited = false;
        for (const Need *each = begin(number); each < end(number); ++each) {
            if (place(each->earlier) == place(number))
                level = std::max(level, level_[index(each->earlier)]);
            else
                waited = true;
        }
        if (mine.waits && std::all_of(mine.of_last.begin(), mine.of_last.end(),
                                      [&](const Dependence &one) { return needs(number, one); }))
            level = mine.waits;
        const bool held = level < mine.waits;
        if (waited)
            for (const std::int32_t other : abroad(number)) hear(number, other);
        for (const Need *each = begin(number); each < end(number); ++each)
            if (place(each->earlier) == place(number) && each->complete)
                waited |= complete(each->earlier);
        const GoalOperation &operation = rank_.operations[index(number)];
        const std::int32_t after = following_[index(number)];
        const bool at_once = after >= 0 && needs(after, {number, true});
        if (operation.what == kCalc) {
            mine.actions->compute(static_cast<double>(operation.amount));
        } else {
            const bool sends = operation.what == kSends;
            const std::int32_t partner =
                partners_.empty() ? operation.partner : partners_[index(number)];
            if (at_once) {
                mine.actions->message(sends ? kSend : kRecv, partner, operation.tag,
                                      operation.amount);
                waited = true;
            } else {
                request_[index(number)] = mine.actions->request();
                mine.actions->message(sends ? kIsend : kIrecv, partner, operation.tag,
                                      operation.amount, request_[index(number)]);
            }
        }
        if (waited) {
            level = ++mine.waits;
            mine.of_last.clear();
            if (at_once)
                mine.of_last.emplace_back(number, true);
            else
                for (const Need *each = begin(number); each < end(number); ++each)
                    mine.of_last.emplace_back(each->earlier, each->complete);
        }
        const auto told = elsewhere_.find(number);
        if (told != elsewhere_.end())
            for (const std::int32_t later : told->second) tell(later, number);
        return held;
    }

    const GoalRank &rank_;
    const std::vector<std::int32_t> &partners_;
    std::int32_t first_process_;
    std::vector<Processor> processors_;
    std::vector<std::int16_t> place_;      // processor of each operation
    std::vector<std::int32_t> following_;  // the next operation of the same processor
    std::vector<std::int32_t> request_;    // of messages that nobody has waited for; 0: none
    std::vector<std::int32_t> level_;      // the last of the operations that wait, from 1, that
                                           // each is after
    // Operations of other processors that can go on when one begins, and the tags that tell them.
    std::unordered_map<std::int32_t, std::vector<std::int32_t>> elsewhere_;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> tags_;
};

}  // namespace

// Process of the other end of each message, by rank and operation; nothing where all ranks have
// one processor. The k-th send of a rank to another with a tag meets the k-th receive; one of which
// there is none is taken to the first processor, so that it is missed there.
std::vector<std::vector<std::int32_t>> GoalScanner::partners() const {
    std::vector<std::vector<std::int32_t>> found(ranks_.size());
    if (processes.size() == ranks_.size()) return found;
    using End = std::pair<std::size_t, std::size_t>;  // rank and operation
    std::map<std::tuple<std::size_t, std::size_t, std::int64_t, bool>, std::vector<End>> ends;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const auto &operations = ranks_[rank]->operations;
        found[rank].assign(operations.size(), -1);
        for (std::size_t row = 0; row < operations.size(); ++row) {
            if (operations[row].what == kCalc) continue;
            const bool sends = operations[row].what == kSends;
            const auto other = static_cast<std::size_t>(operations[row].partner);
            ends[{sends ? rank : other, sends ? other : rank, operations[row].tag, sends}]
                .emplace_back(rank, row);
        }
    }
    for (const auto &[key, mine] : ends) {
        const auto &[sender, receiver, tag, sends] = key;
        const std::size_t partner = sends ? receiver : sender;
        const auto others = ends.find({sender, receiver, tag, !sends});
        const auto &cpus = ranks_[partner]->cpus;
        for (std::size_t turn = 0; turn < mine.size(); ++turn) {
            std::int16_t cpu = 0;
            if (others != ends.end() && turn < others->second.size())
                cpu = ranks_[partner]->operations[others->second[turn].second].cpu;
            const auto at = std::lower_bound(cpus.begin(), cpus.end(), cpu) - cpus.begin();
            found[mine[turn].first][mine[turn].second] =
                static_cast<std::int32_t>(first_process_[partner] + at);
        }
    }
    return found;
}

void GoalScanner::finish() {
    lines_.finish([this](string_view one) { line(one); });
    if (inside_ >= 0)
        throw ScanError(0, "rank " + std::to_string(inside_) + " has no end: } is missing");
    if (!count_) throw ScanError(0, "the file has no schedule");
    for (std::int64_t rank = 0; rank < count_; ++rank) {
        const auto found = given_.find(rank);
        if (found == given_.end())
            throw ScanError(0, "no operations of rank " + std::to_string(rank));
        ranks_.push_back(std::move(found->second));
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        first_process_.push_back(static_cast<std::int64_t>(processes.size()));
        for (std::size_t cpu = 0; cpu < ranks_[rank]->cpus.size(); ++cpu) {
            processes.emplace_back(static_cast<std::int64_t>(processes.size()));
            rank_of.push_back(static_cast<std::int64_t>(rank));
        }
    }
    const auto partner_of = partners();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const auto first = static_cast<std::size_t>(first_process_[rank]);
        Sequences sequences(*ranks_[rank], &processes[first], partner_of[rank],
                            static_cast<std::int32_t>(first));
        try {
            held += sequences.fill();
        } catch (const LineProblem &problem) {
            throw ScanError(0, problem.what());
        }
        ranks_[rank].reset();
    }
}

}  // namespace popmodel::untimed
