// Mapped files that become shorter, or cannot be read, while they are in use: one clear line and
// status 1 instead of the end by a bus error.
//
// A process that cuts a file short, or a file server that fails, takes the pages from under whoever
// has them mapped; the next load from one ends the process with SIGBUS. Nothing can be computed from
// what is no longer there, so the handler says so and ends the process itself. Faults elsewhere stay
// what they were: of another library, which may have a handler of its own.

#include <nanobind/nanobind.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace nb = nanobind;

namespace {

constexpr int MOST = 1024; // mapped files at a time; further ones are not guarded

struct Guarded {
    std::atomic<uintptr_t> begin{0}; // 0 where the place is free
    std::atomic<uintptr_t> end{0};
    std::atomic<char *> words{nullptr};
};

Guarded guarded[MOST];
struct sigaction before;
std::atomic<bool> watching{false};

void on_fault(int, siginfo_t *fault, void *) {
    const auto at = reinterpret_cast<uintptr_t>(fault->si_addr);
    for (const Guarded &each : guarded) {
        const uintptr_t begin = each.begin.load();
        if (begin == 0 || at < begin || at >= each.end.load())
            continue;
        const char *words = each.words.load();
        if (words && write(STDERR_FILENO, words, std::strlen(words)) < 0) {
            // There is nobody to tell; the status does.
        }
        _exit(1);
    }
    // Not one of ours: as it was before. The load is repeated and fails again.
    sigaction(SIGBUS, &before, nullptr);
}

void watch() {
    if (watching.exchange(true))
        return;
    struct sigaction handler = {};
    handler.sa_sigaction = on_fault;
    handler.sa_flags = SA_SIGINFO;
    sigemptyset(&handler.sa_mask);
    sigaction(SIGBUS, &handler, &before);
}

int guard(nb::object mapped, nb::bytes words) {
    Py_buffer view;
    if (PyObject_GetBuffer(mapped.ptr(), &view, PyBUF_SIMPLE) != 0)
        throw nb::python_error();
    const auto begin = reinterpret_cast<uintptr_t>(view.buf);
    const uintptr_t end = begin + static_cast<uintptr_t>(view.len);
    PyBuffer_Release(&view);
    watch();
    for (int place = 0; place < MOST; place++) {
        Guarded &each = guarded[place];
        if (each.begin.load() != 0)
            continue;
        each.words.store(strdup(words.c_str()));
        each.end.store(end);
        each.begin.store(begin);
        return place;
    }
    return -1;
}

void unguard(int place) {
    if (place < 0 || place >= MOST)
        return;
    guarded[place].begin.store(0);
    std::free(guarded[place].words.exchange(nullptr));
}

} // namespace

void bind_guard(nb::module_ &module) {
    module.def("guard", &guard, nb::arg("mapped"), nb::arg("words"),
               "End the process with these words where mapped memory can no longer be read.");
    module.def("unguard", &unguard, nb::arg("place"), "Forget what `guard` gave a place to.");
}
