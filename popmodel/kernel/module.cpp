// The compiled core of popmodel: one function per subject binds itself here.

#include <nanobind/nanobind.h>

#include "interface.hpp"

namespace nb = nanobind;

void bind_scan(nb::module_ &module);
void bind_parts(nb::module_ &module);
void bind_pairing(nb::module_ &module);
void bind_readings(nb::module_ &module);
void bind_functions(nb::module_ &module);
void bind_states(nb::module_ &module);
void bind_types(nb::module_ &module);
void bind_messages(nb::module_ &module);
void bind_partners(nb::module_ &module);
void bind_collectives(nb::module_ &module);
void bind_operations(nb::module_ &module);
void bind_classes(nb::module_ &module);
void bind_replay(nb::module_ &module);
void bind_contended(nb::module_ &module);
void bind_repetition(nb::module_ &module);
void bind_align(nb::module_ &module);
void bind_otf2(nb::module_ &module);
void bind_otf2_writer(nb::module_ &module);
void bind_untimed(nb::module_ &module);
void bind_memory(nb::module_ &module);

NB_MODULE(_kernel, module) {
    module.doc() = "Compiled core of popmodel: scanning trace text, from calls to programs, replay, mapped files.";
    module.attr("interface") = INTERFACE;
    bind_scan(module);
    bind_parts(module);
    bind_pairing(module);
    bind_readings(module);
    bind_functions(module);
    bind_states(module);
    bind_types(module);
    bind_messages(module);
    bind_partners(module);
    bind_collectives(module);
    bind_operations(module);
    bind_classes(module);
    bind_replay(module);
    bind_contended(module);
    bind_repetition(module);
    bind_align(module);
    bind_otf2(module);
    bind_otf2_writer(module);
    bind_untimed(module);
    bind_memory(module);
}
