// Python's view of the engine: replays a program on networks without shared resources.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "engine.hpp"
#include "given.hpp"
#include "numpy.hpp"
#include "walk.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

constexpr size_t LANES = 8;
using Lane = Lanes<LANES>;
using Sloped = Slopes<LANES>;

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
                                 costs.rendezvous.data()[k] != 0,
                                 costs.rendezvous.data()[k] == DETACHED});
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

double plain(double t, size_t) { return t; }
double plain(const Traced &t, size_t) { return t.t; }
double plain(const Lane &t, size_t k) { return t.v[k]; }
double plain(const Sloped &t, size_t k) {
    return k < LANES ? t.t.v[k] : t.dt.v[k - LANES];
}

template <typename Time, typename Asked> nb::tuple ends(Engine<Time, Asked> &engine) {
    popmodel::LongVector<double> end;
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
    return nb::make_tuple(numpy(std::move(end)), numpy(popmodel::LongVector<int64_t>(engine.next())));
}

// Times at which each process ends or is stuck, a row for each network, and the operation at
// which it is then.
nb::tuple run(const Given &given, const Costs &costs, const CarriedColumns *carried) {
    given.check_fits(costs, carried);
    if (costs.rows() == 1) {
        const auto net = network<double>(costs);
        Engine<double> engine(given.program(), net, columns(carried));
        return ends(engine);
    }
    check(costs.rows() == LANES, "neither one network nor as many as there are lanes");
    const auto net = network<Lane>(costs);
    Engine<Lane> engine(given.program(), net, columns(carried));
    return ends(engine);
}

// The same of as many networks as there are lanes, from a row of times and one of derivatives of
// each: rows of times, then rows of derivatives.
nb::tuple slopes(const Given &given, const Costs &costs, const CarriedColumns *carried) {
    given.check_fits(costs, carried);
    check(costs.rows() == 2 * LANES, "not a row of times and one of derivatives of each lane");
    const auto net = network<Sloped>(costs);
    Engine<Sloped> engine(given.program(), net, columns(carried));
    return ends(engine);
}

// The same of one network, and the time in the calls of each place and name.
nb::object spent(const Given &given, const Costs &costs, const CarriedColumns *carried,
                 In<int32_t> call, In<int16_t> call_name, In<int32_t> call_place, size_t names,
                 size_t places) {
    given.check_fits(costs, carried);
    check(call.size() == given.kind.size() &&
              (call_place.size() == 0 || call_place.size() == call_name.size()),
          DIFFERENT_LENGTHS);
    check_below(call, int64_t(call_name.size()), "a call that is not there");
    check_below(call_name, int64_t(names), "a name that is not there");
    check_below(call_place, int64_t(places), "a place that is not there");
    Spent found{call.data(), call_name.data(), call_place.size() ? call_place.data() : nullptr,
                names, popmodel::LongVector<double>(places * names, 0.0)};
    const auto net = network<double>(costs);
    Engine<double, Spent *> engine(given.program(), net, columns(carried), &found);
    const auto done = ends(engine); // before what it finds is handed over
    return done + nb::make_tuple(numpy(std::move(found.time)));
}

// The same of one network, and when each operation begins and ends.
nb::object moments(const Given &given, const Costs &costs, const CarriedColumns *carried) {
    given.check_fits(costs, carried);
    popmodel::LongVector<double> begin(given.kind.size()), end(given.kind.size());
    const auto net = network<double>(costs);
    Engine<double, Moments> engine(given.program(), net, columns(carried),
                                   Moments{begin.data(), end.data()});
    const auto done = ends(engine); // before what it finds is handed over
    return done + nb::make_tuple(numpy(std::move(begin)), numpy(std::move(end)));
}

// The same of one network, and the steps of the way to the last end: of their process, that of
// the one that decided when they begin, operation, part, row, table and charge.
nb::object path(const Given &given, const Costs &costs, const CarriedColumns *carried) {
    given.check_fits(costs, carried);
    check(costs.rows() == 2, "not a row of times and one of derivatives");
    const auto net = network<Traced>(costs);
    Path way;
    Engine<Traced> engine(given.program(), net, columns(carried));
    const auto found = ends(engine);
    const auto &clock = engine.clock();
    if (!clock.empty() && given.finished(engine.next())) {
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
    nb::class_<Given>(module, "Replay",
                      "A program that is replayed. Every method returns the time at which each "
                      "process ends or is stuck (ns) and the operation at which it is then.")
        .def(nb::init<In<int64_t>, In<uint8_t>, In<int32_t>, Bursts::Column, In<double>,
                      In<int32_t>, In<int32_t>, In<int32_t>, In<int32_t>, In<int64_t>>(),
             nb::arg("offsets"), nb::arg("kind"), nb::arg("target"), nb::arg("burst"),
             nb::arg("tail"), nb::arg("message_class"), nb::arg("collective_class"),
             nb::arg("members"), nb::arg("root"), nb::arg("uneven_operation"))
        .def("run", &run, nb::arg("costs"), nb::arg("carried").none(),
             "On one network, or on as many as there are lanes.")
        .def("slopes", &slopes, nb::arg("costs"), nb::arg("carried").none(),
             "On as many networks as there are lanes, and the derivatives of these times.")
        .def("spent", &spent, nb::arg("costs"), nb::arg("carried").none(),
             nb::arg("call"), nb::arg("call_name"), nb::arg("call_place"), nb::arg("names"),
             nb::arg("places"), "And the time in the calls of each place and name, ns.")
        .def("moments", &moments, nb::arg("costs"), nb::arg("carried").none(),
             "And when each operation begins, after the computing before it, and ends, ns.")
        .def("path", &path, nb::arg("costs"), nb::arg("carried").none(),
             "And the critical path: process, source, operation, part, row, table and charge of "
             "each step.");
    module.attr("LANES") = LANES;
}
