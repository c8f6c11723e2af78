// Python's view of formats without measured times: text in, columns of calls and bursts out.

#include "scratch.hpp"
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "goal.hpp"
#include "numpy.hpp"
#include "smpi.hpp"

namespace nb = nanobind;
using namespace popmodel::untimed;
using popmodel::Bytes;
using popmodel::In;
using popmodel::numpy;

namespace {

struct ActionList {
    std::vector<Actions> processes;
};

// The columns of all processes; their actions go.
nb::dict columns_of(std::vector<Actions> &processes) {
    popmodel::LongVector<std::int64_t> offsets{0}, burst_offsets{0};
    popmodel::LongVector<double> ends;
    std::size_t collectives = 0;
    for (const Actions &mine : processes) {
        offsets.push_back(offsets.back() + static_cast<std::int64_t>(mine.calls.size()));
        burst_offsets.push_back(burst_offsets.back() +
                                static_cast<std::int64_t>(mine.bursts.size()));
        ends.push_back(mine.time);
        collectives += mine.collectives.size();
    }
    const auto calls = static_cast<std::size_t>(offsets.back());
    const auto bursts = static_cast<std::size_t>(burst_offsets.back());
    popmodel::LongVector<double> time, begin, end;
    popmodel::LongVector<std::int16_t> name;
    popmodel::LongVector<std::int32_t> partner, request;
    popmodel::LongVector<std::int64_t> tag, size, call, sent, received, communicator;
    popmodel::LongVector<std::uint8_t> is_root;
    for (auto *column : {&tag, &size}) column->reserve(calls);
    for (auto *column : {&partner, &request}) column->reserve(calls);
    for (auto *column : {&call, &sent, &received, &communicator}) column->reserve(collectives);
    for (auto *column : {&begin, &end}) column->reserve(bursts);
    time.reserve(calls);
    name.reserve(calls);
    is_root.reserve(collectives);
    nb::dict parts;
    for (std::size_t process = 0; process < processes.size(); ++process) {
        Actions mine = std::move(processes[process]);
        for (const Call &one : mine.calls) {
            time.push_back(one.time);
            name.push_back(one.name);
            partner.push_back(one.partner);
            tag.push_back(one.tag);
            size.push_back(one.size);
            request.push_back(one.request);
        }
        for (CollectiveCall &one : mine.collectives) {
            call.push_back(offsets[process] + one.call);
            sent.push_back(one.sent);
            received.push_back(one.received);
            communicator.push_back(one.communicator);
            is_root.push_back(one.is_root);
            if (!one.parts.empty()) parts[nb::int_(call.back())] = numpy(std::move(one.parts));
        }
        for (const auto &[from, to] : mine.bursts) {
            begin.push_back(from);
            end.push_back(to);
        }
    }
    processes.clear();
    nb::dict found;
    found["offsets"] = numpy(std::move(offsets));
    found["time"] = numpy(std::move(time));
    found["name"] = numpy(std::move(name));
    found["partner"] = numpy(std::move(partner));
    found["tag"] = numpy(std::move(tag));
    found["size"] = numpy(std::move(size));
    found["request"] = numpy(std::move(request));
    found["call"] = numpy(std::move(call));
    found["sent"] = numpy(std::move(sent));
    found["received"] = numpy(std::move(received));
    found["communicator"] = numpy(std::move(communicator));
    found["is_root"] = numpy(std::move(is_root));
    found["parts"] = parts;
    found["burst_offsets"] = numpy(std::move(burst_offsets));
    found["begin"] = numpy(std::move(begin));
    found["end"] = numpy(std::move(end));
    found["ends"] = numpy(std::move(ends));
    return found;
}

template <typename Scanner>
void feed(Scanner &scanner, nb::handle text) {
    const Bytes bytes(text, false);
    nb::gil_scoped_release release;
    scanner.feed(static_cast<const char *>(bytes.data()), bytes.size());
}

Actions &process_of(ActionList &list, std::int64_t process) {
    popmodel::check(process >= 0 && static_cast<std::size_t>(process) < list.processes.size(),
                    "no such process");
    return list.processes[static_cast<std::size_t>(process)];
}

std::int16_t name_of(const std::string &name) {
    for (std::int16_t number = 0; number < kNames_; ++number)
        if (name == kNames[number]) return number;
    throw nb::value_error("no such call");
}

// Of the messages between two ranks with one tag, those of which there are not as many sends as
// receives: sender, receiver, tag, sends and receives of the first, and how many such there are.
nb::object unpaired_messages(const In<std::int64_t> &rank_of, const In<std::int64_t> &offsets,
                             const In<std::int8_t> &side, const In<std::int16_t> &name,
                             const In<std::int32_t> &partner, const In<std::int64_t> &tag) {
    using popmodel::check;
    check(partner.size() == name.size() && tag.size() == name.size(), popmodel::DIFFERENT_LENGTHS);
    check(offsets.size() == rank_of.size() + 1, popmodel::DIFFERENT_LENGTHS);
    popmodel::check_offsets(offsets, name.size());
    popmodel::check_below(name, static_cast<std::int64_t>(side.size()), "no such name");
    struct Ends {
        std::int64_t sends = 0, receives = 0;
    };
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
    struct Hash {
        std::size_t operator()(const Key &key) const {
            std::uint64_t hash = static_cast<std::uint64_t>(std::get<0>(key)) << 32 ^
                                 static_cast<std::uint64_t>(std::get<1>(key));
            hash = (hash * 0x9E3779B97F4A7C15u ^ static_cast<std::uint64_t>(std::get<2>(key))) *
                   0xD6E8FEB86659FD93u;
            return static_cast<std::size_t>(hash ^ hash >> 32);
        }
    };
    std::unordered_map<Key, Ends, Hash> ends;
    for (std::size_t process = 0; process + 1 < offsets.size(); ++process) {
        const std::int64_t me = rank_of.data()[process];
        for (std::int64_t at = offsets.data()[process]; at < offsets.data()[process + 1]; ++at) {
            const std::int8_t way = side.data()[name.data()[at]];
            if (!way) continue;
            const std::int64_t other = partner.data()[at];
            check(other >= 0 && other < static_cast<std::int64_t>(rank_of.size()),
                  "no such partner");
            const std::int64_t there = rank_of.data()[other];
            Ends &mine = ends[{way > 0 ? me : there, way > 0 ? there : me, tag.data()[at]}];
            ++(way > 0 ? mine.sends : mine.receives);
        }
    }
    std::map<Key, Ends> wrong;
    for (const auto &[key, mine] : ends)
        if (mine.sends != mine.receives) wrong.emplace(key, mine);
    if (wrong.empty()) return nb::none();
    const auto &[key, mine] = *wrong.begin();
    return nb::make_tuple(std::get<0>(key), std::get<1>(key), std::get<2>(key), mine.sends,
                          mine.receives, wrong.size());
}

}  // namespace

