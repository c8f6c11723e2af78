// What Python gives the engines: a program, what it costs, and its collectives as messages. All is
// checked once, when it is given or where it meets, because the compiled loops index without checks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "scratch.hpp"

#include "algorithms.hpp"
#include "bursts.hpp"
#include "engine.hpp"
#include "numpy.hpp"

namespace popmodel {

// A row of times for each network, or one of times and one of derivatives.
using Rows =
    nanobind::ndarray<const double, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;

// What messages and collectives of each class cost, and how fast processes compute.
struct Costs {
    Rows cpu, transfer, send_overhead, receive_before, receive_after, collective_cost,
        member_cost, request_cost, uneven_cost;
    In<uint8_t> rendezvous, collective_rule;
    bool sender_waits_for_transfer;

    Costs(Rows cpu, Rows transfer, In<uint8_t> rendezvous, Rows send_overhead,
          Rows receive_before, Rows receive_after, bool sender_waits_for_transfer,
          Rows collective_cost,
          Rows member_cost, In<uint8_t> collective_rule, Rows request_cost, Rows uneven_cost)
        : cpu(cpu), transfer(transfer), send_overhead(send_overhead),
          receive_before(receive_before), receive_after(receive_after),
          collective_cost(collective_cost),
          member_cost(member_cost), request_cost(request_cost), uneven_cost(uneven_cost),
          rendezvous(rendezvous), collective_rule(collective_rule),
          sender_waits_for_transfer(sender_waits_for_transfer) {
        const size_t rows = cpu.shape(0), messages = rendezvous.size();
        for (const Rows *one : {&transfer, &send_overhead, &receive_before, &receive_after})
            check(one->shape(0) == rows && one->shape(1) == messages, DIFFERENT_LENGTHS);
        for (const Rows *one : {&collective_cost, &member_cost, &request_cost})
            check(one->shape(0) == rows && one->shape(1) == collective_rule.size(),
                  DIFFERENT_LENGTHS);
        check(uneven_cost.shape(0) == rows, DIFFERENT_LENGTHS);
        check_below(collective_rule, LAST_DECIDES + 1, "an unknown rule for collectives");
    }

    size_t rows() const { return cpu.shape(0); }
    bool carried_out() const {
        const uint8_t *rule = collective_rule.data();
        return std::find(rule, rule + collective_rule.size(), MESSAGES) !=
               rule + collective_rule.size();
    }
};

// Collectives as messages.
struct CarriedColumns {
    In<int32_t> algorithm;
    In<int64_t> parts;
    popmodel::LongVector<Piece> part;
    In<int32_t> root, group;
    In<int64_t> offsets;
    In<int32_t> process, rank, member, node;
    int64_t far;

    CarriedColumns(In<int32_t> algorithm, In<int64_t> parts, In<uint8_t> pattern,
                   In<int32_t> segments, In<int64_t> charge, In<int32_t> root, In<int32_t> group,
                   In<int64_t> offsets, In<int32_t> process, In<int32_t> rank, In<int32_t> member,
                   In<int32_t> node, int64_t far)
        : algorithm(algorithm), parts(parts), root(root), group(group), offsets(offsets),
          process(process), rank(rank), member(member), node(node), far(far) {
        check_offsets(offsets, process.size());
        check_offsets(parts, pattern.size());
        check(rank.size() == process.size() && member.size() == process.size() &&
                  segments.size() == pattern.size() && charge.size() == pattern.size() &&
                  root.size() == algorithm.size() && group.size() == algorithm.size(),
              DIFFERENT_LENGTHS);
        check(far >= 0, "charges before the first");
        for (size_t i = 0; i < pattern.size(); i++)
            part.push_back({Pattern(pattern.data()[i]), segments.data()[i], charge.data()[i]});
    }

    // Whether its processes and nodes are there.
    void check_processes(size_t processes) const {
        check_below(member, int64_t(processes), "a member that is not there");
        check(node.size() == 0 || node.size() == processes, DIFFERENT_LENGTHS);
    }

