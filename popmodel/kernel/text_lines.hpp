// Lines of a text that arrives in pieces of any size, and their words as errors speak of them.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "scanner.hpp"

namespace popmodel::scan {

constexpr std::size_t kLongestText = std::size_t{1} << 26;  // bytes of a line

inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_word(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

inline std::string_view stripped(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

// The beginning of a text in quotes, as it may stand in a message of one line.
inline std::string in_quotes(std::string_view text, std::size_t most = 40) {
    text = text.substr(0, most);
    const bool only_single = text.find('\'') != text.npos && text.find('"') == text.npos;
    const char quote = only_single ? '"' : '\'';
    std::string shown(1, quote);
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        char code[5];
        std::snprintf(code, sizeof code, "\\x%02x", byte);
        if (c == '\t') shown += "\\t";
        else if (c == '\r') shown += "\\r";
        else if (c == '\\' || c == quote) (shown += '\\') += c;
        else if (byte < 0x20 || byte >= 0x7F) shown += code;
        else shown += c;
    }
    return shown + quote;
}

// Hands each line of a text to a function, without its end; `number` counts them from 1.
class TextLines {
  public:
    std::uint64_t number = 0;

    template <typename Take>
    void feed(const char *text, std::size_t size, Take take) {
        const char *const end = text + size;
        while (const auto *stop = static_cast<const char *>(
                   text < end ? std::memchr(text, '\n', static_cast<std::size_t>(end - text))
                              : nullptr)) {
            ++number;
            if (carry_.empty()) {
                take(std::string_view(text, static_cast<std::size_t>(stop - text)));
            } else {
                carry_.append(text, stop);
                take(std::string_view(carry_));
                carry_.clear();
            }
            text = stop + 1;
        }
        carry_.append(text, end);
        if (carry_.size() > kLongestText)
            throw ScanError(number + 1, "a line is longer than " +
                                            std::to_string(kLongestText >> 20) + " MiB");
    }

    template <typename Take>
    void finish(Take take) {
        if (carry_.empty()) return;
        ++number;
        take(std::string_view(carry_));
        carry_.clear();
    }

  private:
    std::string carry_;
};

}  // namespace popmodel::scan
