// Python's view of the scanner: text in, NumPy columns out.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "numpy.hpp"
#include "scanner.hpp"

namespace nb = nanobind;
namespace scan = popmodel::scan;
using popmodel::Bytes;
using popmodel::numpy;

namespace {

template <typename T>
using Column = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A decoder and the Python objects whose memory it reads.
struct Decoder {
    scan::Decoder decoder{{}};
    nb::object source;

    void restart(nb::list blobs, const Column<const std::int64_t> &lengths, std::int32_t first,
                 const std::vector<bool> &fresh) {
        const std::size_t segments = nb::len(blobs);
        if (segments == 0 || lengths.size() % segments)
            throw nb::value_error("lengths must hold one row per blob");
        if (fresh.size() != segments) throw nb::value_error("fresh must hold one value per blob");
        const std::size_t locations = lengths.size() / segments;
        std::vector<const std::uint8_t *> next(segments);
        for (std::size_t segment = 0; segment < segments; ++segment) {
            const Bytes bytes(blobs[segment], false);
            std::size_t size = scan::kPadding;
            for (std::size_t at = 0; at < locations; ++at)
                size += static_cast<std::size_t>(lengths.data()[segment * locations + at]);
            if (bytes.size() < size) throw nb::value_error("a blob is shorter than its lengths");
            next[segment] = static_cast<const std::uint8_t *>(bytes.data());
        }
        std::vector<scan::Piece> pieces;
        for (std::size_t at = 0; at < locations; ++at)
            for (std::size_t segment = 0; segment < segments; ++segment) {
                const auto size =
                    static_cast<std::size_t>(lengths.data()[segment * locations + at]);
                pieces.push_back({next[segment], size, first + static_cast<std::int32_t>(at),
                                  fresh[segment]});
                next[segment] += size;
            }
        source = blobs;
        decoder.restart(std::move(pieces));
    }

    nb::tuple fill(const Column<std::int64_t> &state_begin, const Column<std::int64_t> &state_end,
                   const Column<std::int32_t> &state, const Column<std::int64_t> &event_time,
                   const Column<std::uint32_t> &event_type, const Column<std::int64_t> &event_value,
                   const Column<std::int32_t> &sender, const Column<std::int32_t> &receiver,
                   const Column<std::int64_t> &logical_send,
                   const Column<std::int64_t> &physical_send,
                   const Column<std::int64_t> &logical_receive,
                   const Column<std::int64_t> &physical_receive, const Column<std::int64_t> &size,
                   const Column<std::int64_t> &tag) {
        for (const std::size_t rows : {state_end.size(), state.size()})
            if (rows != state_begin.size()) throw nb::value_error("columns of states differ in length");
        for (const std::size_t rows : {event_type.size(), event_value.size()})
            if (rows != event_time.size()) throw nb::value_error("columns of events differ in length");
        for (const std::size_t rows : {receiver.size(), logical_send.size(), physical_send.size(),
                                       logical_receive.size(), physical_receive.size(), size.size(),
                                       tag.size()})
            if (rows != sender.size()) throw nb::value_error("columns of messages differ in length");
        const scan::Columns columns{
            state_begin.data(),  state_end.data(),       state.data(),
            state_begin.size(),  event_time.data(),      event_type.data(),
            event_value.data(),  event_time.size(),      sender.data(),
            receiver.data(),     logical_send.data(),    physical_send.data(),
            logical_receive.data(), physical_receive.data(), size.data(),
            tag.data(),          sender.size()};
        std::size_t rows[scan::kTables];
        {
            nb::gil_scoped_release release;
            decoder.fill(columns, rows);
        }
        return nb::make_tuple(rows[scan::kStates], rows[scan::kEvents], rows[scan::kMessages]);
    }
};

scan::Scanner make_scanner(std::vector<std::vector<std::int64_t>> threads, std::int64_t cpus,
                           std::int64_t unit, std::int64_t duration, std::int64_t application,
                           std::uint64_t line) {
    if (unit < 1) throw nb::value_error("unit must be at least 1 ns");
    if (application < 1 || application > static_cast<std::int64_t>(threads.size()))
        throw nb::value_error("no such application");
    scan::Layout layout;
    layout.threads = std::move(threads);
    layout.cpus = cpus;
    layout.unit = unit;
    layout.duration = duration;
    layout.application = application;
    layout.line = line;
    return scan::Scanner(layout);
}

// A number of each location and table, tables first.
template <typename Value>
auto by_table(const scan::Scanner &scanner, Value value) {
    using Number = decltype(value(0, std::size_t{0}));
    const std::size_t locations = scanner.streams().locations();
    std::vector<Number> values;
    values.reserve(scan::kTables * locations);
    for (int table = 0; table < scan::kTables; ++table)
        for (std::size_t at = 0; at < locations; ++at) values.push_back(value(table, at));
    return numpy(std::move(values));
}

nb::dict summary(const scan::Scanner &self) {
    nb::dict found, communicators;
    found["counts"] = by_table(self, [&](int table, std::size_t at) {
        return static_cast<std::int64_t>(self.streams()[at].count[table]);
    });
    found["disordered"] = by_table(self, [&](int table, std::size_t at) {
        return static_cast<std::uint8_t>(self.disordered(table, at));
    });
    found["first"] = by_table(
        self, [&](int table, std::size_t at) { return self.first(table, at).time; });
    found["first_line"] = by_table(self, [&](int table, std::size_t at) {
        return static_cast<std::int64_t>(self.first(table, at).line);
    });
    found["last"] = by_table(
        self, [&](int table, std::size_t at) { return self.streams()[at].last[table]; });
    std::vector<std::int64_t> last_begin, tallies;
    for (std::size_t at = 0; at < self.streams().locations(); ++at)
        last_begin.push_back(self.last_begin(at));
    found["last_begin"] = numpy(std::move(last_begin));
    for (int notice = 0; notice < scan::kNotices; ++notice) {
        tallies.push_back(static_cast<std::int64_t>(self.tally(notice).count));
        tallies.push_back(static_cast<std::int64_t>(self.tally(notice).line));
    }
    found["tallies"] = numpy(std::move(tallies));
    for (const scan::Communicator &each : self.communicators())
        communicators[nb::int_(each.id)] =
            nb::make_tuple(each.line, numpy(std::vector<std::int32_t>(each.first)),
                           numpy(std::vector<std::int32_t>(each.ranks)));
    found["communicators"] = communicators;
    found["first_time"] = self.first_time();
    found["last_time"] = self.last_time();
    found["end_elsewhere"] = self.end_elsewhere();
    found["lines"] = self.line();
    return found;
}

}  // namespace

