// Scans Paraver trace text into compact per-location streams and decodes those into columns.
//
// Nothing here knows Python, so that the same code runs under AddressSanitizer in a plain driver.
//
// Text arrives in pieces of any size. Each record becomes a few bytes in the stream of its location
// (times as differences, values without leading zero bytes: about a third of the final columns), so
// that a long trace can be held, or spilled to disk in segments, with little memory. A Decoder turns
// the streams of one location after the other into columns, which are therefore written strictly
// forwards whatever their size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

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
    std::vector<std::int32_t> ranks;  // from 0
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
    kNotices
};

struct Tally {
    std::uint64_t count = 0;
    std::uint64_t line = 0;  // of the first
};

enum Table : int { kStates, kEvents, kMessages, kTables };

// One location's stream and what its next record is coded against: one cache line.
struct alignas(64) Stream {
    std::uint8_t *at = nullptr;
    std::uint8_t *room = nullptr;  // a record may begin anywhere before this
    std::int64_t last[kTables] = {0, 0, 0};  // state: its end; event: its time; message: its send
    std::uint64_t count[kTables] = {0, 0, 0};
};

// A run of whole records; `fresh` where a location begins.
struct Piece {
    const std::uint8_t *data;
    std::size_t size;
    std::int32_t location;
    bool fresh;
};

// Where decoded rows go; a table ends at its `rows`.
struct Columns {
    std::int64_t *state_begin, *state_end;
    std::int32_t *state;
    std::size_t state_rows;
    std::int64_t *event_time;
    std::uint32_t *event_type;
    std::int64_t *event_value;
    std::size_t event_rows;
    std::int32_t *sender, *receiver;
    std::int64_t *logical_send, *physical_send, *logical_receive, *physical_receive, *size, *tag;
    std::size_t message_rows;
};

// Decodes pieces one after the other, as many rows as fit, and goes on where it stopped.
class Decoder {
  public:
    explicit Decoder(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
    // Fill the columns from their beginning; the rows written of each table. All zero: finished.
    void fill(const Columns &columns, std::size_t (&rows)[kTables]);
    // Carry on with further pieces, keeping the place inside the current location.
    void restart(std::vector<Piece> pieces);

  private:
    std::vector<Piece> pieces_;
    std::size_t piece_ = 0;
    std::size_t offset_ = 0;
    std::int64_t last_[kTables] = {0, 0, 0};
};

// Bytes that the decoder may read past the end of a piece (and never uses).
constexpr std::size_t kPadding = 64;

class Arena {
  public:
    std::uint8_t *take(std::size_t bytes);
    void reset();    // everything is free again; the memory is kept
    void release();  // the memory as well
    std::size_t used() const { return used_; }

  private:
    struct Free {
        void operator()(std::uint8_t *memory) const { std::free(memory); }
    };
    struct Slab {
        std::unique_ptr<std::uint8_t[], Free> memory;
        std::size_t size;
    };
    std::vector<Slab> slabs_;
    std::size_t slab_ = 0, offset_ = 0, used_ = 0;
};

class Scanner {
  public:
    explicit Scanner(const Layout &layout);
    Scanner(const Scanner &) = delete;  // streams point into the arena
    Scanner &operator=(const Scanner &) = delete;

    // Scan the next piece of the text; whatever follows its last line end is kept for later.
    void feed(const char *text, std::size_t size);
    // The text has ended: scan a last line that has no line end.
    void finish();

    std::size_t locations() const { return streams_.size(); }
    std::size_t held() const { return arena_.used(); }
    std::uint64_t lines() const { return line_; }
    const std::vector<Stream> &streams() const { return streams_; }
    const std::vector<Communicator> &communicators() const { return communicators_; }
    const Tally &tally(int notice) const { return tallies_[notice]; }
    bool disordered(int table, std::size_t location) const {
        return (disorder_[location] >> table) & 1;
    }

    // Bytes in each location's stream.
    std::vector<std::uint64_t> lengths() const;
    // The streams as they lie in memory, in order of location.
    std::vector<Piece> pieces() const;
    // Copy the streams, location after location, into pieces of `size` bytes; 0: all are copied,
    // and the streams are empty again.
    std::size_t take(std::uint8_t *to, std::size_t size);
    // Give the memory of the streams back, once all are copied.
    void release() { arena_.release(); }

  private:
    struct Chunk {
        Chunk *next;
        std::size_t size;  // once a further chunk follows; before that, up to Stream::at
        std::size_t room;
        std::uint8_t *data() { return reinterpret_cast<std::uint8_t *>(this + 1); }
        const std::uint8_t *data() const { return reinterpret_cast<const std::uint8_t *>(this + 1); }
    };
    struct Ends {
        Chunk *first = nullptr, *last = nullptr;
    };
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
    void grow(std::size_t location);
    std::size_t stored(std::size_t location, const Chunk *chunk) const;

    Layout layout_;
    std::vector<std::int64_t> first_location_;  // of each task of the chosen application
    std::int64_t latest_;                       // the largest time that fits once in nanoseconds
    std::uint64_t line_;
    std::string carry_;
    std::vector<Stream> streams_;
    std::vector<Ends> ends_;
    std::vector<std::int64_t> last_begin_;  // of each location's states
    std::vector<std::uint8_t> disorder_;
    std::vector<Prefix> prefixes_;
    int prefix_shift_ = 0;
    std::vector<Communicator> communicators_;
    Tally tallies_[kNotices];
    Arena arena_;
    std::size_t taken_location_ = 0, taken_offset_ = 0;
    const Chunk *taken_chunk_ = nullptr;
};

}  // namespace popmodel::scan
