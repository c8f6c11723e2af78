// Python's view of the engine: checks a program once and what it costs on networks, and replays it.

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
#include "walk.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

constexpr size_t LANES = 8;
using Lane = Lanes<LANES>;
using Sloped = Slopes<LANES>;

// A row of times for each network, or one of times and one of derivatives.
using Rows =
    nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

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

double at(const Rows &table, size_t row, size_t column) {
    return table.data()[row * table.shape(1) + column];
}

template <typename D> D duration(const Rows &table, size_t column);
template <> double duration(const Rows &table, size_t column) { return at(table, 0, column); }
template <> Slope duration(const Rows &table, size_t column) {
    return {at(table, 0, column), at(table, 1, column)};
}
template <> Lane duration(const Rows &table, size_t column) {
    Lane found;
    for (size_t k = 0; k < LANES; k++)
        found.v[k] = at(table, k, column);
    return found;
}

template <> Sloped duration(const Rows &table, size_t column) {
    Sloped found;
    for (size_t k = 0; k < LANES; k++) {
        found.t.v[k] = at(table, k, column);
        found.dt.v[k] = at(table, LANES + k, column);
    }
    return found;
}

template <typename Time> Network<Time> network(const Costs &costs) {
    using D = Duration<Time>;
    Network<Time> found;
    for (size_t p = 0; p < costs.cpu.shape(1); p++)
        found.cpu.push_back(duration<D>(costs.cpu, p));
    for (size_t k = 0; k < costs.rendezvous.size(); k++)
        found.message.push_back({duration<D>(costs.transfer, k),
                                 duration<D>(costs.send_overhead, k),
                                 duration<D>(costs.receive_before, k),
                                 duration<D>(costs.receive_after, k),
                                 costs.rendezvous.data()[k] != 0});
    for (size_t k = 0; k < costs.collective_rule.size(); k++)
        found.collective.push_back({duration<D>(costs.collective_cost, k),
                                    duration<D>(costs.member_cost, k),
                                    duration<D>(costs.request_cost, k),
                                    Rule(costs.collective_rule.data()[k])});
    for (size_t k = 0; k < costs.uneven_cost.shape(1); k++)
        found.uneven.push_back(duration<D>(costs.uneven_cost, k));
    found.sender_waits_for_transfer = costs.sender_waits_for_transfer;
    return found;
}

// Collectives as messages.
struct CarriedColumns {
    In<int32_t> algorithm;
    In<int64_t> parts;
    std::vector<Piece> part;
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
class Prepared {
  public:
    Prepared(In<int64_t> offsets, In<uint8_t> kind, In<int32_t> target, Bursts::Column burst,
             In<double> tail, In<int32_t> message_class, In<int32_t> collective_class,
             In<int32_t> members, In<int32_t> root, In<int64_t> uneven_operation)
        : offsets_(offsets), kind_(kind), target_(target), burst_(burst), tail_(tail),
          message_class_(message_class), collective_class_(collective_class), members_(members),
          root_(root), uneven_operation_(uneven_operation) {
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
        classes_ = 0;
        for (size_t m = 0; m < message_class.size(); m++)
            classes_ = std::max(classes_, int64_t(message_class.data()[m]) + 1);
        check_below(message_class, classes_, "a class that is not there");
        kinds_ = 0;
        for (size_t c = 0; c < collectives; c++)
            kinds_ = std::max(kinds_, int64_t(collective_class.data()[c]) + 1);
        check_below(collective_class, kinds_, "a class that is not there");
    }

    // Times at which each process ends or is stuck, a row for each network, and the operation at
    // which it is then.
    nb::tuple run(const Costs &costs, const CarriedColumns *carried) const {
        check_fits(costs, carried);
        if (costs.rows() == 1) {
            const auto net = network<double>(costs);
            Engine<double> engine(program(), net, columns(carried));
            return ends(engine);
        }
        check(costs.rows() == LANES, "neither one network nor as many as there are lanes");
        const auto net = network<Lane>(costs);
        Engine<Lane> engine(program(), net, columns(carried));
        return ends(engine);
    }

    // The same of as many networks as there are lanes, from a row of times and one of derivatives of
    // each: rows of times, then rows of derivatives.
    nb::tuple slopes(const Costs &costs, const CarriedColumns *carried) const {
        check_fits(costs, carried);
        check(costs.rows() == 2 * LANES, "not a row of times and one of derivatives of each lane");
        const auto net = network<Sloped>(costs);
        Engine<Sloped> engine(program(), net, columns(carried));
        return ends(engine);
    }

