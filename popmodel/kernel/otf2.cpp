// Archives of OTF2, read through its C library: what is needed of its interface is declared here and
// in the headers. The states, events and messages of a location are those that a Paraver trace of it
// has; Python says which event a region is.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "numpy.hpp"
#include "otf2_definitions.hpp"
#include "otf2_library.hpp"
#include "otf2_messages.hpp"
#include "otf2_thread.hpp"

namespace nb = nanobind;
using namespace popmodel;
using namespace popmodel::otf2;

namespace {

using Lists = std::vector<std::vector<int64_t>>;

// Reads locations of an archive one after the other; readers of others may do so at the same time.
class Reader : public ThreadRecords {
  public:
    Reader(const std::string &library, const std::string &anchor) : library_(library) {
        last_error.clear();
        reader_ = library_.call<void *>("OTF2_Reader_Open", anchor.c_str());
        if (reader_ == nullptr)
            throw Failure(last_error.empty() ? "cannot be opened" : last_error);
        library_.must("OTF2_Reader_SetSerialCollectiveCallbacks", reader_);
    }
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;
    ~Reader() {
        close();
        if (callbacks_)
            library_.call<void>("OTF2_EvtReaderCallbacks_Delete", callbacks_);
        library_.call<int>("OTF2_Reader_Close", reader_);
    }

    nb::dict definitions(size_t most) const {
        return read_definitions(library_, reader_, most);
    }

    void describe(In<uint32_t> regions, In<uint8_t> kind, In<uint8_t> traits, In<int32_t> state,
                  In<uint32_t> type, In<int64_t> value, In<int64_t> missed,
                  In<uint32_t> communicators, In<int64_t> number, In<uint8_t> own,
                  const Lists &members, const Lists &far, const Lists &near, nb::dict metrics,
                  In<uint32_t> contexts, In<uint32_t> context_regions,
                  In<uint32_t> parallel_handles, In<uint32_t> types, In<int64_t> piece_begin,
                  In<int64_t> piece_end, uint64_t resolution, uint64_t offset) {
        check(types.size() == 11, "eleven types of events are needed");
        check(regions.size() >= FILE_MODES, "regions of operations on files are needed");
        check(resolution > 0, "the clock has no resolution");
        for (const size_t size : {kind.size(), traits.size(), state.size(), type.size(),
                                  value.size(), missed.size()})
            check(size == regions.size(), DIFFERENT_LENGTHS);
        for (const size_t size : {number.size(), own.size(), members.size(), far.size(), near.size()})
            check(size == communicators.size(), DIFFERENT_LENGTHS);
        region_index_.assign(regions);
        for (size_t i = 0; i < regions.size(); i++)
            regions_.push_back({Kind(kind.data()[i]), traits.data()[i], state.data()[i],
                                type.data()[i], value.data()[i], missed.data()[i]});
        functions_.assign(regions.size());
        functions_.pieces.assign(piece_begin, piece_end);
        comm_index_.assign(communicators);
        for (size_t c = 0; c < communicators.size(); c++) {
            comms_.push_back({number.data()[c], own.data()[c] != 0, members[c], far[c], near[c]});
            for (size_t i = 0; i < members[c].size(); i++)
                ranks_[members[c][i]].push_back({int32_t(c), int32_t(i)});
        }
        rank_.assign(comms_.size(), -1);
        check(contexts.size() == context_regions.size(), DIFFERENT_LENGTHS);
        context_index_.assign(contexts);
        contexts_.assign(context_regions.data(), context_regions.data() + contexts.size());
        for (const auto &[metric, counters] : metrics) {
            std::vector<Counter> &to = counters_[nb::cast<uint32_t>(metric)];
            for (const auto each : nb::cast<nb::list>(counters)) {
                const auto [counted, relative, scale] =
                    nb::cast<std::tuple<uint32_t, bool, double>>(each);
                to.push_back({counted, relative, scale});
            }
        }
        const uint32_t *is = types.data();
        types_ = {is[0], is[1], is[2], is[3], is[4], is[5], is[6], is[7], is[8], is[9], is[10]};
        parallel_handles_.insert(parallel_handles.data(),
                                 parallel_handles.data() + parallel_handles.size());
        offset_ = offset;
        whole_ = 1000000000 / resolution;
        part_ = uint64_t((Wide(1000000000 % resolution) << 64) / resolution);
        make_callbacks();
    }

    // Room for ends of messages and rows of columns, which takes memory only where it is used, in
    // large pages.
    void reserve(size_t ends, size_t rows) {
        room(sends_, ends), room(receives_, ends);
        room(begin_, rows), room(end_, rows), room(state_, rows);
        room(time_, rows), room(type_, rows), room(value_, rows);
    }

