// Archives of OTF2, read through its C library, which is opened while popmodel runs: what is needed
// of its interface is declared here. The states, events and messages of a location are those that a
// Paraver trace of it has; Python says which event a region is.

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <stdexcept>
#include <string>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "numpy.hpp"

namespace nb = nanobind;
using namespace popmodel;

namespace {

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::string last_error; // what the library would have printed

int keep_error(void *, const char *, uint64_t, const char *, int code, const char *format,
               va_list arguments) {
    char text[512] = "";
    std::vsnprintf(text, sizeof text, format, arguments);
    last_error = text;
    return code;
}

// The library. Functions that answer with a code say 0 for success.
class Library {
  public:
    explicit Library(const std::string &path)
        : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr)
            throw Failure(dlerror());
        using Callback = int (*)(void *, const char *, uint64_t, const char *, int, const char *,
                                 va_list);
        call<Callback>("OTF2_Error_RegisterCallback", &keep_error, nullptr);
    }

    bool has(const char *name) const { return dlsym(handle_, name) != nullptr; }

    template <typename Result, typename... Arguments>
    Result call(const char *name, Arguments... arguments) const {
        return function<Result, Arguments...>(name)(arguments...);
    }

    template <typename Result, typename... Arguments> auto function(const char *name) const {
        void *found = dlsym(handle_, name);
        if (found == nullptr)
            throw Failure(std::string("has no function ") + name);
        return reinterpret_cast<Result (*)(Arguments...)>(found);
    }

    // Call what answers with a code.
    template <typename... Arguments> void must(const char *name, Arguments... arguments) const {
        last_error.clear();
        if (const int code = call<int>(name, arguments...))
            throw Failure(reason(code));
    }

    std::string reason(int code) const {
        const char *text = call<const char *>("OTF2_Error_GetDescription", code);
        std::string said = text ? text : "error " + std::to_string(code);
        if (!last_error.empty() && last_error != said)
            said += ": " + last_error;
        return said;
    }

  private:
    void *handle_; // never closed: threads of Python may use the library as well
};

constexpr int GO_ON = 0, STOP = 1;

// Definitions: a list of tuples for each kind.
struct Definitions {
    nb::dict kinds;
    bool failed = false;

    template <typename... Values> int add(const char *kind, Values... values) {
        try {
            if (!kinds.contains(kind))
                kinds[kind] = nb::list();
            nb::cast<nb::list>(kinds[kind]).append(nb::make_tuple(values...));
            return GO_ON;
        } catch (...) {
            failed = true;
            return STOP;
        }
    }
};

nb::bytes bytes(const char *text) { return nb::bytes(text ? text : ""); }

template <typename T> nb::object list_of(const T *values, size_t count) {
    nb::list found;
    for (size_t i = 0; i < count; i++)
        found.append(values[i]);
    return found;
}

int on_clock(void *to, uint64_t resolution, uint64_t offset, uint64_t length, uint64_t) {
    return static_cast<Definitions *>(to)->add("clock", resolution, offset, length);
}
int on_string(void *to, uint32_t self, const char *text) {
    return static_cast<Definitions *>(to)->add("strings", self, bytes(text));
}
int on_node(void *to, uint32_t self, uint32_t name, uint32_t kind, uint32_t parent) {
    return static_cast<Definitions *>(to)->add("nodes", self, name, kind, parent);
}
int on_domain(void *to, uint32_t node, uint8_t domain) {
    return static_cast<Definitions *>(to)->add("domains", node, domain);
}
// Before version 3 there is no last argument: its value is not to be used then.
int on_location_group(void *to, uint32_t self, uint32_t name, uint8_t type, uint32_t node,
                      uint32_t creator) {
    return static_cast<Definitions *>(to)->add("processes", self, name, type, node, creator);
}
int on_location(void *to, uint64_t self, uint32_t name, uint8_t type, uint64_t events,
                uint32_t group) {
    return static_cast<Definitions *>(to)->add("locations", self, name, type, events, group);
}
int on_region(void *to, uint32_t self, uint32_t name, uint32_t, uint32_t, uint8_t role,
              uint8_t paradigm, uint32_t, uint32_t file, uint32_t line, uint32_t) {
    return static_cast<Definitions *>(to)->add("regions", self, name, role, paradigm, file, line);
}
int on_group(void *to, uint32_t self, uint32_t, uint8_t type, uint8_t paradigm, uint32_t flags,
             uint32_t count, const uint64_t *members) {
    return static_cast<Definitions *>(to)->add("groups", self, type, paradigm, flags,
                                               list_of(members, count));
}
int on_member(void *to, uint32_t self, uint32_t name, uint32_t, uint8_t type, uint8_t mode,
              uint8_t value, uint8_t base, int64_t exponent, uint32_t) {
    return static_cast<Definitions *>(to)->add("members", self, name, type, mode, value, base,
                                               exponent);
}
int on_class(void *to, uint32_t self, uint8_t count, const uint32_t *members, uint8_t occurrence,
             uint8_t) {
    return static_cast<Definitions *>(to)->add("metrics", self, list_of(members, count),
                                               occurrence);
}
int on_instance(void *to, uint32_t self, uint32_t of, uint64_t recorder, uint8_t scope,
                uint64_t where) {
    return static_cast<Definitions *>(to)->add("instances", self, of, recorder, scope, where);
}
int on_comm(void *to, uint32_t self, uint32_t name, uint32_t group, uint32_t) {
    return static_cast<Definitions *>(to)->add("communicators", self, name, group);
}
int on_intercomm(void *to, uint32_t self, uint32_t, uint32_t one, uint32_t other, uint32_t) {
    return static_cast<Definitions *>(to)->add("intercommunicators", self, one, other);
}

// What a region is to popmodel, as Python decides it.
enum Kind : uint8_t { PLAIN, FUNCTION, MPI, PARALLEL, TASK };
enum Trait : uint8_t {
    COLLECTIVE = 1, // room for its arguments is needed behind its entry
    BY_ENTRY = 2,   // its messages name it by its entry alone
    TEST = 4,       // it may find nothing
    USER = 8,       // its occurrences are events
    EXPLICIT = 16,  // it is there to tell a state
};
constexpr int32_t INHERITED = -1;

struct Region {
    Kind kind = PLAIN;
    uint8_t traits = 0;
    int32_t state = INHERITED; // of a thread inside it
    uint32_t type = 0;         // of its event; 0 for none
    int64_t value = 0;
    int64_t missed = 0; // value of a test that found nothing
};

// Numbers of definitions as indices; a number may be any.
class Index {
  public:
    void assign(const In<uint32_t> &numbers) {
        for (size_t i = 0; i < numbers.size(); i++) {
            const uint32_t number = numbers.data()[i];
            if (number >= DENSE) {
                others_[number] = int32_t(i);
                continue;
            }
            if (number >= dense_.size())
                dense_.resize(number + 1, -1);
            dense_[number] = int32_t(i);
        }
    }
    int32_t operator()(uint32_t number) const {
        if (number < dense_.size())
            return dense_[number];
        const auto found = others_.find(number);
        return found == others_.end() ? -1 : found->second;
    }

