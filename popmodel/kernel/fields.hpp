// The fields of records as errors speak of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace popmodel::scan {

// The fields of a record by their number, from 1; an event's types and values alternate.
inline const char *field_name(char record, int field) {
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

inline const char *line_end(const char *from) {
    while (*from != '\n') ++from;
    return from;
}

inline const char *field_end(const char *from) {
    while (*from != ':' && *from != '\n') ++from;
    if (*from == '\n' && from[-1] == '\r') --from;
    return from;
}

// Text as it may stand in a message of one line.
inline std::string quoted(const char *from, const char *to) {
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

inline std::string plural(std::int64_t count, const char *noun) {
    return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace popmodel::scan