    // Whether a collective has members, a root among them, and charges for its message sizes.
    bool carries(size_t c, int32_t members, size_t charges) const {
        const int32_t g = group.data()[c], r = root.data()[c], a = algorithm.data()[c];
        if (members < 1 || r < 0 || r >= members || g < 0 || size_t(g) + 1 >= offsets.size() ||
            a < 0 || size_t(a) + 1 >= parts.size())
            return false;
        const int64_t *bound = offsets.data() + g, *of = parts.data() + a;
        return bound[1] - bound[0] == members &&
               std::all_of(part.begin() + of[0], part.begin() + of[1], [&](const Piece &x) {
                   return x.pattern < PATTERNS && x.segments >= 1 && x.charge >= 0 &&
                          x.charge + far + sizes(x.pattern, members) <= int64_t(charges);
               });
    }

    Carried columns() const {
        return {algorithm.data(), parts.data(),   part.data(),
                root.data(),      group.data(),   offsets.data(),
                process.data(),   rank.data(),    member.data(),
                node.size() ? node.data() : nullptr, far};
    }
};

// A program whose columns fit each other; it keeps them.
struct Given {
    In<int64_t> offsets;
    In<uint8_t> kind;
    In<int32_t> target;
    Bursts::Column burst;
    In<double> tail;
    In<int32_t> message_class, collective_class, members, root;
    In<int64_t> uneven_operation;
    int64_t classes = 0, kinds = 0; // of messages and of collectives

    Given(In<int64_t> offsets, In<uint8_t> kind, In<int32_t> target, Bursts::Column burst,
          In<double> tail, In<int32_t> message_class, In<int32_t> collective_class,
          In<int32_t> members, In<int32_t> root, In<int64_t> uneven_operation)
        : offsets(offsets), kind(kind), target(target), burst(burst), tail(tail),
          message_class(message_class), collective_class(collective_class), members(members),
          root(root), uneven_operation(uneven_operation) {
        const size_t operations = kind.size(), collectives = members.size();
        check(target.size() == operations && burst.size() == operations &&
                  root.size() == collectives && collective_class.size() == collectives,
              DIFFERENT_LENGTHS);
        check(offsets.size() == tail.size() + 1, "offsets do not fit the processes");
        check_offsets(offsets, operations);
        for (size_t i = 0; i < operations; i++) {
            const uint8_t op = kind.data()[i];
            const int32_t x = target.data()[i];
            if (op > WAIT_COLLECTIVE || x < 0 ||
                size_t(x) >= (op >= COLLECTIVE ? collectives : message_class.size()))
                throw std::invalid_argument("operation " + std::to_string(i) +
                                            " has an unknown kind or target");
        }
        for (size_t m = 0; m < message_class.size(); m++)
            classes = std::max(classes, int64_t(message_class.data()[m]) + 1);
        check_below(message_class, classes, "a class that is not there");
        for (size_t c = 0; c < collectives; c++)
            kinds = std::max(kinds, int64_t(collective_class.data()[c]) + 1);
        check_below(collective_class, kinds, "a class that is not there");
    }

    // Whether what it costs, and how its collectives are carried out, fit it.
    void check_fits(const Costs &costs, const CarriedColumns *carried) const {
        check(costs.cpu.shape(1) == tail.size() &&
                  costs.uneven_cost.shape(1) == uneven_operation.size(),
              DIFFERENT_LENGTHS);
        check(size_t(classes) <= costs.rendezvous.size() &&
                  size_t(kinds) <= costs.collective_rule.size(),
              "a class that is not there");
        if (!costs.carried_out())
            return;
        check(carried && carried->algorithm.size() == members.size(), DIFFERENT_LENGTHS);
        carried->check_processes(tail.size());
        for (size_t c = 0; c < members.size(); c++)
            if (costs.collective_rule.data()[collective_class.data()[c]] == MESSAGES &&
                !carried->carries(c, members.data()[c], costs.rendezvous.size()))
                throw std::invalid_argument("collective " + std::to_string(c) +
                                            " cannot be carried out as messages");
    }

    Program program() const {
        return {tail.size(),
                message_class.size(),
                members.size(),
                offsets.data(),
                kind.data(),
                target.data(),
                Bursts(burst),
                tail.data(),
                message_class.data(),
                collective_class.data(),
                members.data(),
                root.data(),
                uneven_operation.size(),
                uneven_operation.data()};
    }

    bool finished(const popmodel::LongVector<int64_t> &next) const {
        return std::equal(next.begin(), next.end(), offsets.data() + 1);
    }
};

// How collectives are carried out, where they are.
inline Carried columns(const CarriedColumns *carried) {
    return carried ? carried->columns() : Carried{};
}

} // namespace popmodel
