#include "scanner.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "fields.hpp"

namespace popmodel::scan {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kLongestLine = std::size_t{1} << 26;
constexpr std::int64_t kElsewhere = -1;  // a location of another application

// Threads of each task of the application whose records are kept.
const std::vector<std::int64_t> &chosen(const Layout &layout) {
    return layout.threads[static_cast<std::size_t>(layout.application - 1)];
}

std::size_t locations_of(const Layout &layout) {
    const auto &threads = chosen(layout);
    return static_cast<std::size_t>(
        std::accumulate(threads.begin(), threads.end(), std::int64_t{0}));
}

}  // namespace

// ---- set-up -----------------------------------------------------------------------------------

Scanner::Scanner(const Layout &layout)
    : layout_(layout),
      latest_(kLargest / layout.unit),
      line_(layout.line),
      streams_(locations_of(layout)),
      last_begin_(streams_.locations()),
      disorder_(streams_.locations()) {
    for (auto &first : first_) first.resize(streams_.locations());
    std::int64_t location = 0;
    for (const std::int64_t threads : chosen(layout_)) {
        first_location_.push_back(location);
        location += threads;
    }
    std::int64_t objects = 0;
    for (const auto &application : layout_.threads)
        objects = std::accumulate(application.begin(), application.end(), objects);
    int bits = 8;
    while (bits < 20 && (std::int64_t{1} << bits) < 4 * objects) ++bits;
    prefixes_.resize(std::size_t{1} << bits);
    prefix_shift_ = 64 - bits;
}

// ---- errors and notices -----------------------------------------------------------------------

POPMODEL_COLD void Scanner::fail(const std::string &reason) const { throw ScanError(line_, reason); }

POPMODEL_COLD void Scanner::fail_field(const char *line, int field,
                                       const std::string &problem) const {
    fail("field " + std::to_string(field) + " (" + field_name(*line, field) + ") " + problem);
}

POPMODEL_COLD void Scanner::fail_count(const char *line) const {
    std::int64_t fields = 1;
    for (const char *at = line; *at != '\n'; ++at) fields += *at == ':';
    const char *what = *line == '1'   ? "a state record has 8 fields"
                       : *line == '2' ? "an event record has a time and pairs of type and value"
                       : *line == '3' ? "a communication record has 15 fields"
                                      : "a communicator has an application, an identifier and "
                                        "its number of ranks";
    fail(std::string(what) + ", this line has " + plural(fields, "field"));
}

POPMODEL_COLD void Scanner::note(int notice) {
    if (tallies_[notice].count++ == 0) tallies_[notice].line = line_;
}

// Whether a location has no record in a table yet; then this one is remembered.
POPMODEL_COLD bool Scanner::is_first(int table, std::size_t location, std::int64_t time) {
    if (streams_[location].count[table]) return false;
    first_[table][location] = {time, line_};
    return true;
}

// ---- fields -----------------------------------------------------------------------------------

// Any field, whatever its form: its value (as two's complement), or the error it makes.
POPMODEL_COLD std::uint64_t Scanner::carefully(const char *&at, const char *line, int field,
                                               bool last) {
    const char *const end = field_end(at);
    const char *const name = field_name(*line, field);
    const bool signed_field = !std::strcmp(name, "value") || !std::strcmp(name, "tag");
    const bool wraps = !std::strcmp(name, "value");  // counters of 64 bits without a sign
    const bool is_time = *line == '1'   ? field == 6 || field == 7
                         : *line == '2' ? field == 6
                         : *line == '3' && (field == 6 || field == 7 || field == 12 || field == 13);
    std::uint64_t limit = static_cast<std::uint64_t>(is_time ? latest_ : kLargest);
    int bits = 64;
    if (!std::strcmp(name, "type")) limit = 0xFFFFFFFFu, bits = 32;
    if (!std::strcmp(name, "state")) limit = 0x7FFFFFFFu, bits = 32;
    if (wraps) limit = ~std::uint64_t{0};

    if (at == end) fail_field(line, field, "is empty");
    const bool negative = *at == '-';
    const char *digit = at + negative;
    if (digit == end) fail_field(line, field, "is not a number: " + quoted(at, end));
    for (const char *other = digit; other < end; ++other)
        if (*other < '0' || *other > '9')
            fail_field(line, field, "is not a number: " + quoted(at, end));
    if (negative && !signed_field) fail_field(line, field, "is negative: " + quoted(at, end));
    if (negative) limit = std::uint64_t{1} << 63;
    std::uint64_t value = 0;
    for (; digit < end; ++digit) {
        const auto unit = static_cast<std::uint64_t>(*digit - '0');
        if (value > (limit - unit) / 10)
            fail_field(line, field,
                       "does not fit " + std::to_string(bits) + " bits" +
                           (is_time && layout_.unit > 1 ? " in nanoseconds: " : ": ") +
                           quoted(at, end));
        value = value * 10 + unit;
    }
    if ((*end == ':') == last) fail_count(line);
    at = last ? line_end(end) : end + 1;
    return negative ? ~value + 1 : value;
}

