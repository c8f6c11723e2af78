// Which calls send, post and complete each message where calls tell their partners: the k-th send of
// a process to another with a tag meets that one's k-th receive of it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include "scratch.hpp"

#include "calls.hpp"
#include "requests.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

// One side of a message.
struct Side {
    int32_t sender, receiver;
    int64_t tag;
    int32_t call;

    auto pair() const { return std::tie(sender, receiver, tag); }
    bool operator<(const Side &other) const {
        return std::tie(sender, receiver, tag, call) <
               std::tie(other.sender, other.receiver, other.tag, other.call);
    }
};

struct Message {
    int32_t send, post, wait, sender, receiver;
};

popmodel::LongVector<Message> match(const Calls &calls, const In<int32_t> &partner, const In<int64_t> &tag,
                           const In<int32_t> &request) {
    const auto posts = [&](int32_t c) { return calls.action(c) == Action::IRECEIVE; };
    const auto opens = [&](int32_t c) { return posts(c) || calls.action(c) == Action::ISEND; };
    const popmodel::LongVector<int32_t> completed =
        complete_requests(calls, request, opens, [](int32_t) { return true; });
    popmodel::LongVector<Side> sends, receives;
    for (size_t p = 0; p < calls.processes(); p++)
        for (int32_t c = calls.first(p); c < calls.first(p + 1); c++) {
            const int32_t me = int32_t(p), other = partner.data()[c];
            const Action action = calls.action(c);
            if (other < 0)
                continue;
            if (action == Action::SEND || action == Action::ISEND)
                sends.push_back({me, other, tag.data()[c], c});
            else if (action == Action::RECEIVE || posts(c))
                receives.push_back({other, me, tag.data()[c], c});
        }
    std::sort(sends.begin(), sends.end());
    std::sort(receives.begin(), receives.end());
    popmodel::LongVector<Message> found;
    auto receive = receives.begin();
    for (auto send = sends.begin(); send != sends.end() && receive != receives.end();) {
        if (send->pair() < receive->pair()) {
            send++;
        } else if (receive->pair() < send->pair()) {
            receive++;
        } else {
            const int32_t wait = posts(receive->call) ? completed[size_t(receive->call)]
                                                      : receive->call;
            if (wait >= 0) // of a receive that is never completed nothing is known
                found.push_back({send->call, receive->call, wait, send->sender, send->receiver});
            send++;
            receive++;
        }
    }
    std::sort(found.begin(), found.end(),
              [](const Message &a, const Message &b) { return a.send < b.send; });
    return found;
}

nb::tuple match_partners(In<int64_t> offsets, In<int64_t> entry, In<int64_t> exit,
                         In<int16_t> code, In<uint8_t> action, In<int32_t> partner,
                         In<int64_t> tag, In<int32_t> request) {
    const Calls calls{offsets, entry, exit, code, action};
    calls.check_columns();
    check(partner.size() == calls.size() && tag.size() == calls.size() &&
              request.size() == calls.size(),
          DIFFERENT_LENGTHS);
    popmodel::LongVector<int32_t> columns[5];
    {
        nb::gil_scoped_release released;
        for (const Message &m : match(calls, partner, tag, request)) {
            const int32_t row[] = {m.send, m.post, m.wait, m.sender, m.receiver};
            for (size_t i = 0; i < 5; i++)
                columns[i].push_back(row[i]);
        }
    }
    return nb::make_tuple(numpy(std::move(columns[0])), numpy(std::move(columns[1])),
                          numpy(std::move(columns[2])), numpy(std::move(columns[3])),
                          numpy(std::move(columns[4])));
}

} // namespace

void bind_partners(nb::module_ &module) {
    module.def("match_partners", &match_partners, nb::kw_only(), nb::arg("offsets"),
               nb::arg("entry"), nb::arg("exit"), nb::arg("code"), nb::arg("action"),
               nb::arg("partner"), nb::arg("tag"), nb::arg("request"),
               "The calls that send, post and complete each message, and its sender and receiver.");
}
