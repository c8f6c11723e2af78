// Which call completes the request that another one opens.
#pragma once

#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "calls.hpp"

namespace popmodel {

// By call: the one that completes what it opens, or -1. A call that completes one request takes the
// oldest open one of its number; where nothing is known of numbers (an empty column), the oldest open
// one of all, if `oldest(call)`.
template <typename Opens, typename Oldest>
popmodel::LongVector<int32_t> complete_requests(const Calls &calls, const In<int32_t> &number, Opens opens,
                                       Oldest oldest) {
    popmodel::LongVector<int32_t> completed(calls.size(), -1), open;
    const bool numbered = number.size() > 0;
    for (size_t p = 0; p < calls.processes(); p++) {
        open.clear();
        size_t first = 0; // those before are completed
        for (int32_t c = calls.first(p); c < calls.first(p + 1); c++) {
            const Action action = calls.action(c);
            if (action == Action::WAITALL) {
                for (; first < open.size(); first++)
                    completed[size_t(open[first])] = c;
            } else if (action == Action::WAIT) {
                size_t taken = first;
                if (numbered)
                    while (taken < open.size() && number.data()[open[taken]] != number.data()[c])
                        taken++;
                else if (!oldest(c))
                    taken = open.size();
                if (taken == open.size())
                    continue;
                completed[size_t(open[taken])] = c;
                for (; taken > first; taken--) // few are open at a time
                    open[taken] = open[taken - 1];
                first++;
            } else if (opens(c)) {
                open.push_back(c);
            }
        }
    }
    return completed;
}

} // namespace popmodel