void bind_untimed(nb::module_ &module) {
    nb::list names;
    for (const char *name : kNames) names.append(name);
    module.attr("UNTIMED_CALLS") = names;
    module.attr("FIRST_COLLECTIVE") = static_cast<int>(kCollective);

    nb::class_<GoalScanner>(module, "GoalScanner", "Scans a schedule in GOAL.")
        .def(nb::init<>())
        .def("feed", &feed<GoalScanner>, nb::arg("text"), "Scan the next piece of the text.")
        .def("finish", &GoalScanner::finish, nb::call_guard<nb::gil_scoped_release>(),
             "The text has ended.")
        .def_prop_ro("held", [](const GoalScanner &self) { return self.held; },
                     "Operations that begin later than the schedule asks for.")
        .def("rank_of",
             [](const GoalScanner &self) {
                 return numpy(std::vector<std::int64_t>(self.rank_of));
             },
             "Rank of each process: those of a rank are its processors.")
        .def("columns", [](GoalScanner &self) { return columns_of(self.processes); },
             "What all processes do; only once.");

    nb::class_<SmpiRanks>(module, "SmpiRanks",
                          "Counts the processes of a time-independent trace of SMPI.")
        .def(nb::init<>())
        .def("feed", &feed<SmpiRanks>, nb::arg("text"), "Scan the next piece of the text.")
        .def("finish",
             [](SmpiRanks &self) {
                 self.finish();
                 return self.count;
             },
             "A file has ended; one more than the largest rank so far.");

    nb::class_<SmpiScanner>(module, "SmpiScanner", "Scans a time-independent trace of SMPI.")
        .def(nb::init<double, std::int64_t, double>(), nb::arg("rate"), nb::arg("count"),
             nb::arg("sleep"))
        .def("feed", &feed<SmpiScanner>, nb::arg("text"), "Scan the next piece of the text.")
        .def("end_file", &SmpiScanner::end_file, "A file has ended; lines are counted anew.")
        .def("finish", &SmpiScanner::finish, nb::call_guard<nb::gil_scoped_release>(),
             "All files have ended.")
        .def_prop_ro("tests", [](const SmpiScanner &self) { return self.tests; })
        .def_prop_ro("tests_of_many", [](const SmpiScanner &self) { return self.tests_of_many; })
        .def_prop_ro("matched", [](const SmpiScanner &self) { return self.matched; },
                     "Receives from any process or with any tag.")
        .def("columns", [](SmpiScanner &self) { return columns_of(self.processes); },
             "What all processes do; only once.");

    nb::class_<ActionList>(module, "Actions", "What processes compute and call, added by a reader.")
        .def("__init__",
             [](ActionList *self, std::int64_t count) {
                 new (self) ActionList();
                 for (std::int64_t rank = 0; rank < count; ++rank)
                     self->processes.emplace_back(rank);
             },
             nb::arg("count"))
        .def("compute",
             [](ActionList &self, std::int64_t process, double length) {
                 try {
                     process_of(self, process).compute(length);
                 } catch (const LineProblem &) {
                     return false;
                 }
                 return true;
             },
             nb::arg("process"), nb::arg("length"),
             "Compute for some ns; false if it is longer than can be represented.")
        .def("message",
             [](ActionList &self, std::int64_t process, const std::string &name,
                std::int32_t partner, std::int64_t tag, std::int64_t size, bool opens) {
                 Actions &mine = process_of(self, process);
                 const std::int32_t request = opens ? mine.request() : -1;
                 mine.message(name_of(name), partner, tag, size, request);
                 return request;
             },
             nb::arg("process"), nb::arg("name"), nb::arg("partner"), nb::arg("tag"),
             nb::arg("size"), nb::arg("opens"), "Send or receive; the request that this opens.")
        .def("collective",
             [](ActionList &self, std::int64_t process, const std::string &name, std::int64_t sent,
                std::int64_t received, bool is_root, std::int64_t communicator, bool opens) {
                 Actions &mine = process_of(self, process);
                 const std::int32_t request = opens ? mine.request() : -1;
                 mine.collective(name_of(name), sent, received, is_root, communicator, request);
                 return request;
             },
             nb::arg("process"), nb::arg("name"), nb::arg("sent"), nb::arg("received"),
             nb::arg("is_root"), nb::arg("communicator"), nb::arg("opens"),
             "Take part in a collective; the request that this opens.")
        .def("wait",
             [](ActionList &self, std::int64_t process, std::int32_t request) {
                 process_of(self, process).call(kWait, request);
             },
             nb::arg("process"), nb::arg("request"), "Complete a request.")
        .def("columns", [](ActionList &self) { return columns_of(self.processes); },
             "What all processes do; only once.");

    module.def("unpaired_messages", &unpaired_messages, nb::kw_only(), nb::arg("rank_of"),
               nb::arg("offsets"), nb::arg("side"), nb::arg("name"), nb::arg("partner"),
               nb::arg("tag"));
}
