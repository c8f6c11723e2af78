"""Types of the compiled core."""

from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

interface: str
"""The text of this file when the core was built."""

class ScanError(ValueError):
    """A record that cannot be used; its arguments are the line, from 1, and the reason."""

class Decoder:
    """Turns streams of locations into columns."""

    def __init__(self) -> None: ...
    def restart(
        self,
        blobs: list[bytearray],
        lengths: npt.NDArray[np.int64],
        first: int,
        fresh: list[bool],
    ) -> None: ...
    def fill(self, *columns: npt.NDArray[np.generic]) -> tuple[int, int, int]: ...

class Scanner:
    """Scans the records of one application."""

    def __init__(
        self,
        threads: list[list[int]],
        cpus: int,
        unit: int,
        duration: int,
        application: int,
        line: int,
    ) -> None: ...
    def feed(self, text: bytes | bytearray | memoryview) -> None: ...
    def finish(self) -> None: ...
    @property
    def held(self) -> int: ...
    def summary(self) -> dict[str, Any]: ...
    def lengths(self) -> npt.NDArray[np.int64]: ...
    def take(self, buffer: bytearray | memoryview) -> int: ...
    def release(self) -> None: ...
    def decoder(self) -> Decoder: ...

class Otf2Error(ValueError):
    """What libotf2 says about an archive that it cannot read or write."""

