// Archives of OTF2, written through its C library.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "numpy.hpp"
#include "otf2_library.hpp"
#include "otf2_tables.hpp"

namespace nb = nanobind;
using namespace popmodel;
using namespace popmodel::otf2;

namespace {

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
        PROGRAM_BEGIN, PROGRAM_END, OPERATION_BEGIN, OPERATION_END
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
        case OPERATION_BEGIN:
            return event("IoOperationBegin", t, number(0), uint8_t(a[1]), uint32_t(a[2]), large(3),
                         large(4));
        case OPERATION_END:
            return event("IoOperationComplete", t, number(0), large(1), large(2));
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
            definition("LocationGroup", number(1), number(2), byte(4), number(3), number(5));
        else if (kind == "location")
            definition("Location", large(1), number(2), byte(5), large(3), number(4));
        else if (kind == "region")
            definition("Region", number(1), number(2), number(2), number(3), byte(4), byte(5),
                       uint32_t(0), NONE, uint32_t(0), uint32_t(0));
        else if (kind == "group") {
            const auto members = nb::cast<std::vector<uint64_t>>(each[5]);
            definition("Group", number(1), number(2), byte(3), byte(4), uint32_t(0),
                       uint32_t(members.size()), members.data());
        } else if (kind == "communicator")
            definition("Comm", number(1), number(2), number(3), NONE, uint32_t(0));
        else if (kind == "handle") { // of files, with its paradigm
            constexpr uint32_t PRE_CREATED = 1;
            definition("IoParadigm", number(1), number(2), number(2), byte(3), uint32_t(0),
                       uint8_t(0), (const void *)nullptr, (const void *)nullptr,
                       (const void *)nullptr);
            definition("IoHandle", number(1), number(2), NONE, number(1), PRE_CREATED, NONE, NONE);
        } else if (kind == "counter") {
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

void bind_otf2_writer(nb::module_ &module) {
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