  private:
    static constexpr uint32_t DENSE = 1 << 20;
    std::vector<int32_t> dense_;
    std::unordered_map<uint32_t, int32_t> others_;
};

// Numbers of popmodel's events, as `popmodel.traces.paraver.numbers` has them.
struct EventTypes {
    uint32_t sent, received, communicator, is_root, caller, parallel, outlined, user;
};

enum States : int32_t { NO_STATE = -2, RUNNING = 1, NOT_CREATED = 2, SCHEDULING = 7, FLUSHING = 12, OFF = 14 };

// A hardware counter of a metric.
struct Counter {
    uint32_t type; // of its event; 0: none
    bool relative; // counts since the reading before
    double scale;
};

struct Frame {
    int32_t region;
    int32_t state;
    int32_t holds;  // region whose event is open (a barrier, a lock), or -1
    int32_t caller; // innermost function, or -1
    bool opened;    // a parallel region without records of its team
    int64_t enter;
    int64_t inside; // time of the regions inside
};

using Stack = std::vector<Frame>;

// An end of a message: a send or a receive.
struct Message {
    int64_t logical, physical, order, size;
    int32_t communicator, peer, tag, process, location;
};

struct Post {
    int64_t logical, order;
    bool pending; // its call has not ended
};

struct Probed {
    int32_t communicator, peer;
    int64_t tag;
};

// What is worth a warning, in the order of the reader's texts.
enum Tally { UNBALANCED, UNDEFINED, UNORDERED, FLUSHES, UNPOSTED, NOT_HERE, TALLIES };

int64_t per(int64_t bytes, int64_t processes) { return bytes / std::max<int64_t>(processes, 1); }

// What a process sends and receives in a collective as popmodel counts it (each contribution once),
// from Score-P's sums over all that are reached, its own process included.
std::pair<int64_t, int64_t> contribution(int op, int64_t size, int64_t rank, bool is_root,
                                         int64_t sent, int64_t received) {
    constexpr int BCAST = 1, ALLGATHER = 6, ALLGATHERV = 7, ALLREDUCE = 11, REDUCE = 12,
                  REDUCE_SCATTER = 13, SCAN = 14, EXSCAN = 15, REDUCE_SCATTER_BLOCK = 16;
    switch (op) {
    case BCAST:
        return is_root ? std::pair(per(sent, size), int64_t(0)) : std::pair(int64_t(0), received);
    case REDUCE: // in place, the root sends nothing to itself
        return is_root ? std::pair(int64_t(0), sent ? sent : per(received, size - 1))
                       : std::pair(sent, int64_t(0));
    case ALLREDUCE:
        return {per(sent, size), per(received, size)};
    case ALLGATHER:
    case ALLGATHERV:
        return {per(sent, size), received};
    case REDUCE_SCATTER:
    case REDUCE_SCATTER_BLOCK:
        return {sent, per(received, size)};
    case SCAN:
    case EXSCAN: {
        const int64_t after = size - rank - (op == EXSCAN), before = rank + (op == SCAN);
        const int64_t block = after > 0 ? per(sent, after) : per(received, before);
        return {block, block};
    }
    default:
        return {sent, received};
    }
}

// Reads the locations of an archive one after the other.
using Lists = std::vector<std::vector<int64_t>>;

class Reader {
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

    nb::dict definitions() {
        Definitions found;
        void *from = library_.call<void *>("OTF2_Reader_GetGlobalDefReader", reader_);
        if (from == nullptr)
            throw Failure(last_error.empty() ? "has no definitions" : last_error);
        void *to = library_.call<void *>("OTF2_GlobalDefReaderCallbacks_New");
        auto set = [&](const char *kind, auto callback) {
            library_.must(("OTF2_GlobalDefReaderCallbacks_Set" + std::string(kind) + "Callback").c_str(),
                          to, callback);
        };
        set("ClockProperties", &on_clock);
        set("String", &on_string);
        set("SystemTreeNode", &on_node);
        set("SystemTreeNodeDomain", &on_domain);
        set("LocationGroup", &on_location_group);
        set("Location", &on_location);
        set("Region", &on_region);
        set("Group", &on_group);
        set("MetricMember", &on_member);
        set("MetricClass", &on_class);
        set("MetricInstance", &on_instance);
        set("Comm", &on_comm);
        if (library_.has("OTF2_GlobalDefReaderCallbacks_SetInterCommCallback"))
            set("InterComm", &on_intercomm);
        library_.must("OTF2_Reader_RegisterGlobalDefCallbacks", reader_, from, to, (void *)&found);
        library_.call<void>("OTF2_GlobalDefReaderCallbacks_Delete", to);
        uint64_t count = 0;
        library_.must("OTF2_Reader_ReadAllGlobalDefinitions", reader_, from, &count);
        if (found.failed)
            throw std::bad_alloc();
        return found.kinds;
    }

    void describe(In<uint32_t> regions, In<uint8_t> kind, In<uint8_t> traits, In<int32_t> state,
                  In<uint32_t> type, In<int64_t> value, In<int64_t> missed,
                  In<uint32_t> communicators, In<int64_t> number, In<uint8_t> own,
                  const Lists &members, const Lists &far, const Lists &near, nb::dict metrics,
                  In<uint32_t> types, uint64_t resolution, uint64_t offset) {
        check(types.size() == 8, "eight types of events are needed");
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
        functions_.assign(regions.size(), {});
        comm_index_.assign(communicators);
        for (size_t c = 0; c < communicators.size(); c++) {
            comms_.push_back({number.data()[c], own.data()[c] != 0, members[c], far[c], near[c]});
            for (size_t i = 0; i < members[c].size(); i++)
                ranks_[members[c][i]].push_back({int32_t(c), int32_t(i)});
        }
        rank_.assign(comms_.size(), -1);
        for (const auto &[metric, counters] : metrics) {
            std::vector<Counter> &to = counters_[nb::cast<uint32_t>(metric)];
            for (const auto each : nb::cast<nb::list>(counters)) {
                const auto [counted, relative, scale] =
                    nb::cast<std::tuple<uint32_t, bool, double>>(each);
                to.push_back({counted, relative, scale});
            }
        }
        const uint32_t *is = types.data();
        types_ = {is[0], is[1], is[2], is[3], is[4], is[5], is[6], is[7]};
        offset_ = offset;
        whole_ = 1000000000 / resolution;
        part_ = uint64_t((Wide(1000000000 % resolution) << 64) / resolution);
        make_callbacks();
    }

    // Room for long columns, which takes memory only where it is used, in large pages.
    void reserve(size_t rows) {
        room(begin_, rows), room(end_, rows), room(state_, rows);
        room(time_, rows), room(type_, rows), room(value_, rows);
        room(sends_, rows), room(receives_, rows);
    }

