// Python's view of the engine: checks a program and what it costs, and replays it.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "engine.hpp"
#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

void check_program(size_t processes, const In<int64_t> &offsets, const In<uint8_t> &kind,
           const In<int32_t> &target, size_t operations, size_t messages, size_t collectives) {
    check(offsets.size() == processes + 1, "offsets do not fit the processes");
    check_offsets(offsets, operations);
    for (size_t i = 0; i < operations; i++) {
        const uint8_t op = kind.data()[i];
        const int32_t x = target.data()[i];
        if (op > WAIT_COLLECTIVE || x < 0 ||
            size_t(x) >= (op >= COLLECTIVE ? collectives : messages))
            throw std::invalid_argument("operation " + std::to_string(i) +
                                        " has an unknown kind or target");
    }
}

// Whether the parts of an algorithm have charges for the messages of a collective.
bool charged(const Piece *part, const Piece *end, int32_t members, int64_t far, size_t charges) {
    return std::all_of(part, end, [=](const Piece &x) {
        return x.pattern < PATTERNS && x.segments >= 1 && x.charge >= 0 &&
               x.charge + far + sizes(x.pattern, members) <= int64_t(charges);
    });
}

// Whether one collective has members, a root among them, and an algorithm that is charged.
bool carries(const Carried &carried, size_t c, int32_t members, size_t algorithms, size_t groups,
             size_t charges) {
    const int32_t algorithm = carried.algorithm[c], root = carried.root[c];
    const int32_t group = carried.group[c];
    if (members < 1 || root < 0 || root >= members || group < 0 || size_t(group) >= groups ||
        algorithm < 0 || size_t(algorithm) >= algorithms)
        return false;
    const int64_t *bound = carried.parts + algorithm;
    const Piece *part = carried.part.data();
    return carried.offsets[group + 1] - carried.offsets[group] == members &&
           charged(part + bound[0], part + bound[1], members, carried.far, charges);
}

void check_carried(const Carried &carried, const In<uint8_t> &rule, const In<int32_t> &members,
                   size_t algorithms, size_t groups, size_t charges) {
    for (size_t c = 0; c < members.size(); c++)
        if (rule.data()[c] == MESSAGES &&
            !carries(carried, c, members.data()[c], algorithms, groups, charges))
            throw std::invalid_argument("collective " + std::to_string(c) +
                                        " cannot be carried out as messages");
}

// Patterns one after the other, by algorithm.
std::vector<Piece> parts_of(const In<uint8_t> &pattern, const In<int32_t> &segments,
                           const In<int64_t> &charge) {
    check(segments.size() == pattern.size() && charge.size() == pattern.size(), DIFFERENT_LENGTHS);
    std::vector<Piece> parts;
    for (size_t i = 0; i < pattern.size(); i++)
        parts.push_back({Pattern(pattern.data()[i]), segments.data()[i], charge.data()[i]});
    return parts;
}

