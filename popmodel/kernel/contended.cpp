// Python's view of the engine for networks whose links messages share.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "algorithms.hpp"
#include "contended.hpp"
#include "fair.hpp"
#include "fifo.hpp"
#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;
using contended::Prices;

namespace {

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
    const Piece *part = carried.part;
    return carried.offsets[group + 1] - carried.offsets[group] == members &&
           charged(part + bound[0], part + bound[1], members, carried.far, charges);
}

void check_carried(const Carried &carried, const In<uint8_t> &rule, const In<int32_t> &of,
                   const In<int32_t> &members, size_t algorithms, size_t groups, size_t charges) {
    for (size_t c = 0; c < members.size(); c++)
        if (rule.data()[of.data()[c]] == MESSAGES &&
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

template <typename... Columns> bool of_length(size_t length, const Columns &...columns) {
    return ((columns.size() == length) && ...);
}

template <typename Links, typename What>
void run(const contended::Plan &plan, const Prices &prices, const Carried &carried,
         const contended::Times &times, const What &what, const std::vector<int32_t> &node,
         int32_t nodes, std::vector<double> &end, std::vector<int64_t> &next) {
    contended::Engine<Links> engine(plan, prices, carried, times, what, node, nodes);
    engine.run();
    end = std::move(engine.clock());
    next = std::move(engine.next());
}

nb::tuple replay(
    // the program
    In<int64_t> offsets, In<uint8_t> kind, In<int32_t> target, Bursts::Column burst,
    In<double> tail, In<int32_t> sender, In<int32_t> receiver,
    In<int32_t> message_class, In<int32_t> members, In<int32_t> root, In<int32_t> collective_class,
    // what it costs
    In<double> cpu, In<double> transfer, In<double> busy, In<double> bytes, In<uint8_t> rendezvous,
    In<double> send_overhead, In<double> receive_before, In<double> receive_after,
    bool sender_waits_for_transfer,
    In<double> collective_cost, In<double> member_cost, In<uint8_t> collective_rule,
    In<double> request_cost, In<int64_t> uneven_operation, In<double> uneven_cost,
    // its collectives as messages
    In<int32_t> algorithm, In<int64_t> algorithm_offsets, In<uint8_t> part_pattern,
    In<int32_t> part_segments, In<int64_t> part_charge, In<int32_t> root_rank, In<int32_t> group,
    In<int64_t> group_offsets, In<int32_t> group_process, In<int32_t> group_rank,
    In<int32_t> group_member, In<int32_t> node, int64_t far,
    // what is shared
    In<int32_t> place, bool fair, int32_t output, int32_t input, int32_t within, int32_t buses,
    In<int64_t> pair, In<int64_t> route_offsets, In<int32_t> route_link,
    In<double> route_latency, In<double> capacity, double capacity_within,
    // what is asked for
    bool moments) {
    const size_t processes = tail.size(), operations = kind.size(), messages = sender.size();
    const size_t charges = transfer.size(), collectives = members.size();
    check(of_length(processes, cpu, place) && of_length(operations, target, burst) &&
              of_length(messages, receiver, message_class) &&
              of_length(charges, busy, bytes, rendezvous, send_overhead, receive_before,
                        receive_after) &&
              of_length(collectives, root, collective_class, algorithm, root_rank, group) &&
              of_length(collective_rule.size(), collective_cost, member_cost, request_cost) &&
              of_length(uneven_operation.size(), uneven_cost) &&
              of_length(group_process.size(), group_rank, group_member) &&
              (node.size() == 0 || node.size() == processes) && far >= 0 &&
              of_length(pair.size(), route_latency),
          DIFFERENT_LENGTHS);
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
    check_below(message_class, int64_t(charges), "a class that is not there");
    check_below(collective_class, int64_t(collective_rule.size()), "a class that is not there");
    check_below(sender, int64_t(processes), "a process that is not there");
    check_below(receiver, int64_t(processes), "a process that is not there");
    check_offsets(group_offsets, group_process.size());
    check_below(group_process, int64_t(processes), "a process that is not there");
    check_offsets(algorithm_offsets, part_pattern.size());
    const std::vector<Piece> pieces = parts_of(part_pattern, part_segments, part_charge);
    const Carried carried{algorithm.data(),
                          algorithm_offsets.data(),
                          pieces.data(),
                          root_rank.data(),
                          group.data(),
                          group_offsets.data(),
                          group_process.data(),
                          group_rank.data(),
                          group_member.data(),
                          node.size() ? node.data() : nullptr,
                          far};
    check_below(group_member, int64_t(processes), "a member that is not there");
    check_carried(carried, collective_rule, collective_class, members, algorithm_offsets.size() - 1,
                  group_offsets.size() - 1, charges);
    check(route_offsets.size() == pair.size() + 1, "offsets do not fit the routes");
    check_offsets(route_offsets, route_link.size());
    check_below(route_link, int64_t(capacity.size()), "a link that is not there");
    check(output >= 0 && input >= 0 && within >= 0 && buses >= 0, "a number below 0");
    const std::vector<int32_t> nodes(place.data(), place.data() + place.size());
    int32_t highest = -1;
    for (int32_t n : nodes) {
        check(n >= 0 && size_t(n) < processes, "a node that is not there");
        highest = std::max(highest, n);
    }

    const contended::Plan plan{processes,     messages,      collectives,    offsets.data(),
                               kind.data(),   target.data(), Bursts(burst),  tail.data(),
                               sender.data(), receiver.data(), message_class.data(), members.data(), root.data(), collective_class.data()};
    const Prices prices{cpu.data(),
                        transfer.data(),
                        busy.data(),
                        bytes.data(),
                        rendezvous.data(),
                        send_overhead.data(),
                        receive_before.data(),
                        receive_after.data(),
                        sender_waits_for_transfer,
                        collective_cost.data(),
                        member_cost.data(),
                        collective_rule.data(),
                        request_cost.data(),
                        uneven_cost.size(),
                        uneven_operation.data(),
                        uneven_cost.data()};
    const contended::Resources resources{output, input, within, buses};
    const contended::Routes routes{pair.size(),         pair.data(),
                                   route_offsets.data(), route_link.data(),
                                   route_latency.data(),
                                   capacity.data(),      capacity.size(),
                                   capacity_within};
    std::vector<double> begin(moments ? operations : 0), end(begin.size()), clock;
    std::vector<int64_t> next;
    const contended::Times times{moments ? begin.data() : nullptr, moments ? end.data() : nullptr};
    {
        nb::gil_scoped_release released;
        if (fair)
            run<contended::Fair>(plan, prices, carried, times, routes, nodes, highest + 1, clock,
                                 next);
        else
            run<contended::Fifo>(plan, prices, carried, times, resources, nodes, highest + 1,
                                 clock, next);
    }
    return nb::make_tuple(numpy(std::move(clock)), numpy(std::move(next)), numpy(std::move(begin)),
                          numpy(std::move(end)));
}

} // namespace

void bind_contended(nb::module_ &module) {
    module.def("replay_contended", &replay, nb::kw_only(), nb::arg("offsets"), nb::arg("kind"),
               nb::arg("target"), nb::arg("burst"), nb::arg("tail"), nb::arg("sender"),
               nb::arg("receiver"), nb::arg("message_class"), nb::arg("members"), nb::arg("root"),
               nb::arg("collective_class"), nb::arg("cpu"),
               nb::arg("transfer"), nb::arg("busy"), nb::arg("bytes"), nb::arg("rendezvous"),
               nb::arg("send_overhead"), nb::arg("receive_before"), nb::arg("receive_after"),
               nb::arg("sender_waits_for_transfer"), nb::arg("collective_cost"),
               nb::arg("member_cost"), nb::arg("collective_rule"), nb::arg("request_cost"),
               nb::arg("uneven_operation"), nb::arg("uneven_cost"), nb::arg("algorithm"),
               nb::arg("algorithm_offsets"), nb::arg("part_pattern"), nb::arg("part_segments"),
               nb::arg("part_charge"), nb::arg("root_rank"), nb::arg("group"),
               nb::arg("group_offsets"), nb::arg("group_process"), nb::arg("group_rank"),
               nb::arg("group_member"), nb::arg("node"), nb::arg("far"),
               nb::arg("place"), nb::arg("fair"), nb::arg("output"), nb::arg("input"),
               nb::arg("within"), nb::arg("buses"), nb::arg("pair"), nb::arg("route_offsets"),
               nb::arg("route_link"), nb::arg("route_latency"),
               nb::arg("capacity"), nb::arg("capacity_within"), nb::arg("moments"),
               "Replay a program whose messages share links; returns the time at which each process "
               "ends or is stuck (ns), the operation at which it is then, and, if `moments`, when "
               "each operation begins and ends (ns).");
}