    // Begin with a location of a process; `first`: the one that the process began with.
    void open(uint64_t location, int64_t process, bool first) {
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
                      (void *)this);
        begin(process, first);
    }

    // Read up to so many events; whether there may be more.
    bool read(uint64_t most) {
        check(events_ != nullptr, "no location is open");
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

    // Messages: of two processes, a communicator and a tag, the k-th sent is the k-th received;
    // receives count in the order in which they were begun. By sender, in order of physical sends;
    // and how many ends have no other one.
    nb::tuple match() {
        const std::vector<Message> sends = std::exchange(sends_, {});
        const std::vector<Message> receives = std::exchange(receives_, {});
        std::map<std::tuple<int64_t, int64_t, int32_t, int32_t>, int32_t> kinds;
        std::tuple<int64_t, int64_t, int32_t, int32_t> last{-2, -2, -2, -2};
        int32_t last_kind = -1;
        const auto sorted = [&](const std::vector<Message> &ends, bool received) {
            std::vector<int32_t> kind(ends.size());
            for (size_t i = 0; i < ends.size(); i++) {
                const Message &m = ends[i];
                const int64_t other = partner(m.process, m.communicator, m.peer);
                const std::tuple key{received ? other : m.process, received ? m.process : other,
                                     m.communicator, m.tag};
                if (key != last)
                    last_kind = kinds.try_emplace(last = key, int32_t(kinds.size())).first->second;
                kind[i] = other < 0 ? -1 : last_kind;
            }
            return kind;
        };
        const std::vector<int32_t> of_send = sorted(sends, false), of_receive = sorted(receives, true);
        const auto grouped = [&](const std::vector<Message> &ends, const std::vector<int32_t> &kind,
                                 std::vector<int64_t> &first) {
            first.assign(kinds.size() + 1, 0);
            for (const int32_t k : kind)
                if (k >= 0)
                    first[size_t(k) + 1]++;
            std::partial_sum(first.begin(), first.end(), first.begin());
            std::vector<int64_t> next(first);
            std::vector<int32_t> rows(size_t(first.back()));
            for (size_t i = 0; i < ends.size(); i++)
                if (kind[i] >= 0)
                    rows[size_t(next[size_t(kind[i])]++)] = int32_t(i);
            const auto earlier = [&](int32_t a, int32_t b) {
                return ends[size_t(a)].order < ends[size_t(b)].order;
            };
            for (size_t k = 0; k + 1 < first.size(); k++)
                if (!std::is_sorted(rows.begin() + first[k], rows.begin() + first[k + 1], earlier))
                    std::stable_sort(rows.begin() + first[k], rows.begin() + first[k + 1], earlier);
            return rows;
        };
        std::vector<int64_t> first_send, first_receive;
        const std::vector<int32_t> sent = grouped(sends, of_send, first_send);
        const std::vector<int32_t> received = grouped(receives, of_receive, first_receive);
        std::vector<int32_t> receive_of(sends.size(), -1), rows;
        for (size_t k = 0; k < kinds.size(); k++) {
            const int64_t count = std::min(first_send[k + 1] - first_send[k],
                                           first_receive[k + 1] - first_receive[k]);
            for (int64_t i = 0; i < count; i++)
                receive_of[size_t(sent[size_t(first_send[k] + i)])] =
                    received[size_t(first_receive[k] + i)];
        }
        for (size_t i = 0; i < sends.size(); i++)
            if (receive_of[i] >= 0)
                rows.push_back(int32_t(i));
        const auto before = [&](int32_t a, int32_t b) {
            return std::pair(sends[size_t(a)].location, sends[size_t(a)].physical) <
                   std::pair(sends[size_t(b)].location, sends[size_t(b)].physical);
        };
        if (!std::is_sorted(rows.begin(), rows.end(), before))
            std::stable_sort(rows.begin(), rows.end(), before);
        const auto column = [&](auto value) {
            std::vector<decltype(value(sends[0], receives[0]))> values;
            values.reserve(rows.size());
            for (const int32_t row : rows)
                values.push_back(value(sends[size_t(row)], receives[size_t(receive_of[size_t(row)])]));
            return numpy(std::move(values));
        };
        using M = const Message &;
        return nb::make_tuple(
            column([](M s, M) { return s.location; }), column([](M, M r) { return r.location; }),
            column([](M s, M) { return s.logical; }), column([](M s, M) { return s.physical; }),
            column([](M, M r) { return r.logical; }), column([](M, M r) { return r.physical; }),
            column([](M s, M) { return s.size; }), column([](M s, M) { return int64_t(s.tag); }),
            sends.size() + receives.size() - 2 * rows.size());
    }

    nb::tuple functions() const {
        std::vector<int64_t> visits, inclusive, exclusive;
        for (const auto &[count, all, own, open] : functions_) {
            static_cast<void>(open);
            visits.push_back(count);
            inclusive.push_back(all);
            exclusive.push_back(own);
        }
        return nb::make_tuple(numpy(std::move(visits)), numpy(std::move(inclusive)),
                              numpy(std::move(exclusive)));
    }

    nb::tuple tallies() const {
        nb::list found;
        for (const int64_t tally : tallies_)
            found.append(tally);
        return nb::tuple(found);
    }
    int64_t first_time() const { return first_ == LATE ? 0 : first_; }
    int64_t last_time() const { return last_; }

    // Records.

    int64_t ns(uint64_t ticks) const {
        const bool early = ticks < offset_; // than the archive says: its clocks were corrected
        const uint64_t passed = early ? offset_ - ticks : ticks - offset_;
        const int64_t time = int64_t(passed * whole_ + uint64_t((Wide(passed) * part_) >> 64));
        return early ? -time : time;
    }

    // Every record comes by here: its time, which does not go back.
    int64_t at(uint64_t ticks) {
        int64_t time = ns(ticks);
        if (now_ == LATE) {
            since_ = time;
            first_ = std::min(first_, time);
        } else if (time < now_) {
            time = now_;
            tallies_[UNORDERED]++;
        }
        return now_ = time;
    }

    void enter(int64_t t, uint32_t number) {
        const int32_t index = region_index_(number);
        if (index < 0) {
            tallies_[UNDEFINED]++;
            return;
        }
        const Region &region = regions_[size_t(index)];
        const Frame outside{-1, base(), -1, -1, false, 0, 0};
        const Frame &below = stack_.empty() ? outside : stack_.back();
        Frame frame{index, region.state, below.holds, below.caller, false, t, 0};
        if (region.state == INHERITED) // whoever runs code is no idle thread
            frame.state = below.state == SCHEDULING || below.state == NOT_CREATED ? int32_t(RUNNING)
                                                                                 : below.state;
        const bool changes = frame.state != below.state || region.kind != FUNCTION || between_;
        switch (region.kind) {
        case MPI:
            if (depth_++ == 0)
                begin_call(t, region, below.caller);
            break;
        case PARALLEL:
            if (teams_ == 0 && outlined_ == 0) {
                frame.opened = true;
                if (forks_++ == 0)
                    emit(t, types_.parallel, WHOLE_REGION);
                if (outlined_++ == 0)
                    emit(t, types_.outlined, region.value);
            } else if (unnamed_ >= 0)
                put(unnamed_, region.value);
            unnamed_ = -1;
            frame.holds = -1;
            break;
        case TASK:
            frame.holds = -1;
            break;
        case FUNCTION:
            frame.caller = index;
            if (region.traits & USER)
                emit(t, types_.user, region.value);
            break;
        case PLAIN:
            if (region.type)
                frame.holds = index;
        }
        functions_[size_t(index)].open++;
        stack_.push_back(frame);
        if (changes)
            update(t);
    }

    void leave(int64_t t, uint32_t number) {
        const int32_t index = region_index_(number);
        size_t depth = stack_.size();
        if (depth > 1 && stack_.back().region == index && index >= 0 && !between_ &&
            regions_[size_t(index)].kind == FUNCTION && !(regions_[size_t(index)].traits & USER) &&
            stack_.back().state == stack_[depth - 2].state)
            return pop_function(t); // nothing changes but the function
        while (depth > 0 && stack_[depth - 1].region != index)
            depth--;
        if (depth == 0 || index < 0) {
            tallies_[UNBALANCED]++;
            return;
        }
        tallies_[UNBALANCED] += int64_t(stack_.size() - depth);
        while (stack_.size() >= depth)
            pop(t);
        update(t);
    }

    void send(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t size) {
        sends_.push_back(message(t, peer, communicator, tag, size));
    }
    void receive(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t size) {
        add_receive(message(t, peer, communicator, tag, size));
    }
    void post(int64_t t, uint64_t request) {
        posts_[request] = {called(t), t, depth_ > 0};
        posted_.push_back(request);
    }
    void complete(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t size,
                  uint64_t request) {
        Message end = message(t, peer, communicator, tag, size);
        const auto found = posts_.find(request);
        if (found == posts_.end())
            tallies_[UNPOSTED]++;
        else {
            end.logical = found->second.logical;
            end.order = found->second.order;
            posts_.erase(found);
        }
        add_receive(end);
    }
    void completed() { completions_++; }

    void probe(uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t message) {
        completions_++;
        probed_[message] = {communicator, peer, tag};
    }
    void receive_probed(int64_t t, uint64_t message, uint64_t size) {
        const auto found = probed_.find(message);
        if (found == probed_.end())
            return;
        const auto [communicator, peer, tag] = found->second;
        probed_.erase(found);
        receive(t, peer, communicator, tag, size);
    }
    void post_probed(int64_t t, uint64_t message, uint64_t request) {
        post(t, request);
        requested_[request] = message;
    }
    void complete_probed(int64_t t, uint64_t request, uint64_t size) {
        const auto of = requested_.find(request);
        if (of == requested_.end())
            return;
        const auto found = probed_.find(of->second);
        requested_.erase(of);
        if (found == probed_.end())
            return;
        const auto [communicator, peer, tag] = found->second;
        probed_.erase(found);
        complete(t, peer, communicator, tag, size, request);
    }

    void collective(uint8_t op, uint32_t communicator, uint32_t root, uint64_t sent,
                    uint64_t received) {
        if (call_.arguments >= 0)
            arguments(call_.arguments, op, communicator, root, sent, received);
    }
    void request_collective(uint64_t request) {
        if (call_.arguments >= 0)
            collectives_[request] = call_.arguments;
    }
    void complete_collective(uint8_t op, uint32_t communicator, uint32_t root, uint64_t sent,
                             uint64_t received, uint64_t request) {
        completions_++;
        const auto found = collectives_.find(request);
        if (found == collectives_.end())
            return;
        arguments(found->second, op, communicator, root, sent, received);
        collectives_.erase(found);
    }

    void fork(int64_t t) {
        if (forks_++ == 0)
            emit(t, types_.parallel, WHOLE_REGION);
        between_ = true;
        update(t);
    }
    void join(int64_t t) {
        if (forks_ > 0 && --forks_ == 0)
            emit(t, types_.parallel, 0);
        between_ = false;
        update(t);
    }
    void begin_team(int64_t t) {
        teams_++;
        between_ = false;
        known_ = true;
        if (outlined_++ == 0) {
            unnamed_ = here();
            emit(t, types_.outlined, int64_t(regions_.size()) + 1);
        }
        update(t);
    }
    void end_team(int64_t t) {
        if (teams_ > 0 && teams_-- > 0 && --outlined_ == 0)
            emit(t, types_.outlined, 0);
        between_ = forks_ > 0;
        unnamed_ = -1;
        update(t);
    }
    void begin_thread(int64_t t, bool begins) {
        known_ = started_ = begins;
        update(t);
    }
    void switch_task(int64_t t, uint32_t team, uint32_t thread, uint32_t generation) {
        go_to(generation ? Task{team, thread, generation} : Task{});
        update(t);
    }
    void complete_task(int64_t t, uint32_t team, uint32_t thread, uint32_t generation) {
        const Task task{team, thread, generation};
        if (task == task_) {
            while (!stack_.empty())
                pop(t);
            go_to({}); // shown with the next record, which goes to another task
        }
        suspended_.erase(task);
    }

    void measure(int64_t t, bool on) {
        off_ = !on;
        update(t);
    }
    void flush(int64_t t, uint64_t until) {
        tallies_[FLUSHES]++;
        show(t, FLUSHING);
        now_ = std::max(now_, ns(until));
        update(now_);
    }

    void count(int64_t t, uint32_t metric, uint8_t number, const uint8_t *kinds,
               const uint64_t *values) {
        const auto found = counters_.find(metric);
        if (found == counters_.end()) {
            tallies_[NOT_HERE]++;
            return;
        }
        std::vector<int64_t> &last = read_[metric];
        const bool first = last.empty();
        last.resize(found->second.size());
        for (size_t i = 0; i < std::min<size_t>(number, last.size()); i++) {
            const Counter &counter = found->second[i];
            if (!counter.type)
                continue;
            constexpr uint8_t FLOAT = 9, DOUBLE = 10;
            double real = 0;
            if (kinds[i] == DOUBLE)
                std::memcpy(&real, &values[i], sizeof real);
            else if (kinds[i] == FLOAT) {
                float shorter;
                std::memcpy(&shorter, &values[i], sizeof shorter);
                real = double(shorter);
            } else if (counter.scale != 1)
                real = double(int64_t(values[i]));
            int64_t value = int64_t(values[i]);
            if (kinds[i] == FLOAT || kinds[i] == DOUBLE || counter.scale != 1) {
                real *= counter.scale;
                value = std::abs(real) < 9e18 ? int64_t(std::llround(real)) : 0;
            }
            if (counter.relative)
                emit(t, counter.type, value);
            else if (!first) // the first reading counts from a time before the trace
                emit(t, counter.type, int64_t(uint64_t(value) - uint64_t(last[i])));
            last[i] = value;
        }
    }

    // Run what a record does; no exception may pass through the library.
    template <typename Record> int record(Record &&of) noexcept {
        try {
            of();
            return GO_ON;
        } catch (...) {
            failed_ = true;
            return STOP;
        }
    }

  private:
    using Wide = unsigned __int128;
    struct Task {
        uint32_t team = 0, thread = 0, generation = 0; // all 0: the implicit one
        bool operator==(const Task &o) const {
            return team == o.team && thread == o.thread && generation == o.generation;
        }
        bool operator<(const Task &o) const {
            return std::tie(team, thread, generation) < std::tie(o.team, o.thread, o.generation);
        }
    };
    struct Communicator {
        int64_t number;
        bool own;                       // each process has one of its own
        std::vector<int64_t> members;   // processes
        std::vector<int64_t> far, near; // what ranks mean; to those not in `near`, its processes
    };
    struct Call {
        int64_t entry = 0, row = -1, arguments = -1;
        size_t sends = 0, receives = 0;
        const Region *region = nullptr;
    };
    static constexpr int64_t LATE = std::numeric_limits<int64_t>::max();
    static constexpr int64_t WHOLE_REGION = 3; // of the event of a parallel construct

    void begin(int64_t process, bool first) {
        for (const auto &[c, rank] : ranks_[process_])
            rank_[size_t(c)] = -1;
        for (const auto &[c, rank] : ranks_[process])
            rank_[size_t(c)] = rank;
        process_ = process;
        master_ = first;
        stack_.clear();
        suspended_.clear();
        for (Function &each : functions_)
            each.open = 0;
        posts_.clear(), posted_.clear(), probed_.clear(), requested_.clear();
        collectives_.clear(), read_.clear();
        task_ = {};
        call_ = {};
        depth_ = forks_ = teams_ = outlined_ = 0;
        between_ = known_ = started_ = off_ = false;
        unnamed_ = -1;
        location_++;
        fresh_ = state_.size();
        now_ = since_ = LATE;
        shown_ = base();
        held_ = -1;
    }

    void finish() {
        if (now_ == LATE)
            return;
        while (!stack_.empty())
            pop_function(now_);
        show(now_, -1);
        last_ = std::max(last_, now_);
    }

    void close() {
        if (events_)
            library_.call<int>("OTF2_Reader_CloseEvtReader", reader_, events_);
        events_ = nullptr;
    }

    // State of a thread outside of all regions.
    int32_t base() const {
        if (!(task_ == Task{}))
            return SCHEDULING;
        if (master_ || teams_ > 0 || started_)
            return RUNNING;
        return known_ ? SCHEDULING : NOT_CREATED;
    }

    int64_t here() const { return taken_ + int64_t(time_.size()); } // row of the next event
    void emit(int64_t t, uint32_t type, int64_t value) {
        time_.push_back(t);
        type_.push_back(type);
        value_.push_back(value);
    }
    void put(int64_t row, int64_t value) {
        if (row >= taken_)
            value_[size_t(row - taken_)] = value;
        else
            patches_.push_back({row, value});
    }

    void show(int64_t t, int32_t state) {
        if (state == shown_)
            return;
        if (t > since_ && shown_ != NO_STATE) {
            if (state_.size() > fresh_ && state_.back() == shown_ && end_.back() == since_)
                end_.back() = t;
            else {
                begin_.push_back(since_);
                end_.push_back(t);
                state_.push_back(shown_);
            }
        }
        since_ = t;
        shown_ = state;
    }

    // Show the state of the innermost region, and open and close the events of barriers and locks.
    void update(int64_t t) {
        const int32_t holds = stack_.empty() ? -1 : stack_.back().holds;
        if (holds != held_) {
            const uint32_t type = holds < 0 ? 0 : regions_[size_t(holds)].type;
            if (held_ >= 0 && regions_[size_t(held_)].type != type)
                emit(t, regions_[size_t(held_)].type, 0);
            if (type)
                emit(t, type, regions_[size_t(holds)].value);
            held_ = holds;
        }
        int32_t state = stack_.empty() ? base() : stack_.back().state;
        const bool told = !stack_.empty() &&
                          regions_[size_t(stack_.back().region)].traits & EXPLICIT;
        if (between_ && depth_ == 0 && !told)
            state = SCHEDULING;
        show(t, off_ ? int32_t(OFF) : state);
    }

    void pop_function(int64_t t) {
        const Frame frame = stack_.back();
        stack_.pop_back();
        const int64_t length = t - frame.enter;
        Function &of = functions_[size_t(frame.region)];
        of.visits++;
        of.exclusive += length - frame.inside;
        if (--of.open == 0)
            of.inclusive += length;
        if (!stack_.empty())
            stack_.back().inside += length;
    }

    void pop(int64_t t) {
        const Frame frame = stack_.back();
        pop_function(t);
        const Region &region = regions_[size_t(frame.region)];
        if (region.kind == MPI && --depth_ == 0)
            end_call(t);
        else if (region.traits & USER)
            emit(t, types_.user, 0);
        if (frame.opened) {
            if (--outlined_ == 0)
                emit(t, types_.outlined, 0);
            if (--forks_ == 0)
                emit(t, types_.parallel, 0);
        }
    }

    void begin_call(int64_t t, const Region &region, int32_t caller) {
        call_ = {t, here(), -1, sends_.size(), receives_.size(), &region};
        completions_ = 0;
        emit(t, region.type, region.value);
        if (region.traits & COLLECTIVE) {
            call_.arguments = here();
            for (const uint32_t type :
                 {types_.sent, types_.received, types_.communicator, types_.is_root})
                emit(t, type, 0);
        }
        if (caller >= 0)
            emit(t, types_.caller, int64_t(caller) + 1);
    }

    // The messages of a call end with it, or begin with it.
    void end_call(int64_t t) {
        const Region &region = *call_.region;
        const bool by_entry = region.traits & BY_ENTRY;
        for (size_t i = call_.sends; i < sends_.size(); i++)
            sends_[i].physical = by_entry ? call_.entry : t;
        for (size_t i = call_.receives; i < receives_.size(); i++)
            receives_[i].physical = t;
        if (!by_entry)
            for (const uint64_t request : posted_) {
                const auto found = posts_.find(request);
                if (found != posts_.end() && found->second.pending)
                    found->second.logical = t;
            }
        for (const uint64_t request : posted_) {
            const auto found = posts_.find(request);
            if (found != posts_.end())
                found->second.pending = false;
        }
        posted_.clear();
        if (region.traits & TEST && completions_ == 0)
            put(call_.row, region.missed);
        emit(t, region.type, 0);
        call_ = {};
    }

    Message message(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag,
                    uint64_t size) const {
        return {called(t), t, t, int64_t(size), comm_index_(communicator), int32_t(peer),
                int32_t(tag), int32_t(process_), location_};
    }
    int64_t called(int64_t t) const { return depth_ > 0 ? call_.entry : t; }
    void add_receive(const Message &message) {
        completions_++;
        receives_.push_back(message);
    }

    void arguments(int64_t row, uint8_t op, uint32_t communicator, uint32_t root, uint64_t sent,
                   uint64_t received) {
        const int32_t c = comm_index_(communicator);
        if (c < 0) {
            tallies_[UNDEFINED]++;
            return;
        }
        const Communicator &of = comms_[size_t(c)];
        constexpr uint32_t SELF = 0xfffffffe;
        const int64_t rank = of.own ? 0 : rank_[size_t(c)];
        const bool is_root = root == SELF || int64_t(root) == rank;
        const int64_t size = of.own ? 1 : int64_t(of.members.size());
        const auto [put_in, got] =
            contribution(op, size, std::max<int64_t>(rank, 0), is_root, int64_t(sent),
                         int64_t(received));
        put(row, put_in);
        put(row + 1, got);
        put(row + 2, of.number + (of.own ? process_ : 0));
        put(row + 3, is_root);
    }

    void go_to(const Task &task) {
        if (task == task_)
            return;
        suspended_[task_] = std::move(stack_);
        task_ = task;
        stack_ = std::move(suspended_[task]);
        suspended_.erase(task);
    }

    template <typename T> static void room(std::vector<T> &column, size_t rows) {
        column.reserve(rows);
#ifdef MADV_HUGEPAGE
        const uintptr_t page = 1 << 12, begin = (uintptr_t(column.data()) + page - 1) / page * page;
        madvise(reinterpret_cast<void *>(begin), rows * sizeof(T) / page * page, MADV_HUGEPAGE);
#endif
    }

    template <typename T> static void append(int file, std::vector<T> &values) {
        const char *data = reinterpret_cast<const char *>(values.data());
        for (size_t left = values.size() * sizeof(T); left > 0;) {
            const ssize_t size = ::write(file, data, left);
            if (size < 0 && errno != EINTR)
                throw std::system_error(errno, std::generic_category());
            data += std::max<ssize_t>(size, 0);
            left -= size_t(std::max<ssize_t>(size, 0));
        }
        values.clear();
    }

    // The process that a rank of a communicator is to a process, or -1.
    int64_t partner(int64_t process, int32_t c, int32_t peer) const {
        if (c < 0)
            return -1;
        const Communicator &of = comms_[size_t(c)];
        if (of.own)
            return peer == 0 ? process : -1;
        const std::vector<int64_t> &far = of.far, &near = of.near;
        const bool is_far = !near.empty() &&
                            std::find(near.begin(), near.end(), process) == near.end();
        const std::vector<int64_t> &peers = is_far ? near : far;
        return peer >= 0 && size_t(peer) < peers.size() ? peers[size_t(peer)] : -1;
    }

    void make_callbacks();

    struct Function {
        int64_t visits = 0, inclusive = 0, exclusive = 0, open = 0;
    };

    Library library_;
    void *reader_ = nullptr, *events_ = nullptr, *callbacks_ = nullptr;
    bool files_open_ = false, failed_ = false;

    std::vector<Region> regions_;
    std::vector<Communicator> comms_;
    std::unordered_map<int64_t, std::vector<std::pair<int32_t, int32_t>>> ranks_; // by process
    std::unordered_map<uint32_t, std::vector<Counter>> counters_;
    Index region_index_, comm_index_;
    EventTypes types_{};
    uint64_t offset_ = 0, whole_ = 1, part_ = 0;
    std::vector<Function> functions_;
    int64_t tallies_[TALLIES] = {};
    int64_t first_ = LATE, last_ = 0;

    // Of the location that is read.
    std::vector<int64_t> begin_, end_, time_, value_;
    std::vector<int32_t> state_;
    std::vector<uint32_t> type_;
    std::vector<Message> sends_, receives_;
    std::vector<std::pair<int64_t, int64_t>> patches_; // rows that were taken, and their values
    Stack stack_;
    std::map<Task, Stack> suspended_;
    std::vector<int32_t> rank_;
    std::unordered_map<uint64_t, Post> posts_;
    std::vector<uint64_t> posted_;
    std::unordered_map<uint64_t, Probed> probed_;
    std::unordered_map<uint64_t, uint64_t> requested_;
    std::unordered_map<uint64_t, int64_t> collectives_; // row of the arguments by request
    std::unordered_map<uint32_t, std::vector<int64_t>> read_;
    Task task_;
    Call call_;
    size_t fresh_ = 0; // states of other locations in memory
    int32_t location_ = -1;
    int64_t process_ = -1, taken_ = 0, taken_states_ = 0, now_ = LATE, since_ = LATE, unnamed_ = -1;
    int32_t depth_ = 0, forks_ = 0, teams_ = 0, outlined_ = 0, shown_ = 0, held_ = -1;
    int64_t completions_ = 0;
    bool master_ = false, between_ = false, known_ = false, started_ = false, off_ = false;
};

