// Which send and which receive are of one message.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <tuple>
#include <vector>

#include "numpy.hpp"
#include "otf2_tables.hpp"

namespace popmodel::otf2 {

namespace nb = nanobind;

// Messages: of two processes, a communicator and a tag, the k-th sent is the k-th received;
// receives count in the order in which they were begun. By sender, in order of physical sends;
// and how many ends have no other one.
template <typename Partner>
nb::tuple match(const std::vector<Message> &sends, const std::vector<Message> &receives,
                const Partner &partner) {
    std::map<std::tuple<int64_t, int64_t, int32_t, int32_t>, int32_t> kinds;
    std::tuple<int64_t, int64_t, int32_t, int32_t> last{-2, -2, -2, -2};
    int32_t last_kind = -1;
    const auto sorted = [&](const std::vector<Message> &ends, bool received) {
        std::vector<int32_t> kind(ends.size());
        for (size_t i = 0; i < ends.size(); i++) {
            const Message &m = ends[i];
            const int64_t other = partner(m.process, m.communicator, m.peer);
            const std::tuple key{received ? other : m.process, received ? m.process : other,
                                 m.communicator, m.tag};
            if (key != last)
                last_kind = kinds.try_emplace(last = key, int32_t(kinds.size())).first->second;
            kind[i] = other < 0 ? -1 : last_kind;
        }
        return kind;
    };
    const std::vector<int32_t> of_send = sorted(sends, false), of_receive = sorted(receives, true);
    const auto grouped = [&](const std::vector<Message> &ends, const std::vector<int32_t> &kind,
                             std::vector<int64_t> &first) {
        first.assign(kinds.size() + 1, 0);
        for (const int32_t k : kind)
            if (k >= 0)
                first[size_t(k) + 1]++;
        std::partial_sum(first.begin(), first.end(), first.begin());
        std::vector<int64_t> next(first);
        std::vector<int32_t> rows(size_t(first.back()));
        for (size_t i = 0; i < ends.size(); i++)
            if (kind[i] >= 0)
                rows[size_t(next[size_t(kind[i])]++)] = int32_t(i);
        const auto earlier = [&](int32_t a, int32_t b) {
            return ends[size_t(a)].order < ends[size_t(b)].order;
        };
        for (size_t k = 0; k + 1 < first.size(); k++)
            if (!std::is_sorted(rows.begin() + first[k], rows.begin() + first[k + 1], earlier))
                std::stable_sort(rows.begin() + first[k], rows.begin() + first[k + 1], earlier);
        return rows;
    };
    std::vector<int64_t> first_send, first_receive;
    const std::vector<int32_t> sent = grouped(sends, of_send, first_send);
    const std::vector<int32_t> received = grouped(receives, of_receive, first_receive);
    std::vector<int32_t> receive_of(sends.size(), -1), rows;
    for (size_t k = 0; k < kinds.size(); k++) {
        const int64_t count = std::min(first_send[k + 1] - first_send[k],
                                       first_receive[k + 1] - first_receive[k]);
        for (int64_t i = 0; i < count; i++)
            receive_of[size_t(sent[size_t(first_send[k] + i)])] =
                received[size_t(first_receive[k] + i)];
    }
    for (size_t i = 0; i < sends.size(); i++)
        if (receive_of[i] >= 0)
            rows.push_back(int32_t(i));
    const auto before = [&](int32_t a, int32_t b) {
        return std::pair(sends[size_t(a)].location, sends[size_t(a)].physical) <
               std::pair(sends[size_t(b)].location, sends[size_t(b)].physical);
    };
    if (!std::is_sorted(rows.begin(), rows.end(), before))
        std::stable_sort(rows.begin(), rows.end(), before);
    const auto column = [&](auto value) {
        std::vector<decltype(value(sends[0], receives[0]))> values;
        values.reserve(rows.size());
        for (const int32_t row : rows)
            values.push_back(value(sends[size_t(row)], receives[size_t(receive_of[size_t(row)])]));
        return numpy(std::move(values));
    };
    using M = const Message &;
    return nb::make_tuple(
        column([](M s, M) { return s.location; }), column([](M, M r) { return r.location; }),
        column([](M s, M) { return s.logical; }), column([](M s, M) { return s.physical; }),
        column([](M, M r) { return r.logical; }), column([](M, M r) { return r.physical; }),
        column([](M s, M) { return s.size; }), column([](M s, M) { return int64_t(s.tag); }),
        sends.size() + receives.size() - 2 * rows.size());
}

} // namespace popmodel::otf2