void bind_scan(nb::module_ &module) {
    // Its arguments are the line and the reason.
    static PyObject *scan_error =
        PyErr_NewException("popmodel.kernel._kernel.ScanError", PyExc_ValueError, nullptr);
    module.attr("ScanError") = nb::handle(scan_error);
    nb::register_exception_translator([](const std::exception_ptr &raised, void *) {
        try {
            std::rethrow_exception(raised);
        } catch (const scan::ScanError &error) {
            const nb::tuple arguments = nb::make_tuple(error.line, error.what());
            PyErr_SetObject(scan_error, arguments.ptr());
        }
    });

    nb::class_<Decoder>(module, "Decoder", "Turns streams of locations into columns.")
        .def(nb::init<>())
        .def("restart", &Decoder::restart, nb::arg("blobs"), nb::arg("lengths"), nb::arg("first"),
             nb::arg("fresh"),
             "Decode further blobs, one per segment, each holding the streams of the locations\n"
             "from `first` on and 64 bytes of padding; `lengths` has one row per blob, and `fresh`\n"
             "says which are the first of a scanner.")
        .def("fill", &Decoder::fill,
             "Fill 14 columns (states, events, messages); the rows written of each table.");

    nb::class_<scan::Scanner>(module, "Scanner", "Scans the records of one application.")
        .def("__init__",
             [](scan::Scanner *self, std::vector<std::vector<std::int64_t>> threads,
                std::int64_t cpus, std::int64_t unit, std::int64_t duration,
                std::int64_t application, std::uint64_t line) {
                 new (self) scan::Scanner(
                     make_scanner(std::move(threads), cpus, unit, duration, application, line));
             },
             nb::arg("threads"), nb::arg("cpus"), nb::arg("unit"), nb::arg("duration"),
             nb::arg("application"), nb::arg("line"))
        .def(
            "feed",
            [](scan::Scanner &self, nb::handle text) {
                const Bytes bytes(text, false);
                nb::gil_scoped_release release;
                self.feed(static_cast<const char *>(bytes.data()), bytes.size());
            },
            nb::arg("text"), "Scan the next piece of the text, of any size.")
        .def("finish", &scan::Scanner::finish, "The text has ended.")
        .def_prop_ro("held", [](const scan::Scanner &self) { return self.streams().held(); },
                     "Bytes taken by the streams.")
        .def("summary", &summary,
             "What is known of the text beside its records; all that `text_scan.Scan` merges.")
        .def("lengths",
             [](const scan::Scanner &self) {
                 const std::vector<std::uint64_t> lengths = self.streams().lengths();
                 return numpy(std::vector<std::int64_t>(lengths.begin(), lengths.end()));
             },
             "Bytes in the stream of each location.")
        .def("take",
             [](scan::Scanner &self, nb::handle buffer) {
                 const Bytes bytes(buffer, true);
                 nb::gil_scoped_release release;
                 return self.streams().take(static_cast<std::uint8_t *>(bytes.data()), bytes.size());
             },
             nb::arg("buffer"),
             "Move the next bytes of the streams into the buffer; 0: all are moved.")
        .def("release", [](scan::Scanner &self) { self.streams().release(); },
             "Give the memory of the streams back, once all are moved.")
        .def("decoder",
             [](nb::object self) {
                 Decoder decoder;
                 decoder.decoder = scan::Decoder(nb::cast<scan::Scanner &>(self).streams().pieces());
                 decoder.source = std::move(self);
                 return decoder;
             },
             "A decoder of the streams as they are held; feed no more while it is used.");
}