// Records of events, as the library hands them over. Each begins with these arguments.
#define RECORD(NAME, ...) int NAME(uint64_t, uint64_t t, uint64_t, void *to, void *, ##__VA_ARGS__)
#define DO(...)                                                                                    \
    Reader &reader = *static_cast<Reader *>(to);                                                   \
    return reader.record([&] {                                                                     \
        const int64_t time = reader.at(t);                                                         \
        static_cast<void>(time);                                                                   \
        __VA_ARGS__;                                                                               \
    })

RECORD(on_enter, uint32_t region) { DO(reader.enter(time, region)); }
RECORD(on_leave, uint32_t region) { DO(reader.leave(time, region)); }
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
    set("ProgramBegin", &on_unknown, true);
    set("ProgramEnd", &on_unknown, true);
}

// Writes an archive, a location after the other. Regions tell its states where they do not follow
// from the regions around.
class Writer {
  public:
    Writer(const std::string &library, const std::string &folder, const std::string &name)
        : library_(library) {
        last_error.clear();
        constexpr uint8_t WRITE = 0, POSIX = 1, PLAIN_FILES = 1;
        archive_ = library_.call<void *>("OTF2_Archive_Open", folder.c_str(), name.c_str(), WRITE,
                                         uint64_t(1) << 20, uint64_t(1) << 22, POSIX, PLAIN_FILES);
        if (archive_ == nullptr)
            throw Failure(last_error.empty() ? "cannot be created" : last_error);
        static const struct {
            uint8_t (*before)(void *, uint8_t, uint64_t, void *, bool);
            uint64_t (*after)(void *, uint8_t, uint64_t);
        } flush{[](void *, uint8_t, uint64_t, void *, bool) -> uint8_t { return 1; }, nullptr};
        library_.must("OTF2_Archive_SetFlushCallbacks", archive_, (const void *)&flush,
                      (void *)nullptr);
        library_.must("OTF2_Archive_SetSerialCollectiveCallbacks", archive_);
        library_.must("OTF2_Archive_OpenEvtFiles", archive_);
        enter_ = library_.function<int, void *, void *, uint64_t, uint32_t>("OTF2_EvtWriter_Enter");
        leave_ = library_.function<int, void *, void *, uint64_t, uint32_t>("OTF2_EvtWriter_Leave");
    }
    Writer(const Writer &) = delete;
    Writer &operator=(const Writer &) = delete;
    ~Writer() {
        if (archive_)
            library_.call<int>("OTF2_Archive_Close", archive_);
    }