class Otf2Reader:
    """Reads the locations of an archive of OTF2."""

    def __init__(self, library: str, anchor: str) -> None: ...
    def definitions(self, most: int) -> dict[str, list[tuple[Any, ...]]]: ...
    def describe(
        self,
        regions: npt.NDArray[np.uint32],
        kind: npt.NDArray[np.uint8],
        traits: npt.NDArray[np.uint8],
        state: npt.NDArray[np.int32],
        type: npt.NDArray[np.uint32],
        value: npt.NDArray[np.int64],
        missed: npt.NDArray[np.int64],
        communicators: npt.NDArray[np.uint32],
        number: npt.NDArray[np.int64],
        own: npt.NDArray[np.uint8],
        members: list[list[int]],
        far: list[list[int]],
        near: list[list[int]],
        metrics: dict[int, list[tuple[int, bool, float]]],
        contexts: npt.NDArray[np.uint32],
        context_regions: npt.NDArray[np.uint32],
        parallel_handles: npt.NDArray[np.uint32],
        types: npt.NDArray[np.uint32],
        piece_begin: npt.NDArray[np.int64],
        piece_end: npt.NDArray[np.int64],
        resolution: int,
        offset: int,
    ) -> None: ...
    def reserve(self, ends: int, rows: int) -> None: ...
    def open(self, location: int, place: int, process: int, first: bool) -> None: ...
    def read(self, most: int) -> bool: ...
    @property
    def held(self) -> int: ...
    def rows(self) -> tuple[int, int]: ...
    def write(self, files: list[int]) -> None: ...
    def columns(self) -> tuple[npt.NDArray[Any], ...]: ...
    def patches(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def messages(self) -> tuple[Any, ...]: ...
    def gather(self, other: Otf2Reader) -> None: ...
    def functions(self) -> tuple[npt.NDArray[Any], ...]: ...
    def tallies(self) -> tuple[int, ...]: ...
    @property
    def first_time(self) -> int: ...
    @property
    def last_time(self) -> int: ...

class Otf2Writer:
    """Writes an archive of OTF2."""

    def __init__(self, library: str, folder: str, name: str) -> None: ...
    def describe(
        self,
        implied: npt.NDArray[np.int32],
        is_call: npt.NDArray[np.uint8],
        states: npt.NDArray[np.int32],
        regions: npt.NDArray[np.uint32],
    ) -> None: ...
    def location(
        self,
        number: int,
        first: bool,
        time: npt.NDArray[np.int64],
        kind: npt.NDArray[np.uint8],
        arguments: npt.NDArray[np.int64],
        begin: npt.NDArray[np.int64],
        end: npt.NDArray[np.int64],
        state: npt.NDArray[np.int32],
    ) -> int: ...
    def finish(
        self, locations: npt.NDArray[np.uint64], definitions: list[tuple[Any, ...]]
    ) -> None: ...

def trim() -> None: ...
def message_classes(
    sender: npt.NDArray[np.int32],
    receiver: npt.NDArray[np.int32],
    size: npt.NDArray[np.int64],
    mode: npt.NDArray[np.int8],
    nodes: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]: ...
def sums(
    offsets: npt.NDArray[np.int64], bursts: npt.NDArray[np.float64] | npt.NDArray[np.uint32]
) -> npt.NDArray[np.float64]: ...
def lengths(
    offsets: npt.NDArray[np.int64], begin: npt.NDArray[np.int64], end: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]: ...
def locate(
    offsets: npt.NDArray[np.int64],
    times: npt.NDArray[np.int64],
    group: npt.NDArray[np.int64],
    time: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]: ...
def distinct_types(type: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]: ...
def rows_of_types(
    type: npt.NDArray[np.uint32],
    low: npt.NDArray[np.uint32],
    high: npt.NDArray[np.uint32],
    first: int,
) -> npt.NDArray[np.int64]: ...
def times_of_functions(
    offsets: npt.NDArray[np.int64],
    time: npt.NDArray[np.int64],
    function: npt.NDArray[np.int32],
    functions: int,
    masters: npt.NDArray[np.uint8],
    last: int,
    running_offsets: npt.NDArray[np.int64],
    running_begin: npt.NDArray[np.int64],
    running_end: npt.NDArray[np.int64],
    wait_offsets: npt.NDArray[np.int64],
    wait_time: npt.NDArray[np.int64],
    waited: npt.NDArray[np.int64],
    fork_offsets: npt.NDArray[np.int64],
    fork_begin: npt.NDArray[np.int64],
    fork_end: npt.NDArray[np.int64],
    part_offsets: npt.NDArray[np.int64],
    part_begin: npt.NDArray[np.int64],
    part_end: npt.NDArray[np.int64],
    piece_begin: npt.NDArray[np.int64],
    piece_end: npt.NDArray[np.int64],
) -> tuple[tuple[npt.NDArray[Any], ...], tuple[npt.NDArray[np.int64], ...]]: ...
def state_times(
    *,
    offsets: npt.NDArray[np.int64],
    begin: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    state: npt.NDArray[np.int32],
    without: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
def in_state(
    *,
    offsets: npt.NDArray[np.int64],
    begin: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    state: npt.NDArray[np.int32],
    wanted: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...

class Readings:
    """Sorts what events of some types tell into tables."""

    def __init__(
        self,
        *,
        locations: int,
        events: int,
        low: npt.NDArray[np.uint32],
        high: npt.NDArray[np.uint32],
        table: npt.NDArray[np.uint32],
        tables: int,
    ) -> None: ...
    def feed(
        self,
        offsets: npt.NDArray[np.int64],
        time: npt.NDArray[np.int64],
        type: npt.NDArray[np.uint32],
        value: npt.NDArray[np.int64],
    ) -> None: ...
    def finish(
        self,
    ) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]: ...

def sum_inside(
    *,
    offsets: npt.NDArray[np.int64],
    time: npt.NDArray[np.int64],
    value: npt.NDArray[np.int64],
    within_offsets: npt.NDArray[np.int64],
    begin: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], int, float]: ...

class Calls(TypedDict):
    """The calls of all locations, and the `c` of them that tell something of themselves."""

    offsets: npt.NDArray[np.int64]
    entry: npt.NDArray[np.int64]
    exit: npt.NDArray[np.int64]
    name: npt.NDArray[np.int16]  # index into kinds, of which it can hold 32768
    kinds: list[tuple[int, int]]  # type and value, ascending
    call: npt.NDArray[np.int64]  # [c]
    arguments: list[npt.NDArray[np.int64]]  # [4][c]
    unclosed: int
    orphans: int

class CallPairer:
    """Pairs entries and exits of calls, and what calls tell of themselves."""

    def __init__(self, first: int, last: int, argument: int, end: int, events: int) -> None: ...
    def feed(
        self,
        offsets: npt.NDArray[np.int64],
        time: npt.NDArray[np.int64],
        type: npt.NDArray[np.uint32],
        value: npt.NDArray[np.int64],
    ) -> None: ...
    def finish(self) -> Calls: ...

def match_messages(
    *,
    offsets: npt.NDArray[np.int64],
    entry: npt.NDArray[np.int64],
    exit: npt.NDArray[np.int64],
    code: npt.NDArray[np.int16],
    action: npt.NDArray[np.uint8],
    process_of: npt.NDArray[np.int32],
    message_offsets: npt.NDArray[np.int64],
    receiver: npt.NDArray[np.int32],
    logical_send: npt.NDArray[np.int64],
    logical_receive: npt.NDArray[np.int64],
    physical_receive: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32], int]: ...
