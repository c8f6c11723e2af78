// What threads tell at instants, such as readings of counters, and sums of it inside intervals.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scratch.hpp"

#include "ascending.hpp"
#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

// Times, and begins of intervals, ascend inside a location. Of several readings at one time the first
// counts, and it belongs to the interval with begin < time <= end.
// Returns the sum of each location, how many values are negative, and the sum of all as a float.
nb::tuple sum_inside(In<int64_t> offsets, In<int64_t> time, In<int64_t> value,
                     In<int64_t> within_offsets, In<int64_t> begin, In<int64_t> end) {
    check_offsets(offsets, time.size());
    check_offsets(within_offsets, begin.size());
    check(value.size() == time.size() && end.size() == begin.size() &&
              within_offsets.size() == offsets.size(),
          DIFFERENT_LENGTHS);
    popmodel::LongVector<int64_t> sums;
    int64_t negative = 0;
    double total = 0;
    for (size_t l = 0; l + 1 < offsets.size(); l++) {
        const int64_t first = offsets.data()[l], from = within_offsets.data()[l];
        Ascending begins(begin.data() + from, size_t(within_offsets.data()[l + 1] - from));
        uint64_t sum = 0; // wraps around where int64 would overflow
        for (int64_t i = first; i < offsets.data()[l + 1]; i++) {
            const int64_t at = time.data()[i];
            if (i > first && time.data()[i - 1] == at)
                continue;
            const size_t index = begins.until(at - 1);
            if (index == 0 || at > end.data()[from + int64_t(index) - 1])
                continue;
            sum += uint64_t(value.data()[i]);
            total += double(value.data()[i]);
            negative += value.data()[i] < 0;
        }
        sums.push_back(int64_t(sum));
    }
    return nb::make_tuple(numpy(std::move(sums)), negative, total);
}

// What events of some types tell, sorted into tables: fed with the events of all locations block after
// block, whose types are looked at once for all tables.
class Readings {
  public:
    // Table `table[run]` takes the types from low[run] to high[run]; a type can be in several tables.
    // events: how many come in all.
    Readings(size_t locations, size_t events, In<uint32_t> low, In<uint32_t> high,
             In<uint32_t> table, size_t tables)
        : events_(events), tables_(tables) {
        check(high.size() == low.size() && table.size() == low.size(), DIFFERENT_LENGTHS);
        check_below(table, int64_t(tables), "a table that is not there");
        uint32_t highest = 0;
        for (size_t run = 0; run < low.size(); run++) {
            const uint32_t first = low.data()[run], last = high.data()[run];
            runs_.push_back({first, last - first, table.data()[run]});
            lowest_ = std::min(lowest_, first);
            highest = std::max(highest, last);
        }
        span_ = runs_.empty() ? 0 : highest - lowest_;
        for (Table &each : tables_)
            each.count.resize(locations);
    }

    // offsets: of all locations, inside this block.
    void feed(In<int64_t> offsets, In<int64_t> time, In<uint32_t> type, In<int64_t> value) {
        check_offsets(offsets, time.size());
        check(type.size() == time.size() && value.size() == time.size(), DIFFERENT_LENGTHS);
        for (const Table &each : tables_)
            check(offsets.size() == each.count.size() + 1, "offsets of other locations");
        nb::gil_scoped_release released;
        for (size_t l = 0; l + 1 < offsets.size(); l++)
            take(l, offsets.data()[l], offsets.data()[l + 1], time.data(), type.data(),
                 value.data());
        expect(time.size());
    }

    // How many each location has, and their times and values, of each table.
    nb::list finish() {
        nb::list found;
        for (Table &each : tables_)
            found.append(nb::make_tuple(numpy(std::move(each.count)), numpy(std::move(each.time)),
                                        numpy(std::move(each.value))));
        return found;
    }

  private:
    struct Run {
        uint32_t least, span;
        size_t table;
    };
    struct Table {
        popmodel::LongVector<int64_t> count, time, value;
    };

    // As with calls: columns that grow step by step are copied again and again.
    void expect(size_t fed) {
        if (fed == 0 || fed >= events_)
            return;
        for (Table &each : tables_) {
            const double share = double(events_) / double(fed);
            const size_t most = size_t(1.05 * share * double(each.time.size()));
            each.time.reserve(most);
            each.value.reserve(most);
        }
        events_ = 0; // expected once
    }

    void take(size_t location, int64_t begin, int64_t end, const int64_t *time,
              const uint32_t *type, const int64_t *value) {
        const Run *const first = runs_.data(), *const last = first + runs_.size();
        const uint32_t lowest = lowest_, span = span_;
        for (int64_t i = begin; i < end; i++) {
            const uint32_t mine = type[i];
            if (mine - lowest > span) // those below it differ by much
                continue;
            for (const Run *run = first; run < last; run++)
                if (mine - run->least <= run->span) {
                    Table &table = tables_[run->table];
                    table.count[location]++;
                    table.time.push_back(time[i]);
                    table.value.push_back(value[i]);
                }
        }
    }

    size_t events_;
    popmodel::LongVector<Run> runs_;
    popmodel::LongVector<Table> tables_;
    uint32_t lowest_ = UINT32_MAX, span_ = 0; // of all runs
};

} // namespace

void bind_readings(nb::module_ &module) {
    nb::class_<Readings>(module, "Readings", "Sorts what events of some types tell into tables.")
        .def(nb::init<size_t, size_t, In<uint32_t>, In<uint32_t>, In<uint32_t>, size_t>(),
             nb::kw_only(),
             nb::arg("locations"), nb::arg("events"), nb::arg("low"), nb::arg("high"),
             nb::arg("table"), nb::arg("tables"))
        .def("feed", &Readings::feed, nb::arg("offsets"), nb::arg("time"), nb::arg("type"),
             nb::arg("value"), "Take further events; the offsets are those of all locations.")
        .def("finish", &Readings::finish,
             "How many each location has, and their times and values, of each table.");
    module.def("sum_inside", &sum_inside, nb::kw_only(), nb::arg("offsets"), nb::arg("time"),
               nb::arg("value"), nb::arg("within_offsets"), nb::arg("begin"), nb::arg("end"),
               "Sum of what is told inside intervals by location, how many values are negative, and "
               "the sum of all.");
}