    // What the state of a thread is inside each region (INHERITED: as around it), whether that is a
    // call of MPI, and the regions that tell states.
    void describe(In<int32_t> implied, In<uint8_t> is_call, In<int32_t> states,
                  In<uint32_t> regions) {
        check(implied.size() == is_call.size() && states.size() == regions.size(),
              DIFFERENT_LENGTHS);
        implied_.assign(implied.data(), implied.data() + implied.size());
        is_call_.assign(is_call.data(), is_call.data() + is_call.size());
        for (size_t i = 0; i < states.size(); i++)
            telling_[states.data()[i]] = regions.data()[i];
    }

    // Records of a location in order, each with up to six arguments, and its states.
    uint64_t location(uint64_t number, bool first, In<int64_t> time, In<uint8_t> kind,
                      In<int64_t> arguments, In<int64_t> begin, In<int64_t> end,
                      In<int32_t> state) {
        check(kind.size() == time.size() && arguments.size() == 6 * time.size() &&
                  end.size() == begin.size() && state.size() == begin.size(),
              DIFFERENT_LENGTHS);
        to_ = library_.call<void *>("OTF2_Archive_GetEvtWriter", archive_, number);
        if (to_ == nullptr)
            throw Failure(last_error);
        stack_.clear(), deferred_.clear();
        master_ = first;
        forks_ = 0;
        between_ = false;
        row_ = 0;
        const size_t states = begin.size();
        int64_t now = states ? begin.data()[0] : 0;
        if (time.size() && (!states || time.data()[0] < now))
            now = time.data()[0];
        auto settle = [&](int64_t until) { // without states, they follow from the regions
            now = states ? now : until;
            while (now < until) {
                while (row_ < states && end.data()[row_] <= now)
                    row_++;
                int64_t next = until;
                int32_t shown = NO_STATE;
                if (row_ < states && begin.data()[row_] <= now) {
                    shown = state.data()[row_];
                    next = std::min(until, end.data()[row_]);
                } else if (row_ < states)
                    next = std::min(until, begin.data()[row_]);
                if (shown != around()) {
                    const auto telling = telling_.find(shown);
                    check(telling != telling_.end(), "a state without a region");
                    must(enter_(to_, nullptr, uint64_t(now), telling->second));
                    must(leave_(to_, nullptr, uint64_t(next), telling->second));
                }
                now = next;
            }
        };
        for (size_t i = 0; i < time.size(); i++) {
            check(time.data()[i] >= now, "records must be in order of time");
            settle(time.data()[i]);
            write(uint64_t(now), kind.data()[i], arguments.data() + 6 * i);
        }
        if (states)
            settle(std::max(now, end.data()[states - 1]));
        while (!stack_.empty())
            close(uint64_t(now), stack_.back());
        uint64_t count = 0;
        library_.must("OTF2_EvtWriter_GetNumberOfEvents", to_, &count);
        library_.must("OTF2_Archive_CloseEvtWriter", archive_, to_);
        return count;
    }

