#include "scanner.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace popmodel::scan {
namespace {

#if defined(__GNUC__)
#define POPMODEL_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define POPMODEL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define POPMODEL_COLD __attribute__((noinline, cold))
#else
#define POPMODEL_LIKELY(condition) (condition)
#define POPMODEL_UNLIKELY(condition) (condition)
#define POPMODEL_COLD
#endif

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kLongestLine = std::size_t{1} << 26;
constexpr std::size_t kRecord = 72;  // the longest record, and the bytes stored beyond its end
constexpr std::uint64_t kShort = std::uint64_t{1} << 56;  // smaller values take 0 to 7 bytes
constexpr std::int64_t kElsewhere = -1;                   // a location of another application

enum Kind : unsigned { kState, kEvent, kMessage, kWide };

inline std::uint64_t load(const void *from) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

inline void store(std::uint8_t *to, std::uint64_t word) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    std::memcpy(to, &word, 8);
}

constexpr std::uint64_t kPower[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Eight characters, the first in the lowest byte, as digits 0-9; all other characters are larger.
inline std::uint64_t digits(std::uint64_t word) { return word ^ 0x3030303030303030u; }

// How many digits come first, 0 to 8. (A carry out of a byte that is no digit only disturbs the
// bytes after it.)
inline unsigned leading_digits(std::uint64_t word) {
    const std::uint64_t others =
        ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
    return others ? static_cast<unsigned>(__builtin_ctzll(others)) >> 3 : 8;
}

// The value of the first `count` digits, 1 to 8: neighbours are joined in three steps.
inline std::uint64_t value_of(std::uint64_t word, unsigned count) {
    word <<= 64 - 8 * count;
    word = ((word * 2561) >> 8) & 0x00FF00FF00FF00FFu;
    word = ((word * 6553601) >> 16) & 0x0000FFFF0000FFFFu;
    return (word * 42949672960001u) >> 32;
}

// Read a number of 1 to 16 digits; false, with `at` unchanged, where there is none or a longer one.
inline bool plain_number(const char *&at, std::uint64_t &value) {
    const std::uint64_t word = digits(load(at));
    const unsigned count = leading_digits(word);
    if (POPMODEL_LIKELY(count - 1 < 7)) {
        value = value_of(word, count);
        at += count;
        return true;
    }
    if (POPMODEL_UNLIKELY(count == 0)) return false;
    const std::uint64_t next = digits(load(at + 8));
    const unsigned further = leading_digits(next);
    value = value_of(word, 8);
    if (further == 0) {
        at += 8;
        return true;
    }
    if (POPMODEL_UNLIKELY(further == 8 && static_cast<unsigned char>(at[16] - '0') < 10)) return false;
    value = value * kPower[further] + value_of(next, further);
    at += 8 + further;
    return true;
}

inline unsigned width(std::uint64_t value) {  // bytes without the leading zero ones, value < 2^62
    return (70u - static_cast<unsigned>(__builtin_clzll(2 * value + 1))) >> 3;
}
inline unsigned full_width(std::uint64_t value) {
    return value ? (71u - static_cast<unsigned>(__builtin_clzll(value))) >> 3 : 0;
}
constexpr std::uint64_t kMask[] = {0,          0xFF,         0xFFFF,         0xFFFFFF,        0xFFFFFFFF,
                                   0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF, ~std::uint64_t{0}};

inline std::uint64_t zigzag(std::int64_t value) {
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
inline std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

inline void put(std::uint8_t *&at, std::uint64_t value, unsigned bytes) {
    store(at, value);
    at += bytes;
}
inline std::uint64_t get(const std::uint8_t *&at, unsigned bytes) {
    const std::uint64_t value = load(at) & kMask[bytes];
    at += bytes;
    return value;
}

// The fields of a record by their number, from 1; an event's types and values alternate.
const char *field_name(char record, int field) {
    static const char *const common[] = {"cpu", "application", "task", "thread"};
    static const char *const state[] = {"begin", "end", "state"};
    static const char *const message[] = {"logical send",    "physical send",
                                          "receiver's cpu",  "receiver's application",
                                          "receiver's task", "receiver's thread",
                                          "logical receive", "physical receive",
                                          "size",            "tag"};
    if (record == 'c') {
        static const char *const head[] = {"application", "identifier", "number of ranks"};
        return field <= 4 ? head[field - 2] : "rank";
    }
    if (field <= 5) return common[field - 2];
    if (record == '1') return state[field - 6];
    if (record == '3') return message[field - 6];
    if (field == 6) return "time";
    return field % 2 ? "type" : "value";
}

const char *line_end(const char *from) {
    while (*from != '\n') ++from;
    return from;
}

const char *field_end(const char *from) {
    while (*from != ':' && *from != '\n') ++from;
    if (*from == '\n' && from[-1] == '\r') --from;
    return from;
}

// Text as it may stand in a message of one line.
std::string quoted(const char *from, const char *to) {
    constexpr std::ptrdiff_t longest = 24;
    std::string text = "'";
    for (const char *at = from; at < to && at < from + longest; ++at) {
        const auto byte = static_cast<unsigned char>(*at);
        if (byte >= 0x20 && byte < 0x7F) {
            text += *at;
        } else {
            char code[5];
            std::snprintf(code, sizeof code, "\\x%02x", byte);
            text += code;
        }
    }
    return text + (to - from > longest ? "...'" : "'");
}

std::string plural(std::int64_t count, const char *noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

// ---- memory -----------------------------------------------------------------------------------

std::uint8_t *Arena::take(std::size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    while (slab_ < slabs_.size() && slabs_[slab_].size - offset_ < bytes) {
        ++slab_;
        offset_ = 0;
    }
    if (slab_ == slabs_.size()) {
        constexpr std::size_t page = std::size_t{1} << 21;
        const std::size_t size = slabs_.empty() ? page / 8 : page;
        auto *memory = static_cast<std::uint8_t *>(std::aligned_alloc(size, size));
        if (!memory) throw std::bad_alloc();
        slabs_.push_back({std::unique_ptr<std::uint8_t[], Free>(memory), size});
#if defined(__linux__)
        // Hardly any page faults; where the system has no such pages nothing is lost.
        if (size == page) madvise(memory, size, MADV_HUGEPAGE);
#endif
    }
    std::uint8_t *taken = slabs_[slab_].memory.get() + offset_;
    offset_ += bytes;
    used_ += bytes;
    return taken;
}

void Arena::reset() { slab_ = offset_ = used_ = 0; }

void Arena::release() {
    if (used_) throw std::logic_error("streams are still held");
    slabs_.clear();
    slab_ = offset_ = 0;
}

// ---- set-up -----------------------------------------------------------------------------------

Scanner::Scanner(const Layout &layout)
    : layout_(layout), latest_(kLargest / layout.unit), line_(layout.line) {
    std::int64_t locations = 0, objects = 0;
    for (std::size_t application = 0; application < layout_.threads.size(); ++application)
        for (const std::int64_t threads : layout_.threads[application]) {
            objects += threads;
            if (static_cast<std::int64_t>(application) + 1 == layout_.application) {
                first_location_.push_back(locations);
                locations += threads;
            }
        }
    const auto count = static_cast<std::size_t>(locations);
    streams_.resize(count);
    ends_.resize(count);
    last_begin_.resize(count);
    disorder_.resize(count);
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

POPMODEL_COLD void Scanner::grow(std::size_t location) {
    Stream &stream = streams_[location];
    Ends &ends = ends_[location];
    std::size_t room = 256;
    if (ends.last) {
        ends.last->size = static_cast<std::size_t>(stream.at - ends.last->data());
        room = std::min<std::size_t>(2 * ends.last->room, std::size_t{1} << 14);
    }
    auto *chunk = new (arena_.take(sizeof(Chunk) + room)) Chunk{nullptr, 0, room};
    (ends.last ? ends.last->next : ends.first) = chunk;
    ends.last = chunk;
    stream.at = chunk->data();
    stream.room = chunk->data() + room - kRecord;
}

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
    if (POPMODEL_UNLIKELY(location == kElsewhere)) return at + 1;

    const auto index = static_cast<std::size_t>(location);
    Stream &stream = streams_[index];
    if (POPMODEL_UNLIKELY(stream.at >= stream.room)) grow(index);
    if (POPMODEL_UNLIKELY(end > layout_.duration)) note(kAfterEnd);
    std::uint8_t *to = stream.at;
    const auto gap = static_cast<std::uint64_t>(begin - stream.last[kStates]);
    const auto length = static_cast<std::uint64_t>(end - begin);
    if (POPMODEL_LIKELY(gap < kShort && length < kShort && state < 256)) {
        const unsigned gap_width = width(gap), length_width = width(length);
        put(to, kState | gap_width << 2 | length_width << 5 | state << 8, 2);
        put(to, gap, gap_width);
        put(to, length, length_width);
    } else {
        if (begin < last_begin_[index]) {
            disorder_[index] |= 1 << kStates;
            note(kStatesDisordered);
        } else if (begin < stream.last[kStates]) {
            note(kStatesOverlap);
        }
        put(to, kWide | kStates << 2, 1);
        put(to, static_cast<std::uint64_t>(begin), 8);
        put(to, static_cast<std::uint64_t>(end), 8);
        put(to, state, 4);
    }
    last_begin_[index] = begin;
    stream.last[kStates] = end;
    ++stream.count[kStates];
    stream.at = to;
    return at + 1;
}

inline const char *Scanner::event(const char *line) {
    const char *at = line + 2;
    const std::int64_t location = locate(at, line, 2);
    const std::int64_t time = this->time(at, line, 6);
    const bool kept = location != kElsewhere;
    const auto index = static_cast<std::size_t>(location);
    if (POPMODEL_LIKELY(kept)) {
        if (POPMODEL_UNLIKELY(time > layout_.duration)) note(kAfterEnd);
        if (POPMODEL_UNLIKELY(time < streams_[index].last[kEvents])) {
            disorder_[index] |= 1 << kEvents;
            note(kEventsDisordered);
        }
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
        if (POPMODEL_LIKELY(kept)) {
            Stream &stream = streams_[index];
            if (POPMODEL_UNLIKELY(stream.at >= stream.room)) grow(index);
            std::uint8_t *to = stream.at;
            const auto passed = static_cast<std::uint64_t>(time - stream.last[kEvents]);
            if (POPMODEL_LIKELY(passed < kShort && value < kShort)) {
                const unsigned passed_width = width(passed), value_width = width(value);
                put(to, kEvent | passed_width << 2 | value_width << 5 | type << 8, 5);
                put(to, passed, passed_width);
                put(to, value, value_width);
            } else {
                put(to, kWide | kEvents << 2, 1);
                put(to, static_cast<std::uint64_t>(time), 8);
                put(to, type, 4);
                put(to, value, 8);
            }
            stream.last[kEvents] = time;
            ++stream.count[kEvents];
            stream.at = to;
        }
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
    if (POPMODEL_UNLIKELY(std::max(physical_send, physical_receive) > layout_.duration))
        note(kAfterEnd);
    const auto index = static_cast<std::size_t>(sender);
    Stream &stream = streams_[index];
    if (POPMODEL_UNLIKELY(stream.at >= stream.room)) grow(index);
    if (POPMODEL_UNLIKELY(physical_send < stream.last[kMessages])) {
        disorder_[index] |= 1 << kMessages;
        note(kMessagesDisordered);
    }
    const std::uint64_t fields[] = {static_cast<std::uint64_t>(receiver),
                                    zigzag(physical_send - stream.last[kMessages]),
                                    zigzag(logical_send - physical_send),
                                    zigzag(logical_receive - physical_send),
                                    zigzag(physical_receive - physical_send),
                                    size,
                                    zigzag(tag)};
    std::uint8_t *to = stream.at + 4;
    std::uint64_t head = kMessage;
    int shift = 4;
    for (const std::uint64_t field : fields) {
        const unsigned bytes = full_width(field);
        head |= static_cast<std::uint64_t>(bytes) << shift;
        shift += 4;
        put(to, field, bytes);
    }
    const auto head_word = static_cast<std::uint32_t>(head);
    for (int byte = 0; byte < 4; ++byte)
        stream.at[byte] = static_cast<std::uint8_t>(head_word >> (8 * byte));
    stream.last[kMessages] = physical_send;
    ++stream.count[kMessages];
    stream.at = to;
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
    Communicator found{id, {}};
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
    for (Communicator &known : communicators_)
        if (known.id == id) {
            if (known.ranks != found.ranks) note(kCommunicatorAgain);
            known = std::move(found);
            return;
        }
    communicators_.push_back(std::move(found));
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
    }
    carry_.clear();
}

// ---- streams ----------------------------------------------------------------------------------

std::size_t Scanner::stored(std::size_t location, const Chunk *chunk) const {
    return chunk->next ? chunk->size
                       : static_cast<std::size_t>(streams_[location].at - chunk->data());
}

std::vector<std::uint64_t> Scanner::lengths() const {
    std::vector<std::uint64_t> bytes(streams_.size());
    for (std::size_t location = 0; location < streams_.size(); ++location)
        for (const Chunk *chunk = ends_[location].first; chunk; chunk = chunk->next)
            bytes[location] += stored(location, chunk);
    return bytes;
}

std::vector<Piece> Scanner::pieces() const {
    std::vector<Piece> found;
    for (std::size_t location = 0; location < streams_.size(); ++location) {
        bool fresh = true;
        for (const Chunk *chunk = ends_[location].first; chunk; chunk = chunk->next) {
            found.push_back({chunk->data(), stored(location, chunk),
                             static_cast<std::int32_t>(location), fresh});
            fresh = false;
        }
    }
    return found;
}

std::size_t Scanner::take(std::uint8_t *to, std::size_t size) {
    std::size_t filled = 0;
    while (taken_location_ < streams_.size()) {
        if (!taken_chunk_ && taken_offset_ == 0) taken_chunk_ = ends_[taken_location_].first;
        while (taken_chunk_) {
            const std::size_t bytes = stored(taken_location_, taken_chunk_);
            const std::size_t part = std::min(bytes - taken_offset_, size - filled);
            std::memcpy(to + filled, taken_chunk_->data() + taken_offset_, part);
            filled += part;
            taken_offset_ += part;
            if (taken_offset_ < bytes) return filled;
            taken_chunk_ = taken_chunk_->next;
            taken_offset_ = 0;
        }
        ++taken_location_;
    }
    if (filled == 0) {
        arena_.reset();
        for (std::size_t location = 0; location < streams_.size(); ++location) {
            streams_[location].at = streams_[location].room = nullptr;
            ends_[location] = {};
        }
        taken_location_ = 0;
    }
    return filled;
}

// ---- decoding ---------------------------------------------------------------------------------

void Decoder::restart(std::vector<Piece> pieces) {
    pieces_ = std::move(pieces);
    piece_ = offset_ = 0;
}

void Decoder::fill(const Columns &columns, std::size_t (&rows)[kTables]) {
    std::size_t states = 0, events = 0, messages = 0;
    bool full = false;
    for (; piece_ < pieces_.size() && !full; full ? 0 : (++piece_, offset_ = 0)) {
        const Piece &piece = pieces_[piece_];
        if (piece.fresh && offset_ == 0) last_[kStates] = last_[kEvents] = last_[kMessages] = 0;
        std::int64_t last_state = last_[kStates], last_event = last_[kEvents];
        const std::uint8_t *at = piece.data + offset_;
        const std::uint8_t *const end = piece.data + piece.size;
        while (at < end) {
            const std::uint64_t head = load(at);
            const unsigned kind = head & 3;
            const unsigned table = kind == kWide ? (head >> 2) & 3 : kind;
            if (table == kEvents) {
                if (events == columns.event_rows) {
                    full = true;
                    break;
                }
                if (POPMODEL_LIKELY(kind == kEvent)) {
                    at += 5;
                    last_event += static_cast<std::int64_t>(get(at, (head >> 2) & 7));
                    columns.event_type[events] = static_cast<std::uint32_t>(head >> 8);
                    columns.event_value[events] =
                        static_cast<std::int64_t>(get(at, (head >> 5) & 7));
                } else {
                    at += 1;
                    last_event = static_cast<std::int64_t>(get(at, 8));
                    columns.event_type[events] = static_cast<std::uint32_t>(get(at, 4));
                    columns.event_value[events] = static_cast<std::int64_t>(get(at, 8));
                }
                columns.event_time[events++] = last_event;
            } else if (table == kStates) {
                if (states == columns.state_rows) {
                    full = true;
                    break;
                }
                if (POPMODEL_LIKELY(kind == kState)) {
                    at += 2;
                    const std::int64_t begin =
                        last_state + static_cast<std::int64_t>(get(at, (head >> 2) & 7));
                    last_state = begin + static_cast<std::int64_t>(get(at, (head >> 5) & 7));
                    columns.state_begin[states] = begin;
                    columns.state[states] = static_cast<std::int32_t>((head >> 8) & 0xFF);
                } else {
                    at += 1;
                    columns.state_begin[states] = static_cast<std::int64_t>(get(at, 8));
                    last_state = static_cast<std::int64_t>(get(at, 8));
                    columns.state[states] = static_cast<std::int32_t>(get(at, 4));
                }
                columns.state_end[states++] = last_state;
            } else {
                if (messages == columns.message_rows) {
                    full = true;
                    break;
                }
                at += 4;
                const auto field = [&](int number) {
                    return get(at, (head >> (4 + 4 * number)) & 15);
                };
                const std::size_t row = messages++;
                columns.sender[row] = piece.location;
                columns.receiver[row] = static_cast<std::int32_t>(field(0));
                last_[kMessages] += unzigzag(field(1));
                const std::int64_t send = last_[kMessages];
                columns.physical_send[row] = send;
                columns.logical_send[row] = send + unzigzag(field(2));
                columns.logical_receive[row] = send + unzigzag(field(3));
                columns.physical_receive[row] = send + unzigzag(field(4));
                columns.size[row] = static_cast<std::int64_t>(field(5));
                columns.tag[row] = unzigzag(field(6));
            }
        }
        last_[kStates] = last_state;
        last_[kEvents] = last_event;
        offset_ = static_cast<std::size_t>(at - piece.data);
    }
    rows[kStates] = states;
    rows[kEvents] = events;
    rows[kMessages] = messages;
}

}  // namespace popmodel::scan