def match_partners(
    *,
    offsets: npt.NDArray[np.int64],
    entry: npt.NDArray[np.int64],
    exit: npt.NDArray[np.int64],
    code: npt.NDArray[np.int16],
    action: npt.NDArray[np.uint8],
    partner: npt.NDArray[np.int32],
    tag: npt.NDArray[np.int64],
    request: npt.NDArray[np.int32],
) -> tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
]: ...

class Collectives(TypedDict):
    """The collectives of a run; `C` of them on `D` communicators, called by `n` calls."""

    call: npt.NDArray[np.int32]  # [n]
    collective: npt.NDArray[np.int32]  # [n]
    number: npt.NDArray[np.int64]  # [D]
    callers: npt.NDArray[np.int32]  # [D]
    turns: npt.NDArray[np.int64]  # [D]
    kind: npt.NDArray[np.int8]  # [C], and all that follow
    root: npt.NDArray[np.int32]
    sent: npt.NDArray[np.int64]
    received: npt.NDArray[np.int64]
    root_sent: npt.NDArray[np.int64]
    uneven: npt.NDArray[np.uint8]
    entered: npt.NDArray[np.int64]
    left: npt.NDArray[np.int64]
    stranger: int
    different: tuple[int, int]

def match_collectives(
    *,
    offsets: npt.NDArray[np.int64],
    entry: npt.NDArray[np.int64],
    exit: npt.NDArray[np.int64],
    code: npt.NDArray[np.int16],
    action: npt.NDArray[np.uint8],
    kind: npt.NDArray[np.uint8],
    argument_call: npt.NDArray[np.int64],
    sent: npt.NDArray[np.int64],
    received: npt.NDArray[np.int64],
    communicator: npt.NDArray[np.int64],
    is_root: npt.NDArray[np.bool_],
    listed: npt.NDArray[np.int64],
    listed_offsets: npt.NDArray[np.int64],
    listed_member: npt.NDArray[np.int32],
) -> Collectives: ...

class Operations(TypedDict):
    """The operations of a run or a part of it, by process."""

    offsets: npt.NDArray[np.int64]
    kind: npt.NDArray[np.uint8]
    target: npt.NDArray[np.int32]
    burst: npt.NDArray[np.uint32] | npt.NDArray[np.float64]  # the former where all fit
    tail: npt.NDArray[np.float64]
    call: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    arriving: npt.NDArray[np.int32]
    cut: int
    without_record: tuple[int, int]

def operations(
    *,
    offsets: npt.NDArray[np.int64],
    entry: npt.NDArray[np.int64],
    exit: npt.NDArray[np.int64],
    code: npt.NDArray[np.int16],
    action: npt.NDArray[np.uint8],
    send: npt.NDArray[np.int32],
    post: npt.NDArray[np.int32],
    wait: npt.NDArray[np.int32],
    left: npt.NDArray[np.int64],
    request: npt.NDArray[np.int32],
    member_call: npt.NDArray[np.int32],
    member_collective: npt.NDArray[np.int32],
    root: npt.NDArray[np.int32],
    whole: bool,
    piece_begin: npt.NDArray[np.int64],
    piece_end: npt.NDArray[np.int64],
    piece_start: npt.NDArray[np.int64],
    disabled_offsets: npt.NDArray[np.int64],
    disabled_begin: npt.NDArray[np.int64],
    disabled_end: npt.NDArray[np.int64],
    begin: int,
    ends: npt.NDArray[np.int64],
) -> Operations: ...