    void finish(In<uint64_t> locations, nb::list definitions) {
        library_.must("OTF2_Archive_CloseEvtFiles", archive_);
        library_.must("OTF2_Archive_OpenDefFiles", archive_);
        for (size_t i = 0; i < locations.size(); i++) {
            void *own = library_.call<void *>("OTF2_Archive_GetDefWriter", archive_,
                                              locations.data()[i]);
            library_.must("OTF2_Archive_CloseDefWriter", archive_, own);
        }
        library_.must("OTF2_Archive_CloseDefFiles", archive_);
        to_ = library_.call<void *>("OTF2_Archive_GetGlobalDefWriter", archive_);
        for (const auto each : definitions)
            define(nb::cast<nb::tuple>(each));
        library_.must("OTF2_Archive_CloseGlobalDefWriter", archive_, to_);
        void *archive = std::exchange(archive_, nullptr);
        library_.must("OTF2_Archive_Close", archive);
    }

  private:
    enum Record : uint8_t {
        ENTER, LEAVE, SEND, ISEND, RECEIVE, POST, COMPLETE, SENT, COLLECTIVE_BEGIN, COLLECTIVE_END,
        REQUEST_COLLECTIVE, COMPLETE_COLLECTIVE, FORK, JOIN, TEAM_BEGIN, TEAM_END, METRIC,
        PROGRAM_BEGIN, PROGRAM_END
    };
    static constexpr int32_t UNKNOWN = -3;
    static constexpr uint8_t OPENMP = 3;