    // The same of one network, and the time in the calls of each place and name.
    nb::object spent(const Costs &costs, const CarriedColumns *carried, In<int32_t> call,
                    In<int16_t> call_name, In<int32_t> call_place, size_t names,
                    size_t places) const {
        check_fits(costs, carried);
        check(call.size() == kind_.size() &&
                  (call_place.size() == 0 || call_place.size() == call_name.size()),
              DIFFERENT_LENGTHS);
        check_below(call, int64_t(call_name.size()), "a call that is not there");
        check_below(call_name, int64_t(names), "a name that is not there");
        check_below(call_place, int64_t(places), "a place that is not there");
        Spent found{call.data(), call_name.data(), call_place.size() ? call_place.data() : nullptr,
                    names, std::vector<double>(places * names, 0.0)};
        const auto net = network<double>(costs);
        Engine<double, Spent *> engine(program(), net, columns(carried), &found);
        const auto done = ends(engine); // before what it finds is handed over
        return done + nb::make_tuple(numpy(std::move(found.time)));
    }

    // The same of one network, and when each operation begins and ends.
    nb::object moments(const Costs &costs, const CarriedColumns *carried) const {
        check_fits(costs, carried);
        std::vector<double> begin(kind_.size()), end(kind_.size());
        const auto net = network<double>(costs);
        Engine<double, Moments> engine(program(), net, columns(carried),
                                       Moments{begin.data(), end.data()});
        const auto done = ends(engine); // before what it finds is handed over
        return done + nb::make_tuple(numpy(std::move(begin)), numpy(std::move(end)));
    }

    // The same of one network, and the steps of the way to the last end: of their process, that of
    // the one that decided when they begin, operation, part, row, table and charge.
    nb::object path(const Costs &costs, const CarriedColumns *carried) const {
        check_fits(costs, carried);
        check(costs.rows() == 2, "not a row of times and one of derivatives");
        const auto net = network<Traced>(costs);
        Path way;
        Engine<Traced> engine(program(), net, columns(carried));
        const auto found = ends(engine);
        const auto &clock = engine.clock();
        if (!clock.empty() && finished(engine.next())) {
            nb::gil_scoped_release released;
            Traced last = clock[0];
            for (const Traced &t : clock)
                last = later(last, t);
            way = Walk(engine.program(), net, columns(carried), engine.trail()).to(last.entry);
        }
        return found + nb::make_tuple(
                           numpy(std::move(way.process)), numpy(std::move(way.source)),
                           numpy(std::move(way.operation)), numpy(std::move(way.part)),
                           numpy(std::move(way.row)), numpy(std::move(way.table)),
                           numpy(std::move(way.charge)));
    }

  private:
    void check_fits(const Costs &costs, const CarriedColumns *carried) const {
        check(costs.cpu.shape(1) == tail_.size() &&
                  costs.uneven_cost.shape(1) == uneven_operation_.size(),
              DIFFERENT_LENGTHS);
        check(size_t(classes_) <= costs.rendezvous.size() &&
                  size_t(kinds_) <= costs.collective_rule.size(),
              "a class that is not there");
        if (!costs.carried_out())
            return;
        check(carried && carried->algorithm.size() == members_.size(), DIFFERENT_LENGTHS);
        carried->check_processes(tail_.size());
        for (size_t c = 0; c < members_.size(); c++)
            if (costs.collective_rule.data()[collective_class_.data()[c]] == MESSAGES &&
                !carried->carries(c, members_.data()[c], costs.rendezvous.size()))
                throw std::invalid_argument("collective " + std::to_string(c) +
                                            " cannot be carried out as messages");
    }

    static Carried columns(const CarriedColumns *carried) {
        return carried ? carried->columns() : Carried{};
    }

    Program program() const {
        return {tail_.size(),
                message_class_.size(),
                members_.size(),
                offsets_.data(),
                kind_.data(),
                target_.data(),
                Bursts(burst_),
                tail_.data(),
                message_class_.data(),
                collective_class_.data(),
                members_.data(),
                root_.data(),
                uneven_operation_.size(),
                uneven_operation_.data()};
    }

    bool finished(const std::vector<int64_t> &next) const {
        return std::equal(next.begin(), next.end(), offsets_.data() + 1);
    }