    // Begin with a location of a process, by its place; `first`: the one that the process began with.
    void open(uint64_t location, int32_t place, int64_t process, bool first) {
        close();
        library_.must("OTF2_Reader_SelectLocation", reader_, location);
        if (library_.call<int>("OTF2_Reader_OpenDefFiles", reader_) == 0) {
            // Its own numbers of definitions, and how its clock differs.
            if (void *own = library_.call<void *>("OTF2_Reader_GetDefReader", reader_, location)) {
                uint64_t count = 0;
                const int code = library_.call<int>("OTF2_Reader_ReadAllLocalDefinitions", reader_,
                                                    own, &count);
                library_.call<int>("OTF2_Reader_CloseDefReader", reader_, own);
                if (code)
                    throw Failure(library_.reason(code));
            }
            library_.call<int>("OTF2_Reader_CloseDefFiles", reader_);
        }
        if (!files_open_)
            library_.must("OTF2_Reader_OpenEvtFiles", reader_);
        files_open_ = true;
        last_error.clear();
        events_ = library_.call<void *>("OTF2_Reader_GetEvtReader", reader_, location);
        if (events_ == nullptr)
            throw Failure(last_error.empty() ? "has no events of a location" : last_error);
        library_.must("OTF2_EvtReader_ApplyMappingTables", events_, 1);
        library_.must("OTF2_EvtReader_ApplyClockOffsets", events_, 1);
        library_.must("OTF2_Reader_RegisterEvtCallbacks", reader_, events_, callbacks_,
                      (void *)static_cast<ThreadRecords *>(this));
        begin(place, process, first);
    }

    // Read up to so many events; whether there may be more.
    bool read(uint64_t most) {
        check(events_ != nullptr, "no location is open");
        const nb::gil_scoped_release other_threads_run;
        uint64_t count = 0;
        failed_ = false;
        last_error.clear();
        const int code =
            library_.call<int>("OTF2_Reader_ReadLocalEvents", reader_, events_, most, &count);
        if (failed_)
            throw std::bad_alloc();
        if (code)
            throw Failure(library_.reason(code));
        if (count == most)
            return true;
        finish();
        close();
        return false;
    }

    // Bytes of the columns in memory.
    size_t held() const { return 20 * (state_.size() + time_.size()); }

    // States and events so far.
    nb::tuple rows() const {
        return nb::make_tuple(taken_states_ + int64_t(state_.size()), here());
    }

    // Append the columns to files, and let go of them.
    void write(const std::vector<int> &files) {
        fresh_ = 0;
        check(files.size() == 6, "six files are needed");
        taken_states_ += int64_t(state_.size());
        taken_ += int64_t(time_.size());
        append(files[0], begin_), append(files[1], end_), append(files[2], state_);
        append(files[3], time_), append(files[4], type_), append(files[5], value_);
    }

    // Hand the columns over.
    nb::tuple columns() {
        taken_states_ += int64_t(state_.size());
        taken_ += int64_t(time_.size());
        return nb::make_tuple(numpy(std::exchange(begin_, {})), numpy(std::exchange(end_, {})),
                              numpy(std::exchange(state_, {})), numpy(std::exchange(time_, {})),
                              numpy(std::exchange(type_, {})), numpy(std::exchange(value_, {})));
    }

    // Rows of events that get other values than those that were written, and the values.
    nb::tuple patches() {
        std::vector<int64_t> row, value;
        for (const auto &[where, what] : std::exchange(patches_, {})) {
            row.push_back(where);
            value.push_back(what);
        }
        return nb::make_tuple(numpy(std::move(row)), numpy(std::move(value)));
    }

    // Messages, by sender in order of their physical sends; and how many ends have no other one.
    nb::tuple messages() {
        return match(std::exchange(sends_, {}), std::exchange(receives_, {}),
                     [this](int64_t process, int32_t c, int32_t peer) {
                         return c < 0 ? -1 : partner(comms_[size_t(c)], process, peer);
                     });
    }

    void gather(Reader &other) { take(other); }

    nb::tuple functions() { return functions_.rows(); }

    nb::tuple tallies() const {
        nb::list found;
        for (const int64_t tally : tallies_)
            found.append(tally);
        return nb::tuple(found);
    }
    int64_t first_time() const { return first_ == LATE ? 0 : first_; }
    int64_t last_time() const { return last_; }

  private:
    void close() {
        if (events_)
            library_.call<int>("OTF2_Reader_CloseEvtReader", reader_, events_);
        events_ = nullptr;
    }

    void make_callbacks();