    void must(int code) const {
        if (code)
            throw Failure(library_.reason(code));
    }

    // The state that a reader takes a thread to be in, by its regions.
    int32_t around() const {
        if (between_)
            return UNKNOWN;
        for (size_t i = stack_.size(); i-- > 0;)
            if (implied_[stack_[i]] != INHERITED)
                return implied_[stack_[i]];
        return master_ && forks_ == 0 ? int32_t(RUNNING) : UNKNOWN;
    }

    // Regions that cross others end inside them and begin again; those around a call wait for it.
    void close(uint64_t t, uint32_t region) {
        size_t at = stack_.size();
        bool around_call = false;
        while (at > 0 && stack_[at - 1] != region)
            around_call |= is_call_[stack_[--at]] != 0;
        if (at == 0)
            return;
        if (around_call) {
            deferred_.push_back(region);
            return;
        }
        for (size_t i = stack_.size(); i-- >= at;)
            must(leave_(to_, nullptr, t, stack_[i]));
        stack_.erase(stack_.begin() + ptrdiff_t(at) - 1);
        for (size_t i = at - 1; i < stack_.size(); i++)
            must(enter_(to_, nullptr, t, stack_[i]));
        if (is_call_[region])
            for (const uint32_t other : std::exchange(deferred_, {}))
                close(t, other);
    }

    template <typename... Arguments>
    void event(const char *kind, uint64_t t, Arguments... arguments) const {
        library_.must(("OTF2_EvtWriter_" + std::string(kind)).c_str(), to_, (void *)nullptr, t,
                      arguments...);
    }