    static double plain(double t, size_t) { return t; }
    static double plain(const Traced &t, size_t) { return t.t; }
    static double plain(const Lane &t, size_t k) { return t.v[k]; }
    static double plain(const Sloped &t, size_t k) {
        return k < LANES ? t.t.v[k] : t.dt.v[k - LANES];
    }

    template <typename Time, typename Asked> static nb::tuple ends(Engine<Time, Asked> &engine) {
        std::vector<double> end;
        {
            nb::gil_scoped_release released;
            engine.run();
            const size_t rows = std::is_same_v<Time, Lane>     ? LANES
                                : std::is_same_v<Time, Sloped> ? 2 * LANES
                                                               : 1;
            for (size_t k = 0; k < rows; k++)
                for (const Time &t : engine.clock())
                    end.push_back(plain(t, k));
        }
        return nb::make_tuple(numpy(std::move(end)), numpy(std::vector<int64_t>(engine.next())));
    }

    In<int64_t> offsets_;
    In<uint8_t> kind_;
    In<int32_t> target_;
    Bursts::Column burst_;
    In<double> tail_;
    In<int32_t> message_class_, collective_class_, members_, root_;
    In<int64_t> uneven_operation_;
    int64_t classes_, kinds_; // of messages and of collectives
};

} // namespace

void bind_replay(nb::module_ &module) {
    nb::class_<Costs>(module, "Costs",
                      "What messages and collectives of each class cost, ns, and the factor of "
                      "every process's bursts; a row for each network.")
        .def(nb::init<Rows, Rows, In<uint8_t>, Rows, Rows, Rows, bool, Rows, Rows, In<uint8_t>,
                      Rows, Rows>(),
             nb::arg("cpu"), nb::arg("transfer"), nb::arg("rendezvous"), nb::arg("send_overhead"),
             nb::arg("receive_before"), nb::arg("receive_after"), nb::arg("sender_waits_for_transfer"),
             nb::arg("collective_cost"), nb::arg("member_cost"), nb::arg("collective_rule"),
             nb::arg("request_cost"), nb::arg("uneven_cost"));
    nb::class_<CarriedColumns>(module, "Carried", "Collectives that are carried out as messages.")
        .def(nb::init<In<int32_t>, In<int64_t>, In<uint8_t>, In<int32_t>, In<int64_t>,
                      In<int32_t>, In<int32_t>, In<int64_t>, In<int32_t>, In<int32_t>,
                      In<int32_t>, In<int32_t>, int64_t>(),
             nb::arg("algorithm"), nb::arg("algorithm_offsets"), nb::arg("part_pattern"),
             nb::arg("part_segments"), nb::arg("part_charge"), nb::arg("root_rank"),
             nb::arg("group"), nb::arg("group_offsets"), nb::arg("group_process"),
             nb::arg("group_rank"), nb::arg("group_member"), nb::arg("node"), nb::arg("far"));
    nb::class_<Prepared>(module, "Replay",
                         "A program that is replayed. Every method returns the time at which each "
                         "process ends or is stuck (ns) and the operation at which it is then.")
        .def(nb::init<In<int64_t>, In<uint8_t>, In<int32_t>, Bursts::Column, In<double>,
                      In<int32_t>, In<int32_t>, In<int32_t>, In<int32_t>, In<int64_t>>(),
             nb::arg("offsets"), nb::arg("kind"), nb::arg("target"), nb::arg("burst"),
             nb::arg("tail"), nb::arg("message_class"), nb::arg("collective_class"),
             nb::arg("members"), nb::arg("root"), nb::arg("uneven_operation"))
        .def("run", &Prepared::run, nb::arg("costs"), nb::arg("carried").none(),
             "On one network, or on as many as there are lanes.")
        .def("slopes", &Prepared::slopes, nb::arg("costs"), nb::arg("carried").none(),
             "On as many networks as there are lanes, and the derivatives of these times.")
        .def("spent", &Prepared::spent, nb::arg("costs"), nb::arg("carried").none(),
             nb::arg("call"), nb::arg("call_name"), nb::arg("call_place"), nb::arg("names"),
             nb::arg("places"), "And the time in the calls of each place and name, ns.")
        .def("moments", &Prepared::moments, nb::arg("costs"), nb::arg("carried").none(),
             "And when each operation begins, after the computing before it, and ends, ns.")
        .def("path", &Prepared::path, nb::arg("costs"), nb::arg("carried").none(),
             "And the critical path: process, source, operation, part, row, table and charge of "
             "each step.");
    module.attr("LANES") = LANES;
}
