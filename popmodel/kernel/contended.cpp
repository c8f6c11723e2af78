// Python's view of the engine for networks whose links messages share.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "contended.hpp"
#include "fair.hpp"
#include "fifo.hpp"
#include "given.hpp"
#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;
using contended::Prices;

namespace {

template <typename... Columns> bool of_length(size_t length, const Columns &...columns) {
    return ((columns.size() == length) && ...);
}

template <typename Links, typename What>
void run(const contended::Plan &plan, const Prices &prices, const Carried &carried,
         const contended::Times &times, const What &what, const popmodel::LongVector<int32_t> &node,
         int32_t nodes, popmodel::LongVector<double> &end, popmodel::LongVector<int64_t> &next) {
    contended::Engine<Links> engine(plan, prices, carried, times, what, node, nodes);
    engine.run();
    end = std::move(engine.clock());
    next = std::move(engine.next());
}

nb::tuple replay(
    const Given &given, const Costs &costs, const CarriedColumns *carried,
    // between whom its messages go, and what those of each class put on links
    In<int32_t> sender, In<int32_t> receiver, In<double> busy, In<double> bytes,
    // what is shared
    In<int32_t> place, bool fair, int32_t output, int32_t input, int32_t within, int32_t buses,
    In<int64_t> pair, In<int64_t> route_offsets, In<int32_t> route_link,
    In<double> route_latency, In<double> capacity, double capacity_within,
    // what is asked for
    bool moments) {
    given.check_fits(costs, carried);
    check(costs.rows() == 1, "not one network");
    const size_t processes = given.tail.size(), operations = given.kind.size();
    check(of_length(processes, place) &&
              of_length(given.message_class.size(), sender, receiver) &&
              of_length(costs.rendezvous.size(), busy, bytes) &&
              of_length(pair.size(), route_latency),
          DIFFERENT_LENGTHS);
    check_below(sender, int64_t(processes), "a process that is not there");
    check_below(receiver, int64_t(processes), "a process that is not there");
    check(route_offsets.size() == pair.size() + 1, "offsets do not fit the routes");
    check_offsets(route_offsets, route_link.size());
    check_below(route_link, int64_t(capacity.size()), "a link that is not there");
    check(output >= 0 && input >= 0 && within >= 0 && buses >= 0, "a number below 0");
    const popmodel::LongVector<int32_t> nodes(place.data(), place.data() + place.size());
    int32_t highest = -1;
    for (int32_t n : nodes) {
        check(n >= 0 && size_t(n) < processes, "a node that is not there");
        highest = std::max(highest, n);
    }

    const contended::Plan plan{given.program(), sender.data(), receiver.data()};
    const Prices prices{costs.cpu.data(),
                        costs.transfer.data(),
                        busy.data(),
                        bytes.data(),
                        costs.rendezvous.data(),
                        costs.send_overhead.data(),
                        costs.receive_before.data(),
                        costs.receive_after.data(),
                        costs.sender_waits_for_transfer,
                        costs.collective_cost.data(),
                        costs.member_cost.data(),
                        costs.collective_rule.data(),
                        costs.request_cost.data(),
                        costs.uneven_cost.data()};
    const contended::Resources resources{output, input, within, buses};
    const contended::Routes routes{pair.size(),         pair.data(),
                                   route_offsets.data(), route_link.data(),
                                   route_latency.data(),
                                   capacity.data(),      capacity.size(),
                                   capacity_within};
    popmodel::LongVector<double> begin(moments ? operations : 0), end(begin.size()), clock;
    popmodel::LongVector<int64_t> next;
    const contended::Times times{moments ? begin.data() : nullptr, moments ? end.data() : nullptr};
    {
        nb::gil_scoped_release released;
        if (fair)
            run<contended::Fair>(plan, prices, columns(carried), times, routes, nodes, highest + 1,
                                 clock, next);
        else
            run<contended::Fifo>(plan, prices, columns(carried), times, resources, nodes,
                                 highest + 1, clock, next);
    }
    return nb::make_tuple(numpy(std::move(clock)), numpy(std::move(next)), numpy(std::move(begin)),
                          numpy(std::move(end)));
}

} // namespace

void bind_contended(nb::module_ &module) {
    module.def("replay_contended", &replay, nb::arg("program"), nb::arg("costs"),
               nb::arg("carried").none(), nb::kw_only(), nb::arg("sender"), nb::arg("receiver"),
               nb::arg("busy"), nb::arg("bytes"), nb::arg("place"), nb::arg("fair"),
               nb::arg("output"), nb::arg("input"), nb::arg("within"), nb::arg("buses"),
               nb::arg("pair"), nb::arg("route_offsets"), nb::arg("route_link"),
               nb::arg("route_latency"), nb::arg("capacity"), nb::arg("capacity_within"),
               nb::arg("moments"),
               "Replay a program whose messages share links; returns the time at which each process "
               "ends or is stuck (ns), the operation at which it is then, and, if `moments`, when "
               "each operation begins and ends (ns).");
}
