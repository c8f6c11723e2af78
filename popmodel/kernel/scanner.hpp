// Scans Paraver trace text, which arrives in pieces of any size, into streams of records.
//
// Nothing here knows Python, so that the same code runs under AddressSanitizer in a plain driver.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "streams.hpp"

namespace popmodel::scan {

// A record that cannot be used; `line` is counted from 1 in the whole file.
struct ScanError : std::runtime_error {
    std::uint64_t line;
    ScanError(std::uint64_t line_, const std::string &reason)
        : std::runtime_error(reason), line(line_) {}
};

// What the header says, as far as records are checked against it.
struct Layout {
    std::vector<std::vector<std::int64_t>> threads;  // of each task, by application
    std::int64_t cpus = 0;                           // 0: not stated, any is accepted
    std::int64_t unit = 1;                           // nanoseconds per unit of the times
    std::int64_t duration = 0;                       // nanoseconds
    std::int64_t application = 1;                    // the one whose records are kept, from 1
    std::uint64_t line = 1;                          // lines read before the first that is fed
};

struct Communicator {
    std::int64_t id;
    std::vector<std::int32_t> ranks;  // from 0; as defined last
    std::uint64_t line;               // of its first definition
    std::vector<std::int32_t> first;  // its ranks there
};

// The first record of a location in a table: its time (of a state: the begin), and its line.
struct First {
    std::int64_t time = kStart;
    std::uint64_t line = 0;
};

enum Notice : int {
    kComment,
    kStatesDisordered,
    kEventsDisordered,
    kMessagesDisordered,
    kStatesOverlap,
    kAfterEnd,
    kForeignMessage,
    kCommunicatorAgain,
    kIntercommunicator,
    kGlobalOperation,
    kUnended,
    kNotices
};

struct Tally {
    std::uint64_t count = 0;
    std::uint64_t line = 0;  // of the first
};

class Scanner {
  public:
    explicit Scanner(const Layout &layout);

    // Scan the next piece of the text; whatever follows its last line end is kept for later.
    void feed(const char *text, std::size_t size);
    // The text has ended: scan a last line that has no line end.
    void finish();

    const Streams &streams() const { return streams_; }
    Streams &streams() { return streams_; }
    const std::vector<Communicator> &communicators() const { return communicators_; }
    // When the last record of another application ends.
    std::int64_t end_elsewhere() const { return end_elsewhere_; }
    // The earliest and the latest time of a record that is kept; 0 where there is none.
    std::int64_t first_time() const { return std::min(first_time_, last_time_); }
    std::int64_t last_time() const { return last_time_; }
    const Tally &tally(int notice) const { return tallies_[notice]; }
    bool disordered(int table, std::size_t location) const {
        return (disorder_[location] >> table) & 1;
    }
    // What tells whether a text that is cut into ranges, each with a scanner, is in order across
    // the cuts.
    const First &first(int table, std::size_t location) const { return first_[table][location]; }
    std::int64_t last_begin(std::size_t location) const { return last_begin_[location]; }
    std::uint64_t line() const { return line_; }

  private:
    struct Prefix {
        std::uint64_t low = 0, high = 0;
        std::int64_t location = 0;
    };

    void scan(const char *from, const char *to);
    const char *state(const char *line);
    const char *event(const char *line);
    const char *message(const char *line);
    const char *other(const char *line);
    void communicator(const char *line);

    std::int64_t locate(const char *&at, const char *line, int field);
    std::int64_t locate_carefully(const char *&at, const char *line, int field);
    std::uint64_t number(const char *&at, const char *line, int field, bool last);
    std::uint64_t carefully(const char *&at, const char *line, int field, bool last);
    std::int64_t time(const char *&at, const char *line, int field);
    [[noreturn]] void fail(const std::string &reason) const;
    [[noreturn]] void fail_count(const char *line) const;
    [[noreturn]] void fail_field(const char *line, int field, const std::string &problem) const;
    void note(int notice);
    bool is_first(int table, std::size_t location, std::int64_t time);
    void reach(std::int64_t first, std::int64_t last) {
        first_time_ = std::min(first_time_, first);
        last_time_ = std::max(last_time_, last);
    }

    Layout layout_;
    std::vector<std::int64_t> first_location_;  // of each task of the chosen application
    std::int64_t latest_;                       // the largest time that still fits in nanoseconds
    std::int64_t end_elsewhere_ = 0;
    std::int64_t first_time_ = std::numeric_limits<std::int64_t>::max(), last_time_ = 0;
    std::uint64_t line_;
    std::string carry_;
    Streams streams_;
    std::vector<std::int64_t> last_begin_;  // of each location's states
    std::vector<std::uint8_t> disorder_;
    std::vector<First> first_[kTables];
    std::vector<Prefix> prefixes_;
    int prefix_shift_ = 0;
    std::vector<Communicator> communicators_;
    std::unordered_map<std::int64_t, std::size_t> communicator_index_;  // by id
    Tally tallies_[kNotices];
};

}  // namespace popmodel::scan
