// The compiled core of popmodel: one function per subject binds itself here.

#include <nanobind/nanobind.h>

#include "interface.hpp"

namespace nb = nanobind;

void bind_scan(nb::module_ &module);
void bind_replay(nb::module_ &module);
void bind_guard(nb::module_ &module);

NB_MODULE(_kernel, module) {
    module.doc() = "Compiled core of popmodel: scanning trace text, replay loops, mapped files.";
    module.attr("interface") = INTERFACE;
    bind_scan(module);
    bind_replay(module);
    bind_guard(module);
}