// A field and what ends it: `at` moves behind the colon, or onto the line's end.
inline std::uint64_t Scanner::number(const char *&at, const char *line, int field, bool last) {
    const char *next = at;
    std::uint64_t value;
    if (POPMODEL_LIKELY(plain_number(next, value) && *next == (last ? '\n' : ':'))) {
        at = last ? next : next + 1;
        return value;
    }
    return carefully(at, line, field, last);
}

inline std::int64_t Scanner::time(const char *&at, const char *line, int field) {
    const char *const from = at;
    auto value = static_cast<std::int64_t>(number(at, line, field, false));
    if (POPMODEL_UNLIKELY(value > latest_)) {
        at = from;
        carefully(at, line, field, false);
    }
    return value * layout_.unit;
}

// cpu:application:task:thread: as one key of up to 16 characters, remembered with its location.
inline std::int64_t Scanner::locate(const char *&at, const char *line, int field) {
    const std::uint64_t low = load(at), high = load(at + 8);
    // Colons; a character after a colon may be taken for one, but no key that is remembered has it.
    const auto colons = [](std::uint64_t word) {
        word ^= 0x3A3A3A3A3A3A3A3Au;
        word = (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
        return ((word >> 7) * 0x0102040810204080u) >> 56;
    };
    std::uint64_t found = colons(low) | colons(high) << 8;
    found &= found - 1;
    found &= found - 1;
    found &= found - 1;
    if (POPMODEL_LIKELY(found != 0)) {
        // The last colon is part of the key, else a NUL before it could pass for padding.
        const auto length = static_cast<unsigned>(__builtin_ctzll(found)) + 1;
        const std::uint64_t key_low = low & kMask[length < 8 ? length : 8];
        const std::uint64_t key_high = high & kMask[length < 8 ? 0 : length - 8];
        const Prefix &prefix = prefixes_[((key_low ^ key_high * 0x9E3779B97F4A7C15u) *
                                          0xD6E8FEB86659FD93u) >> prefix_shift_];
        if (POPMODEL_LIKELY(prefix.low == key_low && prefix.high == key_high)) {
            at += length;
            return prefix.location;
        }
    }
    return locate_carefully(at, line, field);
}

POPMODEL_COLD std::int64_t Scanner::locate_carefully(const char *&at, const char *line, int field) {
    const char *const from = at;
    std::int64_t id[4];
    for (int part = 0; part < 4; ++part)
        id[part] = static_cast<std::int64_t>(carefully(at, line, field + part, false));
    const auto [cpu, application, task, thread] = id;
    const auto outside = [&](const std::string &who, const std::string &where, std::int64_t count) {
        fail(who + " is outside " + where + ", which has " + std::to_string(count));
    };
    if (layout_.cpus && cpu > layout_.cpus)
        outside("cpu " + std::to_string(cpu), "the header", layout_.cpus);
    const auto applications = static_cast<std::int64_t>(layout_.threads.size());
    if (application < 1 || application > applications)
        outside("application " + std::to_string(application), "the header", applications);
    const auto &tasks = layout_.threads[static_cast<std::size_t>(application - 1)];
    if (task < 1 || task > static_cast<std::int64_t>(tasks.size()))
        outside("task " + std::to_string(task), "application " + std::to_string(application),
                static_cast<std::int64_t>(tasks.size()));
    const std::int64_t threads = tasks[static_cast<std::size_t>(task - 1)];
    if (thread < 1 || thread > threads)
        outside("thread " + std::to_string(thread),
                "task " + std::to_string(task) + " of application " + std::to_string(application),
                threads);
    const std::int64_t location =
        application == layout_.application
            ? first_location_[static_cast<std::size_t>(task - 1)] + thread - 1
            : kElsewhere;
    const std::ptrdiff_t length = at - from;
    if (length <= 16) {
        const std::uint64_t low = load(from) & kMask[std::min<std::ptrdiff_t>(length, 8)];
        const std::uint64_t high = load(from + 8) & kMask[std::max<std::ptrdiff_t>(length - 8, 0)];
        prefixes_[((low ^ high * 0x9E3779B97F4A7C15u) * 0xD6E8FEB86659FD93u) >> prefix_shift_] = {
            low, high, location};
    }
    return location;
}

// ---- records ----------------------------------------------------------------------------------

inline const char *Scanner::state(const char *line) {
    const char *at = line + 2;
    const std::int64_t location = locate(at, line, 2);
    const std::int64_t begin = time(at, line, 6);
    const std::int64_t end = time(at, line, 7);
    const char *const last_field = at;
    const std::uint64_t state = number(at, line, 8, true);
    if (POPMODEL_UNLIKELY(state > 0x7FFFFFFF)) {
        at = last_field;
        carefully(at, line, 8, true);
    }
    if (POPMODEL_UNLIKELY(end < begin))
        fail("the state ends before it begins (begin " + std::to_string(begin) + " ns, end " +
             std::to_string(end) + " ns)");
    if (POPMODEL_UNLIKELY(location == kElsewhere)) {
        end_elsewhere_ = std::max(end_elsewhere_, end);
        return at + 1;
    }

    const auto index = static_cast<std::size_t>(location);
    reach(begin, end);
    if (POPMODEL_UNLIKELY(end > layout_.duration)) note(kAfterEnd);
    if (POPMODEL_UNLIKELY(begin < streams_[index].last[kStates]) &&
        !is_first(kStates, index, begin)) {
        if (begin < last_begin_[index]) {
            disorder_[index] |= 1 << kStates;
            note(kStatesDisordered);
        } else {
            note(kStatesOverlap);
        }
    }
    last_begin_[index] = begin;
    streams_.state(index, begin, end, state);
    return at + 1;
}

inline const char *Scanner::event(const char *line) {
    const char *at = line + 2;
    const std::int64_t location = locate(at, line, 2);
    const std::int64_t time = this->time(at, line, 6);
    const bool kept = location != kElsewhere;
    const auto index = static_cast<std::size_t>(location);
    if (POPMODEL_LIKELY(kept)) {
        reach(time, time);
        if (POPMODEL_UNLIKELY(time > layout_.duration)) note(kAfterEnd);
        if (POPMODEL_UNLIKELY(time < streams_[index].last[kEvents]) &&
            !is_first(kEvents, index, time)) {
            disorder_[index] |= 1 << kEvents;
            note(kEventsDisordered);
        }
    } else {
        end_elsewhere_ = std::max(end_elsewhere_, time);
    }
    for (int field = 7;; field += 2) {
        const char *from = at;
        const std::uint64_t type = number(at, line, field, false);
        if (POPMODEL_UNLIKELY(type > 0xFFFFFFFFu)) {
            at = from;
            carefully(at, line, field, false);
        }
        from = at;
        std::uint64_t value;
        bool more;
        if (POPMODEL_LIKELY(plain_number(at, value) && (*at == '\n' || *at == ':'))) {
            more = *at == ':';
        } else {
            more = *field_end(from) == ':';
            at = from;
            value = carefully(at, line, field + 1, !more);
            at -= more;
        }
        ++at;
        if (POPMODEL_LIKELY(kept)) streams_.event(index, time, type, value);
        if (!more) return at;
    }
}

inline const char *Scanner::message(const char *line) {
    const char *at = line + 2;
    const std::int64_t sender = locate(at, line, 2);
    const std::int64_t logical_send = time(at, line, 6);
    const std::int64_t physical_send = time(at, line, 7);
    const std::int64_t receiver = locate(at, line, 8);
    const std::int64_t logical_receive = time(at, line, 12);
    const std::int64_t physical_receive = time(at, line, 13);
    const std::uint64_t size = number(at, line, 14, false);
    const auto tag = static_cast<std::int64_t>(number(at, line, 15, true));
    if (POPMODEL_UNLIKELY(sender == kElsewhere || receiver == kElsewhere)) {
        if (sender != receiver) note(kForeignMessage);
        return at + 1;
    }
    const auto [first, last] =
        std::minmax({logical_send, physical_send, logical_receive, physical_receive});
    reach(first, last);
    if (POPMODEL_UNLIKELY(std::max(physical_send, physical_receive) > layout_.duration))
        note(kAfterEnd);
    const auto index = static_cast<std::size_t>(sender);
    if (POPMODEL_UNLIKELY(physical_send < streams_[index].last[kMessages]) &&
        !is_first(kMessages, index, physical_send)) {
        disorder_[index] |= 1 << kMessages;
        note(kMessagesDisordered);
    }
    streams_.message(index, receiver, logical_send, physical_send, logical_receive,
                      physical_receive, size, tag);
    return at + 1;
}

// Comments, blank lines, communicators and what is no record at all.
POPMODEL_COLD const char *Scanner::other(const char *line) {
    const char *const end = line_end(line);
    if (*line == '#') {
        note(kComment);
    } else if (line == end || (*line == '\r' && line + 1 == end)) {
        // A blank line.
    } else {
        const char *const name_end = *line == ':' ? line : field_end(line);
        const bool one = name_end - line == 1;
        if (one && *line == 'c') {
            communicator(line);
        } else if (one && (*line == 'i' || *line == 'I')) {
            note(kIntercommunicator);
        } else if (one && *line == '4') {
            note(kGlobalOperation);  // of old versions of Paraver, which passes over them
        } else if (one && *line >= '1' && *line <= '3') {
            fail_count(line);  // the type and nothing else
        } else {
            fail("unknown record type " + quoted(line, name_end));
        }
    }
    return end + 1;
}

void Scanner::communicator(const char *line) {
    const char *at = line + 1;
    if (*at != ':') fail_count(line);
    ++at;
    const auto field = [&](int number, bool last) {
        return static_cast<std::int64_t>(carefully(at, line, number, last));
    };
    const std::int64_t application = field(2, false);
    const auto applications = static_cast<std::int64_t>(layout_.threads.size());
    if (application < 1 || application > applications)
        fail("application " + std::to_string(application) +
             " is outside the header, which has " + std::to_string(applications));
    const std::int64_t id = field(3, false);
    std::int64_t listed = 0;
    for (const char *colon = at; *colon != '\n'; ++colon) listed += *colon == ':';
    const std::int64_t size = field(4, listed == 0);
    if (size != listed)
        fail("communicator " + std::to_string(id) + " lists " + plural(listed, "rank") + ", not " +
             std::to_string(size));
    Communicator found{id, {}, line_, {}};
    const auto tasks = static_cast<std::int64_t>(
        layout_.threads[static_cast<std::size_t>(application - 1)].size());
    for (std::int64_t rank = 0; rank < size; ++rank) {
        const std::int64_t task = field(static_cast<int>(5 + rank), rank + 1 == size);
        if (task < 1 || task > tasks)
            fail("task " + std::to_string(task) + " is outside application " +
                 std::to_string(application) + ", which has " + std::to_string(tasks));
        found.ranks.push_back(static_cast<std::int32_t>(task - 1));
    }
    if (application != layout_.application) return;
    // There are as many as processes: each has its MPI_COMM_SELF.
    const auto [known, is_new] = communicator_index_.try_emplace(id, communicators_.size());
    if (is_new) {
        found.first = found.ranks;
        communicators_.push_back(std::move(found));
        return;
    }
    Communicator &before = communicators_[known->second];
    if (before.ranks != found.ranks) note(kCommunicatorAgain);
    before.ranks = std::move(found.ranks);
}

// ---- text -------------------------------------------------------------------------------------

// Scan whole lines; a little more than the last of them can be read.
void Scanner::scan(const char *from, const char *to) {
    while (from < to) {
        ++line_;
        if (POPMODEL_LIKELY(from[1] == ':')) {
            if (from[0] == '2') {
                from = event(from);
                continue;
            }
            if (from[0] == '1') {
                from = state(from);
                continue;
            }
            if (from[0] == '3') {
                from = message(from);
                continue;
            }
        }
        from = other(from);
    }
}

void Scanner::feed(const char *text, std::size_t size) {
    const char *const end = text + size;
    const auto last_line_end = [](const char *from, const char *to) {
        while (to > from && to[-1] != '\n') --to;
        return to;  // behind it, or `from`
    };
    if (!carry_.empty()) {
        const auto *found = static_cast<const char *>(std::memchr(text, '\n', size));
        const char *const stop = found ? found + 1 : end;
        carry_.append(text, stop);
        text = stop;
        if (found) {
            const std::size_t whole = carry_.size();
            carry_.append(kPadding, '\0');
            scan(carry_.data(), carry_.data() + whole);
            carry_.clear();
        } else if (carry_.size() > kLongestLine) {
            ++line_;
            fail("the line is longer than 64 MiB");
        }
    }
    if (text == end) return;
    if (size > kPadding && text < end - kPadding) {
        const char *const whole = last_line_end(text, end - kPadding);
        scan(text, whole);
        text = whole;
    }
    // The rest may hold several lines; the next feed completes the last of them and scans all.
    carry_.append(text, end);
    if (carry_.size() > kLongestLine && !std::memchr(carry_.data(), '\n', carry_.size())) {
        ++line_;
        fail("the line is longer than 64 MiB");
    }
}

void Scanner::finish() {
    if (carry_.empty()) return;
    const bool complete = carry_.back() == '\n';
    std::size_t whole = carry_.size();
    if (!complete) whole = carry_.rfind('\n') + 1;  // npos + 1 is 0: no line end at all
    const std::string rest = carry_.substr(whole);
    carry_.resize(whole);
    carry_.append(kPadding, '\0');
    scan(carry_.data(), carry_.data() + whole);
    if (!complete) {
        carry_ = rest + '\n';
        carry_.append(kPadding, '\0');
        try {
            scan(carry_.data(), carry_.data() + rest.size() + 1);
        } catch (const ScanError &error) {
            throw ScanError(error.line, "the file ends in the middle of a record");
        }
        note(kUnended);
    }
    carry_.clear();
}

}  // namespace popmodel::scan