    Library library_;
    void *reader_ = nullptr, *events_ = nullptr, *callbacks_ = nullptr;
    bool files_open_ = false;
};

// Records of events, as the library hands them over. Each begins with these arguments.
#define RECORD(NAME, ...) int NAME(uint64_t, uint64_t t, uint64_t, void *to, void *, ##__VA_ARGS__)
#define DO(...)                                                                                    \
    ThreadRecords &reader = *static_cast<ThreadRecords *>(to);                                     \
    return reader.record([&] {                                                                     \
        const int64_t time = reader.at(t);                                                         \
        static_cast<void>(time);                                                                   \
        __VA_ARGS__;                                                                               \
    })

RECORD(on_enter, uint32_t region) { DO(reader.enter(time, region)); }
RECORD(on_leave, uint32_t region) { DO(reader.leave(time, region)); }
RECORD(on_context_enter, uint32_t context, uint32_t) { DO(reader.enter_context(time, context)); }
RECORD(on_context_leave, uint32_t context) { DO(reader.leave_context(time, context)); }
RECORD(on_sample, uint32_t, uint32_t, uint32_t) { DO(reader.sample()); }
RECORD(on_unknown) { DO(); }
RECORD(on_flush, uint64_t until) { DO(reader.flush(time, until)); }
RECORD(on_measurement, uint8_t mode) { DO(reader.measure(time, mode == 1)); }
RECORD(on_send, uint32_t peer, uint32_t comm, uint32_t tag, uint64_t size) {
    DO(reader.send(time, peer, comm, tag, size));
}
RECORD(on_isend, uint32_t peer, uint32_t comm, uint32_t tag, uint64_t size, uint64_t) {
    DO(reader.send(time, peer, comm, tag, size));
}
RECORD(on_completed, uint64_t) { DO(reader.completed()); }
RECORD(on_post, uint64_t request) { DO(reader.post(time, request)); }
RECORD(on_receive, uint32_t peer, uint32_t comm, uint32_t tag, uint64_t size) {
    DO(reader.receive(time, peer, comm, tag, size));
}
RECORD(on_complete, uint32_t peer, uint32_t comm, uint32_t tag, uint64_t size, uint64_t request) {
    DO(reader.complete(time, peer, comm, tag, size, request));
}
RECORD(on_probe, uint32_t peer, uint32_t comm, uint32_t tag, uint64_t message) {
    DO(reader.probe(peer, comm, tag, message));
}
RECORD(on_mrecv, uint64_t message, uint64_t size) { DO(reader.receive_probed(time, message, size)); }
RECORD(on_imrecv_request, uint64_t message, uint64_t request) {
    DO(reader.post_probed(time, message, request));
}
RECORD(on_imrecv, uint64_t request, uint64_t size) {
    DO(reader.complete_probed(time, request, size));
}
RECORD(on_collective, uint8_t op, uint32_t comm, uint32_t root, uint64_t sent, uint64_t received) {
    DO(reader.collective(op, comm, root, sent, received));
}
RECORD(on_collective_request, uint64_t request) { DO(reader.request_collective(request)); }
RECORD(on_collective_complete, uint8_t op, uint32_t comm, uint32_t root, uint64_t sent,
       uint64_t received, uint64_t request) {
    DO(reader.complete_collective(op, comm, root, sent, received, request));
}
RECORD(on_fork, uint8_t, uint32_t) { DO(reader.fork(time)); }
RECORD(on_join, uint8_t) { DO(reader.join(time)); }
RECORD(on_team_begin, uint32_t) { DO(reader.begin_team(time)); }
RECORD(on_team_end, uint32_t) { DO(reader.end_team(time)); }
RECORD(on_thread_begin, uint32_t, uint64_t) { DO(reader.begin_thread(time, true)); }
RECORD(on_thread_end, uint32_t, uint64_t) { DO(reader.begin_thread(time, false)); }
RECORD(on_task_switch, uint32_t team, uint32_t thread, uint32_t generation) {
    DO(reader.switch_task(time, team, thread, generation));
}
RECORD(on_task_complete, uint32_t team, uint32_t thread, uint32_t generation) {
    DO(reader.complete_task(time, team, thread, generation));
}
RECORD(on_file_operation, uint32_t handle, uint8_t mode, uint32_t flags, uint64_t, uint64_t id) {
    DO(reader.begin_file_operation(time, handle, mode, flags, id));
}
RECORD(on_file_operation_end, uint32_t, uint64_t bytes, uint64_t id) {
    DO(reader.end_file_operation(time, bytes, id));
}
RECORD(on_metric, uint32_t metric, uint8_t number, const uint8_t *kinds, const uint64_t *values) {
    DO(reader.count(time, metric, number, kinds, values));
}
#undef DO
#undef RECORD

void Reader::make_callbacks() {
    callbacks_ = library_.call<void *>("OTF2_EvtReaderCallbacks_New");
    auto set = [&](const char *kind, auto callback, bool recent = false) {
        const std::string name = "OTF2_EvtReaderCallbacks_Set" + std::string(kind) + "Callback";
        if (!recent || library_.has(name.c_str()))
            library_.must(name.c_str(), callbacks_, callback);
    };
    set("Enter", &on_enter);
    set("Leave", &on_leave);
    set("CallingContextEnter", &on_context_enter);
    set("CallingContextLeave", &on_context_leave);
    set("CallingContextSample", &on_sample);
    set("Unknown", &on_unknown);
    set("BufferFlush", &on_flush);
    set("MeasurementOnOff", &on_measurement);
    set("MpiSend", &on_send);
    set("MpiIsend", &on_isend);
    set("MpiIsendComplete", &on_completed);
    set("MpiIrecvRequest", &on_post);
    set("MpiRecv", &on_receive);
    set("MpiIrecv", &on_complete);
    set("MpiRequestCancelled", &on_completed);
    set("MpiProbe", &on_probe, true);
    set("MpiMrecv", &on_mrecv, true);
    set("MpiImrecvRequest", &on_imrecv_request, true);
    set("MpiImrecv", &on_imrecv, true);
    set("MpiCollectiveEnd", &on_collective);
    set("NonBlockingCollectiveRequest", &on_collective_request, true);
    set("NonBlockingCollectiveComplete", &on_collective_complete, true);
    set("ThreadFork", &on_fork);
    set("ThreadJoin", &on_join);
    set("ThreadTeamBegin", &on_team_begin);
    set("ThreadTeamEnd", &on_team_end);
    set("ThreadBegin", &on_thread_begin);
    set("ThreadEnd", &on_thread_end);
    set("ThreadTaskSwitch", &on_task_switch);
    set("ThreadTaskComplete", &on_task_complete);
    set("Metric", &on_metric);
    set("IoOperationBegin", &on_file_operation, true);
    set("IoOperationComplete", &on_file_operation_end, true);
    set("ProgramBegin", &on_unknown, true);
    set("ProgramEnd", &on_unknown, true);
}

} // namespace

