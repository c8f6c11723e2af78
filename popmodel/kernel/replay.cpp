// Replays a program on a network.

#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_replay(nb::module_ &) {}
