// NumPy's arrays by the allocator of scratch.hpp, and what folders lie in memory.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <string>

#include "scratch.hpp"

#ifdef __linux__
#include <sys/vfs.h>
#endif

namespace nb = nanobind;
namespace scratch = popmodel::scratch;

namespace {

// How NumPy asks for memory (NEP 49); the layout and the numbers of the functions are part of its
// binary interface since 1.22.
struct Handler {
    char name[127];
    std::uint8_t version;
    struct {
        void *context;
        void *(*malloc)(void *, std::size_t);
        void *(*calloc)(void *, std::size_t, std::size_t);
        void *(*realloc)(void *, void *, std::size_t);
        void (*free)(void *, void *, std::size_t);
    } allocator;
};
constexpr std::size_t kSetHandler = 304;
constexpr const char *kHandlerName = "mem_handler";

Handler handler = {
    "popmodel",
    1,
    {nullptr, [](void *, std::size_t bytes) { return scratch::take(bytes); },
     [](void *, std::size_t count, std::size_t size) {
         return count && size > ~std::size_t{0} / count ? nullptr
                                                        : scratch::take_zeros(count * size);
     },
     [](void *, void *block, std::size_t bytes) { return scratch::resize(block, bytes); },
     [](void *, void *block, std::size_t) { scratch::give(block); }}};

// Set a handler of NumPy's, None: its own; the one before.
nb::object set_handler(nb::object capsule) {
    using Set = PyObject *(*)(PyObject *);
    nb::object held;
    try {
        held = nb::module_::import_("numpy._core._multiarray_umath").attr("_ARRAY_API");
    } catch (nb::python_error &) {  // before NumPy 2
        held = nb::module_::import_("numpy.core._multiarray_umath").attr("_ARRAY_API");
    }
    auto **const functions = static_cast<void **>(PyCapsule_GetPointer(held.ptr(), nullptr));
    if (!functions) throw nb::python_error();
    const auto set = reinterpret_cast<Set>(functions[kSetHandler]);
    PyObject *const before = set(capsule.is_none() ? nullptr : capsule.ptr());
    if (!before) throw nb::python_error();
    return nb::steal(before);
}

}  // namespace

void bind_memory(nb::module_ &module) {
    module.def(
        "use_scratch",
        [](const std::string &folder, std::size_t budget) {
            scratch::use(folder, budget);
            return set_handler(nb::steal(PyCapsule_New(&handler, kHandlerName, nullptr)));
        },
        nb::arg("folder"), nb::arg("budget"),
        "Let long columns and arrays that exceed a budget lie in files of a folder; what was before.");
    module.def(
        "leave_scratch",
        [](nb::object before) {
            scratch::use("", 0);
            set_handler(before);
        },
        nb::arg("before"), "Let new columns and arrays lie in memory again.");
    module.def(
        "scratch_lacks",
        [] {
            int reason = 0;
            const std::size_t bytes = scratch::lacking(reason);
            return nb::make_tuple(bytes, reason);
        },
        "Bytes that could not be had of the scratch folder, and errno; 0 bytes: none.");
    module.def(
        "is_in_memory",
        [](const std::string &folder) {
#ifdef __linux__
            struct statfs found;
            return statfs(folder.c_str(), &found) == 0 &&
                   (static_cast<unsigned long>(found.f_type) == 0x01021994ul ||
                    static_cast<unsigned long>(found.f_type) == 0x858458F6ul);
#else
            return folder.empty();
#endif
        },
        nb::arg("folder"), "Whether the file system of a folder is held in memory (tmpfs, ramfs).");
}