nb::tuple replay(In<int64_t> offsets, In<uint8_t> kind, In<int32_t> target, Bursts::Column burst,
                 In<double> tail, In<int32_t> members, In<int32_t> root, double cpu,
                 In<double> transfer, In<uint8_t> rendezvous, In<double> send_overhead,
                 In<double> receive_before, In<double> receive_after,
                 bool sender_waits_for_transfer, In<double> collective_cost,
                 In<double> member_cost, In<uint8_t> collective_rule, In<double> request_cost,
                 In<int64_t> uneven_operation, In<double> uneven_cost, size_t messages,
                 In<int32_t> algorithm, In<int64_t> algorithm_offsets, In<uint8_t> part_pattern,
                 In<int32_t> part_segments, In<int64_t> part_charge,
                 In<int32_t> root_rank, In<int32_t> group, In<int64_t> group_offsets,
                 In<int32_t> group_process, In<int32_t> group_rank, In<int32_t> group_member,
                 In<int32_t> node, int64_t far, In<int32_t> call,
                 In<int16_t> call_name, In<int32_t> call_place, size_t names, size_t places) {
    const size_t processes = tail.size(), operations = kind.size();
    const size_t charges = transfer.size(), collectives = members.size();
    if (target.size() != operations || burst.size() != operations || messages > charges ||
        rendezvous.size() != charges || send_overhead.size() != charges ||
        receive_before.size() != charges || receive_after.size() != charges ||
        root.size() != collectives || collective_cost.size() != collectives ||
        member_cost.size() != collectives || collective_rule.size() != collectives ||
        request_cost.size() != collectives || uneven_operation.size() != uneven_cost.size())
        throw std::invalid_argument("columns of different lengths");
    check_program(processes, offsets, kind, target, operations, messages, collectives);
    check(algorithm.size() == collectives && root_rank.size() == collectives &&
              group.size() == collectives && group_rank.size() == group_process.size() &&
              group_member.size() == group_process.size() &&
              (node.size() == 0 || node.size() == processes) && far >= 0,
          DIFFERENT_LENGTHS);
    check_offsets(algorithm_offsets, part_pattern.size());
    check_offsets(group_offsets, group_process.size());
    const Carried carried{algorithm.data(),     algorithm_offsets.data(),
                          parts_of(part_pattern, part_segments, part_charge),
                          root_rank.data(),     group.data(), group_offsets.data(),
                          group_process.data(), group_rank.data(), group_member.data(),
                          node.size() ? node.data() : nullptr, far};
    check_below(group_member, int64_t(processes), "a member that is not there");
    check_carried(carried, collective_rule, members, algorithm_offsets.size() - 1,
                  group_offsets.size() - 1, charges);
    if (places > 0) {
        check(call.size() == operations &&
                  (call_place.size() == 0 || call_place.size() == call_name.size()),
              DIFFERENT_LENGTHS);
        check_below(call, int64_t(call_name.size()), "a call that is not there");
        check_below(call_name, int64_t(names), "a name that is not there");
        check_below(call_place, int64_t(places), "a place that is not there");
    }
    Network network{cpu,
                    transfer.data(),
                    rendezvous.data(),
                    collective_cost.data(),
                    member_cost.data(),
                    collective_rule.data(),
                    request_cost.data(),
                    uneven_cost.size(),
                    uneven_operation.data(),
                    uneven_cost.data(),
                    send_overhead.data(),
                    receive_before.data(),
                    receive_after.data(),
                    sender_waits_for_transfer};
    Spent spent{call.data(), call_name.data(), call_place.size() ? call_place.data() : nullptr,
                names, std::vector<double>(places * names, 0.0)};
    const Bursts bursts(burst);
    std::vector<double> end;
    std::vector<int64_t> next;
    {
        nb::gil_scoped_release released;
        Engine engine(processes, offsets.data(), kind.data(), target.data(), bursts,
                      tail.data(), messages, collectives, members.data(), root.data(), network,
                      carried, spent);
        engine.run();
        end = std::move(engine.clock());
        next = std::move(engine.next());
    }
    return nb::make_tuple(numpy(std::move(end)), numpy(std::move(next)),
                          numpy(std::move(spent.time)));
}

} // namespace

void bind_replay(nb::module_ &module) {
    module.def("replay", &replay, nb::arg("offsets"), nb::arg("kind"), nb::arg("target"),
               nb::arg("burst"), nb::arg("tail"), nb::arg("members"), nb::arg("root"),
               nb::arg("cpu"), nb::arg("transfer"), nb::arg("rendezvous"),
               nb::arg("send_overhead"), nb::arg("receive_before"), nb::arg("receive_after"),
               nb::arg("sender_waits_for_transfer"), nb::arg("collective_cost"),
               nb::arg("member_cost"), nb::arg("collective_rule"), nb::arg("request_cost"),
               nb::arg("uneven_operation"), nb::arg("uneven_cost"), nb::arg("messages"),
               nb::arg("algorithm"), nb::arg("algorithm_offsets"), nb::arg("part_pattern"),
               nb::arg("part_segments"), nb::arg("part_charge"), nb::arg("root_rank"),
               nb::arg("group"), nb::arg("group_offsets"), nb::arg("group_process"),
               nb::arg("group_rank"), nb::arg("group_member"),
               nb::arg("node"), nb::arg("far"), nb::arg("call"), nb::arg("call_name"), nb::arg("call_place"),
               nb::arg("names"), nb::arg("places"),
               "Replay a program; returns the time at which each process ends or is stuck (ns), the "
               "operation at which it is then, and the time in the calls of each of `places` (0 if "
               "nobody asks) and each of `names` (ns).");
}
