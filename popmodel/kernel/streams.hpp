// Records as compact streams of bytes, one per location, and back into columns.
//
// Times are stored as differences to the record before on the same location and in the same table,
// values without their leading zero bytes: about a third of the final columns. A long trace can so
// be held, or spilled to disk in segments, with little memory. A Decoder goes through the streams
// of one location after the other, so that columns are written strictly forwards, whatever their
// size.
//
// A record begins with its kind in the two lowest bits:
//   state    6 bits of widths, 1 byte of state, time since the last state's end, duration
//   event    6 bits of widths, 4 bytes of type, time since the last event, value
//   message  28 bits of widths, then receiver, times, size and tag
//   wide     2 bits of table, then a state or an event in full: what does not fit the short forms
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "words.hpp"

namespace popmodel::scan {

enum Table : int { kStates, kEvents, kMessages, kTables };

// What the first record of a location is coded against: any time is earlier, or the same.
constexpr std::int64_t kStart = INT64_MAX;

// One location's stream and what its next record is coded against: one cache line.
struct alignas(64) Stream {
    std::uint8_t *at = nullptr;
    std::uint8_t *room = nullptr;  // a record may begin anywhere before this
    std::int64_t last[kTables] = {kStart, kStart, kStart};  // state: its end; event: its time; message: its send
    std::uint64_t count[kTables] = {0, 0, 0};
};

// A run of whole records; `fresh` where a scanner began with a location.
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
    std::int64_t last_[kTables] = {kStart, kStart, kStart};
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

// The streams of all locations.
class Streams {
  public:
    explicit Streams(std::size_t locations) : streams_(locations), ends_(locations) {}
    Streams(const Streams &) = delete;  // streams point into the arena
    Streams &operator=(const Streams &) = delete;

    inline void state(std::size_t location, std::int64_t begin, std::int64_t end,
                      std::uint64_t state);
    inline void event(std::size_t location, std::int64_t time, std::uint64_t type,
                      std::uint64_t value);
    inline void message(std::size_t location, std::int64_t receiver, std::int64_t logical_send,
                        std::int64_t physical_send, std::int64_t logical_receive,
                        std::int64_t physical_receive, std::uint64_t size, std::int64_t tag);

    std::size_t locations() const { return streams_.size(); }
    const Stream &operator[](std::size_t location) const { return streams_[location]; }
    std::size_t held() const { return arena_.used(); }

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

    Stream &with_room(std::size_t location) {
        Stream &stream = streams_[location];
        if (POPMODEL_UNLIKELY(stream.at >= stream.room)) grow(location);
        return stream;
    }
    void grow(std::size_t location);
    std::size_t stored(std::size_t location, const Chunk *chunk) const;

    std::vector<Stream> streams_;
    std::vector<Ends> ends_;
    Arena arena_;
    std::size_t taken_location_ = 0, taken_offset_ = 0;
    const Chunk *taken_chunk_ = nullptr;
};

enum Kind : unsigned { kState, kEvent, kMessage, kWide };
constexpr std::uint64_t kShort = std::uint64_t{1} << 56;  // smaller values take 0 to 7 bytes
constexpr std::size_t kRecord = 72;  // the longest record, and the bytes stored beyond its end

inline void Streams::state(std::size_t location, std::int64_t begin, std::int64_t end,
                           std::uint64_t state) {
    Stream &stream = with_room(location);
    std::uint8_t *to = stream.at;
    const auto gap = static_cast<std::uint64_t>(begin - stream.last[kStates]);
    const auto length = static_cast<std::uint64_t>(end - begin);
    if (POPMODEL_LIKELY(gap < kShort && length < kShort && state < 256)) {
        const unsigned gap_width = width(gap), length_width = width(length);
        put(to, kState | gap_width << 2 | length_width << 5 | state << 8, 2);
        put(to, gap, gap_width);
        put(to, length, length_width);
    } else {
        put(to, kWide | kStates << 2, 1);
        put(to, static_cast<std::uint64_t>(begin), 8);
        put(to, static_cast<std::uint64_t>(end), 8);
        put(to, state, 4);
    }
    stream.last[kStates] = end;
    ++stream.count[kStates];
    stream.at = to;
}

inline void Streams::event(std::size_t location, std::int64_t time, std::uint64_t type,
                           std::uint64_t value) {
    Stream &stream = with_room(location);
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

inline void Streams::message(std::size_t location, std::int64_t receiver,
                             std::int64_t logical_send, std::int64_t physical_send,
                             std::int64_t logical_receive, std::int64_t physical_receive,
                             std::uint64_t size, std::int64_t tag) {
    Stream &stream = with_room(location);
    const std::uint64_t fields[] = {static_cast<std::uint64_t>(receiver),
                                    zigzag(physical_send - stream.last[kMessages]),
                                    zigzag(logical_send - physical_send),
                                    zigzag(logical_receive - physical_send),
                                    zigzag(physical_receive - physical_send),
                                    size,
                                    zigzag(tag)};
    std::uint8_t *to = stream.at + 4;
    std::uint32_t head = kMessage;
    int shift = 4;
    for (const std::uint64_t field : fields) {
        const unsigned bytes = full_width(field);
        head |= bytes << shift;
        shift += 4;
        put(to, field, bytes);
    }
    for (int byte = 0; byte < 4; ++byte)
        stream.at[byte] = static_cast<std::uint8_t>(head >> (8 * byte));
    stream.last[kMessages] = physical_send;
    ++stream.count[kMessages];
    stream.at = to;
}

}  // namespace popmodel::scan