    void write(uint64_t t, uint8_t kind, const int64_t *a) {
        const auto number = [a](int i) { return uint32_t(a[i]); };
        const auto large = [a](int i) { return uint64_t(a[i]); };
        switch (kind) {
        case ENTER:
            check(size_t(a[0]) < implied_.size(), "an unknown region");
            stack_.push_back(number(0));
            return must(enter_(to_, nullptr, t, number(0)));
        case LEAVE:
            return close(t, number(0));
        case SEND:
            return event("MpiSend", t, number(0), number(1), number(2), large(3));
        case ISEND:
            return event("MpiIsend", t, number(0), number(1), number(2), large(3), large(4));
        case RECEIVE:
            return event("MpiRecv", t, number(0), number(1), number(2), large(3));
        case POST:
            return event("MpiIrecvRequest", t, large(0));
        case COMPLETE:
            return event("MpiIrecv", t, number(0), number(1), number(2), large(3), large(4));
        case SENT:
            return event("MpiIsendComplete", t, large(0));
        case COLLECTIVE_BEGIN:
            return event("MpiCollectiveBegin", t);
        case COLLECTIVE_END:
            return event("MpiCollectiveEnd", t, uint8_t(a[0]), number(1), number(2), large(3),
                         large(4));
        case REQUEST_COLLECTIVE:
            return event("NonBlockingCollectiveRequest", t, large(0));
        case COMPLETE_COLLECTIVE:
            return event("NonBlockingCollectiveComplete", t, uint8_t(a[0]), number(1), number(2),
                         large(3), large(4), large(5));
        case FORK:
            forks_++;
            between_ = true;
            return event("ThreadFork", t, OPENMP, number(0));
        case JOIN:
            forks_--;
            between_ = false;
            return event("ThreadJoin", t, OPENMP);
        case TEAM_BEGIN:
            between_ = false;
            return event("ThreadTeamBegin", t, number(0));
        case TEAM_END:
            between_ = forks_ > 0;
            return event("ThreadTeamEnd", t, number(0));
        case METRIC: {
            constexpr uint8_t WHOLE = 4;
            return event("Metric", t, number(0), uint8_t(1), &WHOLE, (const void *)&a[1]);
        }
        case PROGRAM_BEGIN:
            return event("ProgramBegin", t, number(0), uint32_t(0), (const void *)nullptr);
        case PROGRAM_END:
            return event("ProgramEnd", t, int64_t(0));
        }
        check(false, "an unknown record");
    }

    template <typename... Arguments>
    void definition(const char *kind, Arguments... arguments) const {
        library_.must(("OTF2_GlobalDefWriter_Write" + std::string(kind)).c_str(), to_,
                      arguments...);
    }

    void define(nb::tuple each) const {
        const std::string kind = nb::cast<std::string>(each[0]);
        const auto number = [&](int i) { return nb::cast<uint32_t>(each[i]); };
        const auto large = [&](int i) { return nb::cast<uint64_t>(each[i]); };
        const auto byte = [&](int i) { return nb::cast<uint8_t>(each[i]); };
        constexpr uint32_t NONE = 0xffffffff;
        if (kind == "clock")
            definition("ClockProperties", large(1), uint64_t(0), large(2), ~uint64_t(0));
        else if (kind == "string")
            definition("String", number(1), nb::cast<nb::bytes>(each[2]).c_str());
        else if (kind == "node")
            definition("SystemTreeNode", number(1), number(2), number(3), number(4));
        else if (kind == "process")
            definition("LocationGroup", number(1), number(2), uint8_t(1), number(3), NONE);
        else if (kind == "location")
            definition("Location", large(1), number(2), uint8_t(1), large(3), number(4));
        else if (kind == "region")
            definition("Region", number(1), number(2), number(2), number(3), byte(4), byte(5),
                       uint32_t(0), NONE, uint32_t(0), uint32_t(0));
        else if (kind == "group") {
            const auto members = nb::cast<std::vector<uint64_t>>(each[5]);
            definition("Group", number(1), number(2), byte(3), byte(4), uint32_t(0),
                       uint32_t(members.size()), members.data());
        } else if (kind == "communicator")
            definition("Comm", number(1), number(2), number(3), NONE, uint32_t(0));
        else if (kind == "counter") {
            constexpr uint8_t PAPI = 1, START = 0, WHOLE = 4, DECIMAL = 1, STRICT = 0, CPU = 2;
            const uint32_t self = number(1);
            definition("MetricMember", self, number(2), number(3), PAPI, START, WHOLE, DECIMAL,
                       int64_t(0), number(3));
            definition("MetricClass", self, uint8_t(1), &self, STRICT, CPU);
        } else
            check(false, "an unknown definition");
    }

    Library library_;
    void *archive_ = nullptr, *to_ = nullptr;
    int (*enter_)(void *, void *, uint64_t, uint32_t) = nullptr;
    int (*leave_)(void *, void *, uint64_t, uint32_t) = nullptr;
    std::vector<int32_t> implied_;
    std::vector<uint8_t> is_call_;
    std::unordered_map<int32_t, uint32_t> telling_;
    std::vector<uint32_t> stack_, deferred_;
    size_t row_ = 0;
    int32_t forks_ = 0;
    bool master_ = false, between_ = false;
};

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
        .def("definitions", &Reader::definitions, "Definitions by kind, each a tuple.")
        .def("describe", &Reader::describe, nb::arg("regions"), nb::arg("kind"), nb::arg("traits"),
             nb::arg("state"), nb::arg("type"), nb::arg("value"), nb::arg("missed"),
             nb::arg("communicators"), nb::arg("number"), nb::arg("own"), nb::arg("members"),
             nb::arg("far"), nb::arg("near"), nb::arg("metrics"), nb::arg("types"), nb::arg("resolution"),
             nb::arg("offset"), "Say what the definitions are to popmodel.")
        .def("reserve", &Reader::reserve, nb::arg("rows"), "Make room for long columns.")
        .def("open", &Reader::open, nb::arg("location"), nb::arg("process"), nb::arg("first"),
             "Begin with a location.")
        .def("read", &Reader::read, nb::arg("most"), "Read events; whether there may be more.")
        .def_prop_ro("held", &Reader::held, "Bytes of the columns in memory.")
        .def("rows", &Reader::rows, "States and events that were read.")
        .def("write", &Reader::write, nb::arg("files"), "Append the six columns to files.")
        .def("columns", &Reader::columns, "Hand the six columns over.")
        .def("patches", &Reader::patches, "Rows of events that get other values, and these.")
        .def("match", &Reader::match, "Columns of messages, and how many ends are without.")
        .def("functions", &Reader::functions, "Visits, inclusive and exclusive ns of each region.")
        .def("tallies", &Reader::tallies, "Counts of what is worth a warning.")
        .def_prop_ro("first_time", &Reader::first_time)
        .def_prop_ro("last_time", &Reader::last_time);
    nb::class_<Writer>(module, "Otf2Writer", "Writes an archive of OTF2.")
        .def(nb::init<const std::string &, const std::string &, const std::string &>(),
             nb::arg("library"), nb::arg("folder"), nb::arg("name"))
        .def("describe", &Writer::describe, nb::arg("implied"), nb::arg("is_call"),
             nb::arg("states"), nb::arg("regions"))
        .def("location", &Writer::location, nb::arg("number"), nb::arg("first"), nb::arg("time"),
             nb::arg("kind"), nb::arg("arguments"), nb::arg("begin"), nb::arg("end"),
             nb::arg("state"), "Write the records of a location; how many it has then.")
        .def("finish", &Writer::finish, nb::arg("locations"), nb::arg("definitions"));
}
