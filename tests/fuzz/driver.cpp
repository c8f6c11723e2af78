// Runs the scanner over files of damaged trace text, for a build with sanitizers.
//
// The first line of each file is its layout: cpus, unit, duration, application, and for every
// application the number of tasks and the threads of each. Every text is fed in pieces of several
// sizes, each in a buffer of exactly its size, and all ways of feeding and of decoding must agree.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "scanner.hpp"

namespace scan = popmodel::scan;

namespace {

scan::Layout layout_of(const std::string &line) {
    std::istringstream numbers(line);
    scan::Layout layout;
    numbers >> layout.cpus >> layout.unit >> layout.duration >> layout.application;
    for (std::size_t tasks; numbers >> tasks;) {
        std::vector<std::int64_t> threads(tasks);
        for (std::int64_t &count : threads) numbers >> count;
        layout.threads.push_back(threads);
    }
    return layout;
}

// All rows as text.
std::string decoded(scan::Decoder &decoder) {
    constexpr std::size_t rows = 7;  // small, so that decoding stops and goes on often
    std::vector<std::int64_t> wide(11 * rows);
    std::vector<std::int32_t> narrow(3 * rows);
    std::vector<std::uint32_t> types(rows);
    const auto column = [&](std::size_t number) { return wide.data() + number * rows; };
    const scan::Columns columns{column(0),         column(1),
                                narrow.data(),     rows,
                                column(2),         types.data(),
                                column(3),         rows,
                                narrow.data() + rows, narrow.data() + 2 * rows,
                                column(4),         column(5),
                                column(6),         column(7),
                                column(8),         column(9),
                                rows};
    std::string states, events, messages;
    std::size_t filled[scan::kTables];
    for (;;) {
        decoder.fill(columns, filled);
        if (!filled[scan::kStates] && !filled[scan::kEvents] && !filled[scan::kMessages]) break;
        const auto add = [](std::string &to, std::int64_t value) {
            to += std::to_string(value);
            to += ' ';
        };
        for (std::size_t row = 0; row < filled[scan::kStates]; ++row) {
            add(states, columns.state_begin[row]);
            add(states, columns.state_end[row]);
            add(states, columns.state[row]);
        }
        for (std::size_t row = 0; row < filled[scan::kEvents]; ++row) {
            add(events, columns.event_time[row]);
            add(events, columns.event_type[row]);
            add(events, columns.event_value[row]);
        }
        for (std::size_t row = 0; row < filled[scan::kMessages]; ++row) {
            add(messages, columns.sender[row]);
            add(messages, columns.receiver[row]);
            for (const std::int64_t *each :
                 {columns.logical_send, columns.physical_send, columns.logical_receive,
                  columns.physical_receive, columns.size, columns.tag})
                add(messages, each[row]);
        }
    }
    return states + '\n' + events + '\n' + messages;
}

// The result of scanning as text, and, where there are records, the same after spilling them.
std::string scanned(const scan::Layout &layout, const std::string &text, std::size_t size) {
    scan::Scanner scanner(layout);
    try {
        for (std::size_t at = 0; at < text.size(); at += size) {
            const std::size_t part = std::min(size, text.size() - at);
            const std::unique_ptr<char[]> piece(new char[part]);
            std::memcpy(piece.get(), text.data() + at, part);
            scanner.feed(piece.get(), part);
        }
        scanner.finish();
    } catch (const scan::ScanError &error) {
        return std::to_string(error.line) + ": " + error.what();
    }
    scan::Decoder held(scanner.streams().pieces());
    const std::string records = decoded(held);

    const std::vector<std::uint64_t> lengths = scanner.streams().lengths();
    std::vector<std::uint8_t> spilled;
    std::vector<std::uint8_t> part(size % 4096 + 1);
    while (const std::size_t taken = scanner.streams().take(part.data(), part.size()))
        spilled.insert(spilled.end(), part.begin(), part.begin() + static_cast<long>(taken));
    std::vector<scan::Piece> pieces;
    std::size_t at = 0;
    spilled.resize(spilled.size() + scan::kPadding);
    for (std::size_t location = 0; location < lengths.size(); ++location) {
        pieces.push_back({spilled.data() + at, lengths[location],
                          static_cast<std::int32_t>(location), true});
        at += lengths[location];
    }
    scan::Decoder again(std::move(pieces));
    if (decoded(again) != records || scanner.streams().held() != 0) {
        std::fprintf(stderr, "spilled records differ\n");
        std::abort();
    }
    return records;
}

}  // namespace

int main(int count, char **names) {
    std::size_t refused = 0;
    for (int number = 1; number < count; ++number) {
        std::ifstream file(names[number], std::ios::binary);
        std::string first;
        std::getline(file, first);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        const scan::Layout layout = layout_of(first);
        const std::string whole = scanned(layout, text, text.size() + 1);
        refused += whole.find('\n') == std::string::npos;
        for (const std::size_t size : {std::size_t{1}, std::size_t{67}, std::size_t{500}})
            if (scanned(layout, text, size) != whole) {
                std::fprintf(stderr, "%s: pieces of %zu bytes differ\n", names[number], size);
                return 1;
            }
    }
    std::printf("%d inputs, %zu of them refused, no fault\n", count - 1, refused);
    return 0;
}