void bind_otf2(nb::module_ &module) {
    static PyObject *error =
        PyErr_NewException("popmodel.kernel._kernel.Otf2Error", PyExc_ValueError, nullptr);
    module.attr("Otf2Error") = nb::handle(error);
    nb::register_exception_translator([](const std::exception_ptr &raised, void *) {
        try {
            std::rethrow_exception(raised);
        } catch (const Failure &failure) {
            PyErr_SetString(error, failure.what());
        } catch (const std::system_error &failure) {
            errno = failure.code().value();
            PyErr_SetFromErrno(PyExc_OSError);
        }
    });
    nb::class_<Reader>(module, "Otf2Reader", "Reads the locations of an archive of OTF2.")
        .def(nb::init<const std::string &, const std::string &>(), nb::arg("library"),
             nb::arg("anchor"))
        .def("definitions", &Reader::definitions, nb::arg("most"),
             "Definitions by kind, each a tuple; more of them and their members are damage.")
        .def("describe", &Reader::describe, nb::arg("regions"), nb::arg("kind"), nb::arg("traits"),
             nb::arg("state"), nb::arg("type"), nb::arg("value"), nb::arg("missed"),
             nb::arg("communicators"), nb::arg("number"), nb::arg("own"), nb::arg("members"),
             nb::arg("far"), nb::arg("near"), nb::arg("metrics"), nb::arg("contexts"), nb::arg("context_regions"),
             nb::arg("parallel_handles"), nb::arg("types"), nb::arg("piece_begin"),
             nb::arg("piece_end"), nb::arg("resolution"),
             nb::arg("offset"), "Say what the definitions are to popmodel.")
        .def("reserve", &Reader::reserve, nb::arg("ends"), nb::arg("rows"),
             "Make room for ends of messages and rows of columns.")
        .def("open", &Reader::open, nb::arg("location"), nb::arg("place"), nb::arg("process"),
             nb::arg("first"),
             "Begin with a location.")
        .def("read", &Reader::read, nb::arg("most"), "Read events; whether there may be more.")
        .def_prop_ro("held", &Reader::held, "Bytes of the columns in memory.")
        .def("rows", &Reader::rows, "States and events that were read.")
        .def("write", &Reader::write, nb::arg("files"), "Append the six columns to files.")
        .def("columns", &Reader::columns, "Hand the six columns over.")
        .def("patches", &Reader::patches, "Rows of events that get other values, and these.")
        .def("messages", &Reader::messages, "Columns of messages, and how many ends are without.")
        .def("gather", &Reader::gather, nb::arg("other"),
             "Take what a reader of further threads has in memory.")
        .def("functions", &Reader::functions, "Rows of times by location and function.")
        .def("tallies", &Reader::tallies, "Counts of what is worth a warning.")
        .def_prop_ro("first_time", &Reader::first_time)
        .def_prop_ro("last_time", &Reader::last_time);
}
