#include "streams.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace popmodel::scan {

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

POPMODEL_COLD void Streams::grow(std::size_t location) {
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

std::size_t Streams::stored(std::size_t location, const Chunk *chunk) const {
    return chunk->next ? chunk->size
                       : static_cast<std::size_t>(streams_[location].at - chunk->data());
}

std::vector<std::uint64_t> Streams::lengths() const {
    std::vector<std::uint64_t> bytes(streams_.size());
    for (std::size_t location = 0; location < streams_.size(); ++location)
        for (const Chunk *chunk = ends_[location].first; chunk; chunk = chunk->next)
            bytes[location] += stored(location, chunk);
    return bytes;
}

std::vector<Piece> Streams::pieces() const {
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

std::size_t Streams::take(std::uint8_t *to, std::size_t size) {
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

void Decoder::restart(std::vector<Piece> pieces) {
    pieces_ = std::move(pieces);
    piece_ = offset_ = 0;
}

void Decoder::fill(const Columns &columns, std::size_t (&rows)[kTables]) {
    std::size_t states = 0, events = 0, messages = 0;
    bool full = false;
    for (; piece_ < pieces_.size() && !full; full ? 0 : (++piece_, offset_ = 0)) {
        const Piece &piece = pieces_[piece_];
        if (piece.fresh && offset_ == 0) last_[kStates] = last_[kEvents] = last_[kMessages] = kStart;
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
