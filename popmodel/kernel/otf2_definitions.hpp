// Definitions of an archive, as Python takes them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <new>
#include <string>

#include "otf2_library.hpp"

namespace popmodel::otf2 {

namespace nb = nanobind;

// Definitions: a list of tuples for each kind.
//
// The library reads a file that was cut on into what its buffer held before, where a count may be
// anything: more definitions and members than a file has room for are damage.
struct Definitions {
    size_t room; // For so many more, and their members
    nb::dict kinds;
    bool failed = false, damaged = false;

    bool fits(size_t count) {
        damaged = damaged || count > room;
        room -= damaged ? room : count;
        return !damaged;
    }

    template <typename... Values> int add(const char *kind, Values... values) {
        if (!fits(1))
            return STOP;
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

inline nb::bytes bytes(const char *text) { return nb::bytes(text ? text : ""); }

// Add a definition with members.
template <typename T, typename... Values>
int add_members(void *to, const char *kind, const T *members, size_t count, Values... values) {
    auto &definitions = *static_cast<Definitions *>(to);
    if (!definitions.fits(count))
        return STOP;
    try {
        nb::list found;
        for (size_t i = 0; i < count; i++)
            found.append(members[i]);
        return definitions.add(kind, values..., found);
    } catch (...) {
        definitions.failed = true;
        return STOP;
    }
}

inline int on_clock(void *to, uint64_t resolution, uint64_t offset, uint64_t length, uint64_t) {
    return static_cast<Definitions *>(to)->add("clock", resolution, offset, length);
}
inline int on_string(void *to, uint32_t self, const char *text) {
    return static_cast<Definitions *>(to)->add("strings", self, bytes(text));
}
inline int on_node(void *to, uint32_t self, uint32_t name, uint32_t kind, uint32_t parent) {
    return static_cast<Definitions *>(to)->add("nodes", self, name, kind, parent);
}
inline int on_domain(void *to, uint32_t node, uint8_t domain) {
    return static_cast<Definitions *>(to)->add("domains", node, domain);
}
// Before version 3 there is no last argument: its value is not to be used then.
inline int on_location_group(void *to, uint32_t self, uint32_t name, uint8_t type, uint32_t node,
                      uint32_t creator) {
    return static_cast<Definitions *>(to)->add("processes", self, name, type, node, creator);
}
inline int on_location(void *to, uint64_t self, uint32_t name, uint8_t type, uint64_t events,
                uint32_t group) {
    return static_cast<Definitions *>(to)->add("locations", self, name, type, events, group);
}
inline int on_region(void *to, uint32_t self, uint32_t name, uint32_t, uint32_t, uint8_t role,
              uint8_t paradigm, uint32_t, uint32_t file, uint32_t line, uint32_t) {
    return static_cast<Definitions *>(to)->add("regions", self, name, role, paradigm, file, line);
}
inline int on_group(void *to, uint32_t self, uint32_t, uint8_t type, uint8_t paradigm, uint32_t flags,
             uint32_t count, const uint64_t *members) {
    return add_members(to, "groups", members, count, self, type, paradigm, flags);
}
inline int on_member(void *to, uint32_t self, uint32_t name, uint32_t, uint8_t type, uint8_t mode,
              uint8_t value, uint8_t base, int64_t exponent, uint32_t) {
    return static_cast<Definitions *>(to)->add("members", self, name, type, mode, value, base,
                                               exponent);
}
inline int on_class(void *to, uint32_t self, uint8_t count, const uint32_t *members, uint8_t occurrence,
             uint8_t) {
    return add_members(to, "metrics", members, count, self, occurrence);
}
inline int on_instance(void *to, uint32_t self, uint32_t of, uint64_t recorder, uint8_t scope,
                uint64_t where) {
    return static_cast<Definitions *>(to)->add("instances", self, of, recorder, scope, where);
}
inline int on_comm(void *to, uint32_t self, uint32_t name, uint32_t group, uint32_t) {
    return static_cast<Definitions *>(to)->add("communicators", self, name, group);
}
inline int on_context(void *to, uint32_t self, uint32_t region, uint32_t, uint32_t) {
    return static_cast<Definitions *>(to)->add("contexts", self, region);
}
inline int on_intercomm(void *to, uint32_t self, uint32_t, uint32_t one, uint32_t other, uint32_t) {
    return static_cast<Definitions *>(to)->add("intercommunicators", self, one, other);
}

inline int on_io_paradigm(void *to, uint32_t self, uint32_t, uint32_t, uint8_t kind, uint32_t, uint8_t,
                          const void *, const void *, const void *) {
    return static_cast<Definitions *>(to)->add("io_paradigms", self, kind);
}
inline int on_io_handle(void *to, uint32_t self, uint32_t, uint32_t, uint32_t paradigm, uint32_t,
                        uint32_t, uint32_t) {
    return static_cast<Definitions *>(to)->add("io_handles", self, paradigm);
}

inline nb::dict read_definitions(const Library &library, void *reader, size_t most) {
    Definitions found{most};
    void *from = library.call<void *>("OTF2_Reader_GetGlobalDefReader", reader);
    if (from == nullptr)
        throw Failure(last_error.empty() ? "has no definitions" : last_error);
    void *to = library.call<void *>("OTF2_GlobalDefReaderCallbacks_New");
    auto set = [&](const char *kind, auto callback) {
        library.must(("OTF2_GlobalDefReaderCallbacks_Set" + std::string(kind) + "Callback").c_str(),
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
    set("CallingContext", &on_context);
    if (library.has("OTF2_GlobalDefReaderCallbacks_SetIoHandleCallback")) {
        set("IoParadigm", &on_io_paradigm);
        set("IoHandle", &on_io_handle);
    }
    if (library.has("OTF2_GlobalDefReaderCallbacks_SetInterCommCallback"))
        set("InterComm", &on_intercomm);
    library.must("OTF2_Reader_RegisterGlobalDefCallbacks", reader, from, to, (void *)&found);
    library.call<void>("OTF2_GlobalDefReaderCallbacks_Delete", to);
    uint64_t count = 0;
    last_error.clear();
    const int code = library.call<int>("OTF2_Reader_ReadAllGlobalDefinitions", reader, from, &count);
    if (found.damaged)
        throw Failure("definitions that its files have no room for");
    if (code && !found.failed)
        throw Failure(library.reason(code));
    if (found.failed)
        throw std::bad_alloc();
    return found.kinds;
}

} // namespace popmodel::otf2