LANES: int

class Costs:
    def __init__(
        self,
        cpu: npt.NDArray[np.float64],
        transfer: npt.NDArray[np.float64],
        rendezvous: npt.NDArray[np.uint8],
        send_overhead: npt.NDArray[np.float64],
        receive_before: npt.NDArray[np.float64],
        receive_after: npt.NDArray[np.float64],
        sender_waits_for_transfer: bool,
        collective_cost: npt.NDArray[np.float64],
        member_cost: npt.NDArray[np.float64],
        collective_rule: npt.NDArray[np.uint8],
        request_cost: npt.NDArray[np.float64],
        uneven_cost: npt.NDArray[np.float64],
    ) -> None: ...

class Carried:
    def __init__(
        self,
        algorithm: npt.NDArray[np.int32],
        algorithm_offsets: npt.NDArray[np.int64],
        part_pattern: npt.NDArray[np.uint8],
        part_segments: npt.NDArray[np.int32],
        part_charge: npt.NDArray[np.int64],
        root_rank: npt.NDArray[np.int32],
        group: npt.NDArray[np.int32],
        group_offsets: npt.NDArray[np.int64],
        group_process: npt.NDArray[np.int32],
        group_rank: npt.NDArray[np.int32],
        group_member: npt.NDArray[np.int32],
        node: npt.NDArray[np.int32],
        far: int,
    ) -> None: ...

class Replay:
    def __init__(
        self,
        offsets: npt.NDArray[np.int64],
        kind: npt.NDArray[np.uint8],
        target: npt.NDArray[np.int32],
        burst: npt.NDArray[np.float64] | npt.NDArray[np.uint32],
        tail: npt.NDArray[np.float64],
        message_class: npt.NDArray[np.int32],
        collective_class: npt.NDArray[np.int32],
        members: npt.NDArray[np.int32],
        root: npt.NDArray[np.int32],
        uneven_operation: npt.NDArray[np.int64],
    ) -> None: ...
    def run(
        self, costs: Costs, carried: Carried | None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]: ...
    def slopes(
        self, costs: Costs, carried: Carried | None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]: ...
    def spent(
        self,
        costs: Costs,
        carried: Carried | None,
        call: npt.NDArray[np.int32],
        call_name: npt.NDArray[np.int16],
        call_place: npt.NDArray[np.int32],
        names: int,
        places: int,
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]]: ...
    def moments(
        self, costs: Costs, carried: Carried | None
    ) -> tuple[
        npt.NDArray[np.float64],
        npt.NDArray[np.int64],
        npt.NDArray[np.float64],
        npt.NDArray[np.float64],
    ]: ...
    def path(
        self, costs: Costs, carried: Carried | None
    ) -> tuple[
        npt.NDArray[np.float64],
        npt.NDArray[np.int64],
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
        npt.NDArray[np.int64],
        npt.NDArray[np.uint8],
        npt.NDArray[np.int32],
        npt.NDArray[np.uint8],
        npt.NDArray[np.int32],
    ]: ...

