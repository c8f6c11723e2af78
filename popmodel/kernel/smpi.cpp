#include "smpi.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "words.hpp"

namespace popmodel::untimed {

using scan::in_quotes;
using scan::is_digit;
using scan::is_space;
using scan::ScanError;
using std::string_view;

namespace {

// Bytes of the datatypes by SimGrid's numbers, from MPI_DOUBLE (0) to MPI_REAL16 (41).
constexpr std::int64_t kSizes[] = {8, 4, 1, 2, 8, 4, 1, 8,  1, 1, 2, 4,  8,  8, 16, 4, 1,  1, 2, 4, 8,
                                   1, 2, 4, 8, 8, 16, 32, 8, 8, 8, 16, 16, 8, 8, 8, 16, 16, 4, 4, 8, 16};
constexpr std::size_t kDigits = 9;             // of the largest rank
constexpr std::int32_t kNobody = -3;           // MPI_PROC_NULL
constexpr std::int32_t kCollectives = -4;      // keys of the requests that nonblocking ones open,
constexpr std::int32_t kExchanges = -5;        // and those of Sendrecv

struct Named {
    const char *action;
    const char *name;
};
constexpr Named kMessages[] = {
    {"send", "MPI_Send"},   {"isend", "MPI_Isend"},   {"recv", "MPI_Recv"},
    {"irecv", "MPI_Irecv"}, {"ssend", "MPI_Ssend"},   {"issend", "MPI_Issend"},
    {"bsend", "MPI_Bsend"}, {"ibsend", "MPI_Ibsend"}};
constexpr const char *kOneSided[] = {
    "put", "get", "accumulate", "get_accumulate", "compare_and_swap", "fetch_and_op", "win_fence",
    "win_start", "win_complete", "win_post", "win_wait", "win_lock", "win_lock_all", "win_unlock",
    "win_unlock_all", "win_flush", "win_flush_all", "win_flush_local", "win_flush_local_all"};
constexpr const char *kUnnamed[] = {"start", "startall", "waitany", "waitsome"};
constexpr const char *kLocal[] = {"location", "comm_size", "comm_split", "comm_dup"};

enum Which {
    kBarrier, kBcast, kGather, kGatherv, kScatter, kScatterv, kAllgather, kAllgatherv, kAlltoall,
    kAlltoallv, kAlltoallw, kReduce, kAllreduce, kReduceScatter, kReduceScatterBlock, kScan,
    kExscan
};  // as the names in actions.hpp
constexpr std::pair<const char *, Which> kCollectiveActions[] = {
    {"barrier", kBarrier},     {"bcast", kBcast},         {"reduce", kReduce},
    {"allreduce", kAllreduce}, {"scan", kScan},           {"exscan", kExscan},
    {"gather", kGather},       {"scatter", kScatter},     {"allgather", kAllgather},
    {"alltoall", kAlltoall},   {"gatherv", kGatherv},     {"scatterv", kScatterv},
    {"allgatherv", kAllgatherv}, {"alltoallv", kAlltoallv}, {"reducescatter", kReduceScatter}};

template <typename List>
bool among(const List &list, string_view text) {
    return std::any_of(std::begin(list), std::end(list),
                       [&](const char *one) { return text == one; });
}

std::int16_t number_of(string_view name) {
    for (std::int16_t number = 0; number < kNames_; ++number)
        if (name == kNames[number]) return number;
    return -1;
}

int collective_of(string_view action) {
    for (const auto &[name, which] : kCollectiveActions)
        if (action == name) return which;
    return -1;
}

// A rank as lines begin with it; -1: it is none.
std::int64_t rank_of(string_view word) {
    if (!word.empty() && word.front() == 'p') word.remove_prefix(1);
    if (word.substr(0, 5) == "rank-") word.remove_prefix(5);
    if (word.empty() || word.size() > kDigits) return -1;
    std::int64_t rank = 0;
    for (const char c : word) {
        if (!is_digit(c)) return -1;
        rank = rank * 10 + (c - '0');
    }
    return rank;
}

string_view next_word(const char *&at, const char *end) {
    while (at < end && is_space(*at)) ++at;
    const char *const from = at;
    while (at < end && !is_space(*at)) ++at;
    return {from, static_cast<std::size_t>(at - from)};
}

// A number as text; false where it is none. Up to 19 digits and a small power of ten are exact.
bool number(string_view text, double &value) {
    constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char *at = text.data();
    const char *const end = at + text.size();
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    std::uint64_t digits = 0;
    int count = 0, exponent = 0, used = 0;
    for (; at < end && is_digit(*at); ++at, ++count)
        if (digits || *at != '0') digits = digits * 10 + static_cast<std::uint64_t>(*at - '0'), ++used;
    if (at < end && *at == '.')
        for (++at; at < end && is_digit(*at); ++at, ++count, --exponent)
            if (digits || *at != '0')
                digits = digits * 10 + static_cast<std::uint64_t>(*at - '0'), ++used;
    if (!count) return false;
    bool small = used <= 18;
    if (at < end && (*at == 'e' || *at == 'E')) {
        ++at;
        const bool below = at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+')) ++at;
        if (at == end) return false;
        int power = 0;
        for (; at < end && is_digit(*at); ++at)
            if (power < 10000) power = power * 10 + (*at - '0');
        exponent += below ? -power : power;
    }
    if (at < end) return false;
    small = small && digits <= std::uint64_t{1} << 53 && exponent >= -22 && exponent <= 22;
    if (small) {
        value = static_cast<double>(digits);
        value = exponent < 0 ? value / powers[-exponent] : value * powers[exponent];
        if (negative) value = -value;
    } else {
        value = std::strtod(std::string(text).c_str(), nullptr);
    }
    return true;
}

}  // namespace

// ---- how many processes -----------------------------------------------------------------------

void SmpiRanks::feed(const char *text, std::size_t size) {
    lines_.feed(text, size, [this](string_view one) { line(one); });
}

void SmpiRanks::finish() {
    lines_.finish([this](string_view one) { line(one); });
}

void SmpiRanks::line(string_view text) {
    const char *at = text.data();
    count = std::max(count, 1 + rank_of(next_word(at, text.data() + text.size())));
}

// ---- lines ------------------------------------------------------------------------------------

void SmpiScanner::feed(const char *text, std::size_t size) {
    lines_.feed(text, size, [this](string_view one) { line(one); });
}

void SmpiScanner::end_file() {
    lines_.finish([this](string_view one) { line(one); });
    lines_.number = 0;
}

void SmpiScanner::line(string_view text) {
    try {
        const char *at = text.data();
        const char *const end = at + text.size();
        const string_view who = next_word(at, end);
        if (who.empty() || who.front() == '#') return;
        const std::int64_t rank = rank_of(who);
        const string_view named = next_word(at, end);
        if (rank < 0 || named.empty())
            throw LineProblem("not an action of a process: " + in_quotes(scan::stripped(text)));
        words_.clear();
        for (string_view word; !(word = next_word(at, end)).empty();) words_.push_back(word);
        auto found = of_.find(rank);
        if (found == of_.end())
            found = of_.emplace(rank, Process{Actions(rank), kSizes[6], {}}).first;
        Process &mine = found->second;
        unit_ = mine.unit;
        action_.assign(named);
        for (char &c : action_)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
        const bool starts = action_.front() == 'i';
        if (action_ == "compute") {
            mine.actions.compute(amount(0) * ns_per_flop_);
        } else if (action_ == "sleep") {
            mine.actions.compute(amount(0) * 1e9);
        } else if (action_ == "wait") {
            const std::int32_t source = partner(0), to = partner(1);
            const std::int64_t tag_ = tag(2);
            const Key key = tag_ < kAnyTag ? Key{kCollectives, 0, 0} : Key{source, to, tag_};
            wait(mine, key,
                 "from " + std::string(word(0)) + " to " + std::string(word(1)) + " with tag " +
                     std::string(word(2)));
        } else if (std::any_of(std::begin(kMessages), std::end(kMessages),
                               [&](const Named &one) { return action_ == one.action; })) {
            message(mine);
        } else if (action_ == "sendrecv") {
            exchange(mine);
        } else if (action_ == "waitall") {
            mine.open.clear();
            mine.actions.call(kWaitall);
        } else if (action_ == "test") {
            const std::int32_t source = partner(0), to = partner(1);
            const auto open = mine.open.find({source, to, tag(2)});
            if (open != mine.open.end())
                mine.actions.call(kTest, open->second.requests[open->second.done]);
            ++tests;
        } else if (action_ == "testall" || action_ == "testany" || action_ == "testsome") {
            ++tests_of_many;
        } else if (action_ == "init") {  // of SMPI's replay, which nobody waits for
            if (!words_.empty()) mine.unit = kSizes[0];
        } else if (action_ == "finalize") {
            mine.actions.call(kFinalize);
        } else if (const int which =
                       collective_of(string_view(action_).substr(starts ? 1 : 0));
                   which >= 0) {
            collective(mine, which, starts);
        } else if (const bool unnamed = among(kUnnamed, action_);
                   unnamed || action_ == "io" || among(kOneSided, action_)) {
            const char *const why = unnamed ? "which request it is about is not recorded"
                                    : action_ == "io" ? "files are not modelled"
                                                      : "one-sided operations are not modelled";
            throw LineProblem("action '" + std::string(named) + "' cannot be replayed: " + why);
        } else if (!among(kLocal, action_)) {
            throw LineProblem("unknown action " + in_quotes(action_));
        }
    } catch (const LineProblem &problem) {
        throw ScanError(lines_.number, problem.what());
    }
}

void SmpiScanner::wait(Process &mine, const Key &key, const std::string &what) {
    const auto open = mine.open.find(key);
    if (open == mine.open.end())  // those of which all are completed are taken out
        throw LineProblem("no open request " + what);
    mine.actions.call(kWait, open->second.requests[open->second.done++]);
    if (open->second.empty()) mine.open.erase(open);
}

void SmpiScanner::message(Process &mine) {
    const std::int32_t other = partner(0);
    const std::int64_t tag_ = tag(1);
    const bool receives = action_.find("recv") != std::string::npos;
    if (other == kNobody) return;
    if (!receives && (other == kAnySource || tag_ == kAnyTag))
        throw LineProblem(action_ + " to any process or with any tag");
    const auto rank = static_cast<std::int32_t>(mine.actions.rank);
    const std::int64_t bytes_ = receives && word(2) == "-1" ? 0 : size(2, 3);  // -1: not known
    const Named *const named =
        std::find_if(std::begin(kMessages), std::end(kMessages),
                     [&](const Named &one) { return action_ == one.action; });
    const Key key{receives ? other : rank, receives ? rank : other, tag_};
    const std::int32_t request = action_.front() == 'i' ? mine.opened(key) : -1;
    mine.actions.message(number_of(named->name), other, tag_, bytes_, request);
}

// A Sendrecv, whose tags are 0: the receive is posted, the send blocks.
void SmpiScanner::exchange(Process &mine) {
    const std::int32_t to = partner(1), source = partner(3);
    if (to == source && to == mine.actions.rank) return;  // a copy
    const Key key{kExchanges, 0, 0};
    if (source != kNobody) {
        const std::int64_t bytes_ = size(2, 5);
        mine.actions.message(kIrecv, source, 0, bytes_, mine.opened(key));
    }
    if (to != kNobody) mine.actions.message(kSend, to, 0, size(0, 4));
    if (source != kNobody) wait(mine, key, "");
}

void SmpiScanner::collective(Process &mine, int which, bool starts) {
    const auto n = static_cast<std::size_t>(count_);
    const std::int64_t rank = mine.actions.rank;
    double work = 0.0;
    std::int64_t sent = 0, received = 0;
    bool is_root = false;
    std::vector<std::int64_t> parts;
    const std::string name = starts ? action_.substr(1) : action_;
    const auto within = [&](double bytes_) {
        if (bytes_ > kMost) {
            char text[32];
            std::snprintf(text, sizeof text, "%.3g", bytes_);
            throw LineProblem(name + " of " + text + " bytes");
        }
        return static_cast<std::int64_t>(bytes_);
    };
    const auto times = [&](std::int64_t bytes_, std::int64_t count) {
        return within(static_cast<double>(bytes_) * static_cast<double>(count));
    };
    switch (which) {
        case kBarrier:
            break;
        case kBcast:
            is_root = rank == whole(1, 0);
            (is_root ? sent : received) = size(0, 2);
            break;
        case kReduce:
            work = amount(1);
            is_root = rank == whole(2, 0);
            (is_root ? received : sent) = size(0, 3);
            break;
        case kAllreduce:
        case kScan:
        case kExscan:
            work = amount(1);
            sent = received = size(0, 2);
            break;
        case kGather:
        case kScatter:
            is_root = rank == whole(2, 0);
            sent = size(0, 3);
            received = size(1, 4);
            if (which == kScatter) sent = times(sent, is_root ? count_ : 0);
            if (which == kGather) received = times(received, is_root ? count_ : 0);
            break;
        case kAllgather:
        case kAlltoall:
            sent = size(0, 2);
            received = times(size(1, 3), count_);
            if (which == kAlltoall) sent = times(sent, count_);
            break;
        case kGatherv:
            is_root = rank == whole(1 + n, 0);
            received = bytes(sum(1, n), 3 + n) * is_root;
            sent = size(0, 2 + n);
            break;
        case kScatterv:
            is_root = rank == whole(1 + n, 0);
            sent = bytes(sum(0, n), 2 + n) * is_root;
            received = size(n, 3 + n);
            break;
        case kAllgatherv:
            sent = size(0, 1 + n);
            received = bytes(sum(1, n), 1 + n);
            break;
        case kReduceScatter:
            sent = bytes(sum(0, n), 1 + n);
            received = size(static_cast<std::size_t>(rank), 1 + n);
            work = amount(n);
            break;
        default:  // kAlltoallv
            sent = bytes(sum(1, n), 2 + 2 * n);
            received = bytes(sum(2 + n, n), 3 + 2 * n);
            for (std::size_t to = 0; to < n; ++to) parts.push_back(size(1 + to, 2 + 2 * n));
    }
    const std::int32_t request = starts ? mine.opened({kCollectives, 0, 0}) : -1;
    const int number = (starts ? kNonblocking : kCollective) + which;
    mine.actions.collective(static_cast<std::int16_t>(number), sent, received, is_root, 0, request,
                            std::move(parts));
    mine.actions.compute(work * ns_per_flop_);
}

// ---- words ------------------------------------------------------------------------------------

// An argument as it is written; empty where there is none.
string_view SmpiScanner::word(std::size_t place) const {
    return place < words_.size() ? words_[place] : string_view();
}

POPMODEL_COLD void SmpiScanner::wrong(std::size_t place, const char *what) const {
    throw LineProblem("argument " + std::to_string(place + 1) + " of " + action_ + " must be " +
                      what + ", " +
                      (place < words_.size() ? "not " + in_quotes(words_[place])
                                             : "there is none"));
}

double SmpiScanner::amount(std::size_t place) const {
    double value;
    if (place >= words_.size() || !number(words_[place], value) ||
        !(value >= 0 && value < std::numeric_limits<double>::infinity()))
        wrong(place, "a number");
    return value;
}

std::int64_t SmpiScanner::whole(std::size_t place) const {
    string_view text = word(place);
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    std::int64_t value = 0;
    bool good = !text.empty();
    for (const char c : text) {
        good = good && is_digit(c) && (value = value * 10 + (c - '0')) <= 0x7FFFFFFF;
        if (!good) break;
    }
    if (!good) wrong(place, "a whole number");
    return value;
}

std::int64_t SmpiScanner::whole(std::size_t place, std::int64_t missing) const {
    return place < words_.size() ? whole(place) : missing;
}

// The rank of a partner, `kAnySource` (as smpirun writes it, or MPI_ANY_SOURCE of SimGrid), or
// `kNobody`.
std::int32_t SmpiScanner::partner(std::size_t place) const {
    const string_view text = word(place);
    if (text == "-333" || text == "-555" || text == "-1") return kAnySource;
    if (text == "-666") return kNobody;
    return static_cast<std::int32_t>(whole(place));
}

// A tag, or `kAnyTag`; those of SimGrid's collectives are below.
std::int64_t SmpiScanner::tag(std::size_t place) const {
    const string_view text = word(place);
    if (text == "-444" || text == "-1") return kAnyTag;
    if (text.size() > 1 && text.size() <= 10 && text.front() == '-') {
        std::int64_t value = 0;
        bool good = true;
        for (const char c : text.substr(1))
            good = good && is_digit(c), value = value * 10 + (c - '0');
        if (good) return -value;
    }
    return whole(place);
}

double SmpiScanner::sum(std::size_t first, std::size_t count) const {
    double total = 0.0;
    for (std::size_t at = 0; at < count; ++at) total += amount(first + at);
    return total;
}

std::int64_t SmpiScanner::size(std::size_t count, std::size_t datatype) const {
    return bytes(amount(count), datatype);
}

// Bytes of a number of elements.
std::int64_t SmpiScanner::bytes(double elements, std::size_t datatype) const {
    double unit = static_cast<double>(unit_);
    if (datatype < words_.size()) {
        if (words_[datatype] == "-1")
            throw LineProblem(action_ + " of a derived datatype, whose size is not recorded");
        const std::int64_t number = whole(datatype);
        if (number >= static_cast<std::int64_t>(sizeof kSizes / sizeof *kSizes))
            throw LineProblem("unknown datatype " + std::to_string(number));
        unit = static_cast<double>(kSizes[number]);
    }
    if (elements * unit > kMost) {
        char text[32];
        std::snprintf(text, sizeof text, "%.3g", elements * unit);
        throw LineProblem(action_ + " of " + text + " bytes");
    }
    return static_cast<std::int64_t>(elements * unit);
}

// ---- the end ----------------------------------------------------------------------------------

void SmpiScanner::finish() {
    if (of_.empty()) throw ScanError(0, "the file has no actions");
    for (std::int64_t rank = 0; rank < static_cast<std::int64_t>(of_.size()); ++rank) {
        const auto found = of_.find(rank);
        if (found == of_.end())
            throw ScanError(0, "no actions of process " + std::to_string(rank));
        if (!found->second.open.empty())  // SimGrid waits for what is open in the end
            found->second.actions.call(kWaitall);
        processes.push_back(std::move(found->second.actions));
    }
    of_.clear();
    try {
        matched = match_receives(processes, sleep_);
    } catch (const LineProblem &problem) {
        throw ScanError(0, problem.what());
    }
}

}  // namespace popmodel::untimed
