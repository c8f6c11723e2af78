// What a process of a program does. Numbers shared with popmodel.simulator.program.Op.
#pragma once

#include <cstdint>

namespace popmodel {

enum Op : uint8_t {
    SEND,
    ISEND,
    RECEIVE,
    POST,
    WAIT_RECEIVE,
    WAIT_SEND,
    COLLECTIVE,
    ARRIVE,
    WAIT_COLLECTIVE
};

} // namespace popmodel