def replay_contended(
    program: Replay,
    costs: Costs,
    carried: Carried | None,
    *,
    sender: npt.NDArray[np.int32],
    receiver: npt.NDArray[np.int32],
    busy: npt.NDArray[np.float64],
    bytes: npt.NDArray[np.float64],
    place: npt.NDArray[np.int32],
    fair: bool,
    output: int,
    input: int,
    within: int,
    buses: int,
    pair: npt.NDArray[np.int64],
    route_offsets: npt.NDArray[np.int64],
    route_link: npt.NDArray[np.int32],
    route_latency: npt.NDArray[np.float64],
    capacity: npt.NDArray[np.float64],
    capacity_within: float,
    moments: bool,
) -> tuple[
    npt.NDArray[np.float64],
    npt.NDArray[np.int64],
    npt.NDArray[np.float64],
    npt.NDArray[np.float64],
]: ...
def repetition(
    tokens: npt.NDArray[np.int32],
    alone: bool,
    shortest: bool,
) -> tuple[
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.int64],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
    npt.NDArray[np.int32],
]: ...
def align(
    one: npt.NDArray[np.int64],
    other: npt.NDArray[np.int64],
    worth: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...

class UntimedColumns(TypedDict):
    """What `P` processes compute and call, of formats without measured times."""

    offsets: npt.NDArray[np.int64]  # [P + 1], of the `n` calls
    time: npt.NDArray[np.float64]  # [n]: ns
    name: npt.NDArray[np.int16]  # [n]: index into `UNTIMED_CALLS`
    partner: npt.NDArray[np.int32]
    tag: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    request: npt.NDArray[np.int32]
    call: npt.NDArray[np.int64]  # [c]: the calls of collectives
    sent: npt.NDArray[np.int64]
    received: npt.NDArray[np.int64]
    communicator: npt.NDArray[np.int64]
    is_root: npt.NDArray[np.uint8]
    parts: dict[int, npt.NDArray[np.int64]]  # by call: bytes for each peer
    burst_offsets: npt.NDArray[np.int64]  # [P + 1]
    begin: npt.NDArray[np.float64]
    end: npt.NDArray[np.float64]
    ends: npt.NDArray[np.float64]  # [P]: ns that each computes

UNTIMED_CALLS: list[str]
"""Names of calls that formats without measured times can tell of."""
FIRST_COLLECTIVE: int
"""The first collective among them; all that follow are collectives."""

class GoalScanner:
    """Scans a schedule in GOAL."""

    def __init__(self) -> None: ...
    def feed(self, text: bytes | bytearray | memoryview) -> None: ...
    def finish(self) -> None: ...
    @property
    def held(self) -> int: ...
    def rank_of(self) -> npt.NDArray[np.int64]: ...
    def columns(self) -> UntimedColumns: ...

class SmpiRanks:
    """Counts the processes of a time-independent trace of SMPI."""

    def __init__(self) -> None: ...
    def feed(self, text: bytes | bytearray | memoryview) -> None: ...
    def finish(self) -> int: ...

class SmpiScanner:
    """Scans a time-independent trace of SMPI, all files of it."""

    def __init__(self, rate: float, count: int, sleep: float) -> None: ...
    def feed(self, text: bytes | bytearray | memoryview) -> None: ...
    def end_file(self) -> None: ...
    def finish(self) -> None: ...
    @property
    def tests(self) -> int: ...
    @property
    def tests_of_many(self) -> int: ...
    @property
    def matched(self) -> int: ...
    def columns(self) -> UntimedColumns: ...

class Actions:
    """What processes compute and call, added one after the other by a reader."""

    def __init__(self, count: int) -> None: ...
    def compute(self, process: int, length: float) -> bool: ...
    def message(
        self, process: int, name: str, partner: int, tag: int, size: int, opens: bool
    ) -> int: ...
    def collective(
        self,
        process: int,
        name: str,
        sent: int,
        received: int,
        is_root: bool,
        communicator: int,
        opens: bool,
    ) -> int: ...
    def wait(self, process: int, request: int) -> None: ...
    def columns(self) -> UntimedColumns: ...

def unpaired_messages(
    *,
    rank_of: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    side: npt.NDArray[np.int8],
    name: npt.NDArray[np.int16],
    partner: npt.NDArray[np.int32],
    tag: npt.NDArray[np.int64],
) -> tuple[int, int, int, int, int, int] | None: ...
def use_scratch(folder: str, budget: int) -> object: ...
def leave_scratch(before: object) -> None: ...
def scratch_lacks() -> tuple[int, int]: ...
def is_in_memory(folder: str) -> bool: ...
