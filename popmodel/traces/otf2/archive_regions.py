"""What the regions and metrics of an archive are: events, states and labels of a Paraver trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from popmodel.traces import codes
from popmodel.traces.calls import FOUND_NOTHING, CallGroup
from popmodel.traces.codes import FILE_CALLS, Event
from popmodel.traces.paraver.labels import Labels, legend
from popmodel.traces.paraver.numbers import (
    COUNTER_RANGE,
    DEVICE_CALLS,
    EVENT_TYPES,
    MPI_CALLS,
    MPI_TYPES,
    NUMBERS,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Numbers of OTF2.
_FUNCTION, _WRAPPER, _LOOP, _PARALLEL = 1, 2, 3, 5
(_CRITICAL, _ATOMIC, _BARRIER, _IMPLICIT_BARRIER) = (12, 14, 15, 16)
(_FLUSH, _ORDERED, _TASK, _TASK_CREATE, _TASK_WAIT) = (17, 18, 20, 21, 22)
(_FILE_IO, _ARTIFICIAL, _THREAD_CREATE, _THREAD_WAIT) = (27, 31, 32, 33)
(_TASK_UNTIED, _FILE_METADATA) = (34, 38)
(_UNKNOWN, _USER, _COMPILER, _OPENMP, _MPI) = (0, 1, 2, 3, 4)
_MEASUREMENT_SYSTEM, _PTHREAD, _SAMPLING, _KOKKOS = 6, 7, 21, 24
_HIP = 23
_DEVICES = frozenset({5, 8, 18, 19, _HIP, 25})  # CUDA, HMPP, OpenACC, OpenCL, OpenMP target
_OTHER_COMMUNICATION = frozenset({11, 12, 13})  # GASPI, UPC, SHMEM
_TASKS = frozenset({_TASK, _TASK_UNTIED})
_ROLES_BY_NAME = {
    "OpenMP_Parallel_Region": _PARALLEL,
    "OpenMP_Implicit_Task": _PARALLEL,  # what each thread of a team does
    "OpenMP_Sync_Region_Task": _TASK_WAIT,
    "OpenMP_Sync_Region": _BARRIER,
    "OpenMP_Mutex_Waiting": _ATOMIC,
    "OpenMP_Task": _LOOP,
    "OpenMP_Thread_Type_ompt_thread_worker": _THREAD_CREATE,  # all its time, mostly outside teams
}
"""Roles of regions of OpenMP by TAU, to which all are functions; by the begins of their names."""

# Kinds and traits of the kernel.
PLAIN, FUNCTION, MPI, PARALLEL, TASK = range(5)
COLLECTIVE, BY_ENTRY, TEST, USER, EXPLICIT = 1, 2, 4, 8, 16
_INHERITED = -1

_FIRST_OWN = 50_000
"""Value of the first MPI call that has no number elsewhere."""
_FIRST_COUNTER = COUNTER_RANGE.stop - 100_000
"""Type of the first counter that has no number elsewhere."""
_PAPI_NAMES = {"instructions": "PAPI_TOT_INS", "cycles": "PAPI_TOT_CYC"}
"""What the system's performance counters (perf) call those of PAPI."""
_FIRST_OWN_FILE_CALL = 1000
"""Before the value of the first call for files that has no number elsewhere."""
_FILE_OPERATIONS = ("read", "write", "fsync")
"""Calls that operations on files are taken as, by their mode, where no region says which it is."""
UNNAMED_REGION = "parallel region"

_CALL = re.compile(r"P?(MPI_\w*[^\W_])", re.IGNORECASE)
_ARGUMENTS = re.compile(r"_{0,2}\s*(\(.*\))?\s*", re.DOTALL)  # behind the name of a call
_FOREIGN = frozenset({_UNKNOWN, _USER, _COMPILER})
"""Paradigms of calls of MPI by writers that do not tell them (EZTrace, TAU, ROCm's profiler)."""
_COLLECTIVES = re.compile(
    r"MPI_I?(barrier|bcast|gatherv?|scatterv?|allgatherv?|alltoall[vw]?|reduce|allreduce|"
    r"reduce_scatter|reduce_scatter_block|scan|exscan|neighbor_allgatherv?|"
    r"neighbor_alltoall[vw]?)",
    re.IGNORECASE,
)
_POINT_TO_POINT = re.compile(
    r"MPI_(I?[bsr]?send|I?m?recv|I?sendrecv(_replace)?|[bsr]?send_init|recv_init|start(all)?|"
    r"(wait|test)(all|any|some)?|I?m?probe|cancel|request_free|test_cancelled)",
    re.IGNORECASE,
)
_ONE_SIDED = re.compile(
    r"MPI_(win_.*|r?(put|get|accumulate|get_accumulate)|fetch_and_op|compare_and_swap)",
    re.IGNORECASE,
)
_BY_ENTRY = re.compile(r"MPI_(I?sendrecv(_replace)?|start(all)?|I?neighbor_\w+)", re.IGNORECASE)
_TESTS = re.compile(r"MPI_(test(all|any|some)?|I?m?probe)", re.IGNORECASE)
_OWN_PARALLEL = re.compile(r"!\$omp parallel @(\D.*(?<!\d))")  # a function, not a line of a file
_PLACE = re.compile(r"OpenMP_\w+ (.*?)\s*\[\{(.*)\} \{(\d+),.*\]\s*")  # as TAU names functions
_LOCKS = re.compile(r"omp_set_(nest_)?lock|pthread_mutex_lock", re.IGNORECASE)
_STATES_OF_CALLS = (
    (re.compile(r"MPI_[bsr]?send", re.IGNORECASE), codes.SENDING),
    (re.compile(r"MPI_i[bsr]?send", re.IGNORECASE), codes.SENDING_ON),
    (re.compile(r"MPI_m?recv", re.IGNORECASE), codes.WAITING),
    (re.compile(r"MPI_im?recv", re.IGNORECASE), codes.RECEIVING_ON),
    (re.compile(r"MPI_sendrecv(_replace)?", re.IGNORECASE), codes.BOTH_WAYS),
    (re.compile(r"MPI_(wait|test)(all|any|some)?", re.IGNORECASE), codes.COMPLETING),
    (re.compile(r"MPI_I?m?probe", re.IGNORECASE), codes.LOOKING),
)
_STATES_OF_GROUPS = {
    CallGroup.COLLECTIVE: codes.TOGETHER,
    CallGroup.ONE_SIDED: codes.MOVING,
    CallGroup.IO: codes.INPUT_OUTPUT,
}
NO_STATE = -2
"""Of a thread of which nothing is told."""
STATE_NAMES = {NO_STATE: "No state", codes.MOVING: "One-sided communication", **codes.STATES}
"""Names of regions that tell the states of threads."""
_STATE_NAMES = {name: state for state, name in STATE_NAMES.items()}
_TYPES = {group: type_ for type_, group in MPI_TYPES.items()}
_OTHER_CALLS = re.compile(
    r"MPI_(init|session|comm|intercomm|group|type|info|cart|graph|dist|get|query|is)_\w+",
    re.IGNORECASE,
)
_USUAL = {name.lower(): name for name in MPI_CALLS.values()}
_VALUES = {name: value for value, name in MPI_CALLS.items()}
_FILE_CALLS = {name: value for value, name in FILE_CALLS.items()}
_NO_REGIONS = (0xFFFFFFFF,) * len(_FILE_OPERATIONS)


class RegionPlan(NamedTuple):
    """What each region is, in the order of their definitions."""

    columns: dict[str, Any]  # As the kernel takes them
    names: Sequence[str]
    labels: Labels


def plan_regions(regions: Sequence[tuple[Any, ...]], strings: Mapping[int, str]) -> RegionPlan:
    """Say what regions are, by paradigm and role."""
    rows, names = [], []
    values: dict[int, dict[int, str]] = {type_: {0: "Outside MPI"} for type_ in MPI_TYPES}
    calls: dict[str, int] = {}
    told = any(region[3] == _MPI for region in regions)
    for place, (_, text, role, paradigm, file, line) in enumerate(regions, 1):
        name = strings.get(text, "") or f"region {place}"
        names.append(name)
        if call := _call_of(name, paradigm, told=told):
            rows.append(_mpi(call, calls, values))
            continue
        rows.append(_row(name, role, paradigm, place))
        where = f" ({strings[file]}:{line})" if strings.get(file) and line else ""
        if rows[-1][3] in DEVICE_CALLS or rows[-1][3] == NUMBERS[Event.FILE_CALL]:
            values.setdefault(rows[-1][3], {})[rows[-1][4]] = name
        elif rows[-1][0] == PARALLEL:
            named, placed = _OWN_PARALLEL.fullmatch(name), _PLACE.fullmatch(name)
            label = named[1] if named else name if "@" in name else name + where
            label = f"{placed[1]} ({placed[2]}:{placed[3]})" if placed else label
            values.setdefault(NUMBERS[Event.OUTLINED], {})[place] = label
        elif rows[-1][0] == FUNCTION:
            values.setdefault(NUMBERS[Event.USER_REGION], {})[place] = name
            values.setdefault(NUMBERS[Event.CALLER], {})[place] = name
    for name in _FILE_OPERATIONS:  # the kernel knows them by their place
        names.append(name)
        rows.append(_row(name, _FILE_IO, 0, len(names)))
        values.setdefault(NUMBERS[Event.FILE_CALL], {})[rows[-1][4]] = name
    kind, traits, state, type_, value, missed = zip(*rows, strict=True)
    outlined = values.setdefault(NUMBERS[Event.OUTLINED], {})
    outlined[len(rows) + 1] = UNNAMED_REGION
    known = legend({}, counters=False)
    return RegionPlan(
        {
            "regions": np.array([*(r[0] for r in regions), *_NO_REGIONS], np.uint32),
            "kind": np.array(kind, np.uint8),
            "traits": np.array(traits, np.uint8),
            "state": np.array(state, np.int32),
            "type": np.array(type_, np.uint32),
            "value": np.array(value, np.int64),
            "missed": np.array(missed, np.int64),
        },
        names,
        Labels(
            codes.STATES,
            dict(EVENT_TYPES),
            {**known.event_values, **{type_: named for type_, named in values.items() if named}},
        ),
    )


def _call_of(name: str, paradigm: int, *, told: bool) -> str | None:
    """The call of MPI that a region is; `told`: by their paradigm, else by names that MPI has."""
    call = _CALL.match(name)
    if call is None or not _ARGUMENTS.fullmatch(name, call.end()):
        return None  # such as a function of the program, with its place, by TAU
    usual = _USUAL.get(call[1].lower())
    if paradigm == _MPI:
        return usual or call[1]
    if told or paradigm not in _FOREIGN:
        return None
    other = group_of(call[1]) is CallGroup.OTHER and not _OTHER_CALLS.fullmatch(call[1])
    return usual or (None if other else call[1])


_Row = tuple[int, int, int, int, int, int]


def _row(name: str, role: int, paradigm: int, place: int) -> _Row:
    """Kind, traits, state, type and value of a region that is no call of MPI."""

    def plain(state: int = _INHERITED, event: Event | None = None, value: int = 1) -> _Row:
        return PLAIN, 0, state, NUMBERS[event] if event else 0, value, 0

    if paradigm == _OPENMP and role == _FUNCTION:
        starts = (other for start, other in _ROLES_BY_NAME.items() if name.startswith(start))
        role = next(starts, role)
    if role == _ARTIFICIAL or paradigm == _MEASUREMENT_SYSTEM:
        if "BUFFER FLUSH" in name:
            return plain(codes.INPUT_OUTPUT)
        if name == "MEASUREMENT OFF":
            return plain(codes.TRACING_DISABLED)
        told = _STATE_NAMES.get(name)
        return plain() if told is None else (PLAIN, EXPLICIT, told, 0, 0, 0)
    if paradigm in _DEVICES:
        return PLAIN, 0, codes.OTHER, DEVICE_CALLS[paradigm == _HIP], place, 0
    if paradigm in _OTHER_COMMUNICATION:
        return plain(codes.OTHER)
    if paradigm == _MPI:
        return plain()
    if role in (_FILE_IO, _FILE_METADATA):
        own = _FIRST_OWN_FILE_CALL + place
        return plain(codes.INPUT_OUTPUT, Event.FILE_CALL, _FILE_CALLS.get(name, own))
    if paradigm == _PTHREAD or _LOCKS.fullmatch(name):
        if _LOCKS.fullmatch(name):
            return plain(codes.SYNCHRONISING, Event.SET_LOCK, 3)
        waits = role in (_BARRIER, _THREAD_WAIT)
        return plain(codes.SYNCHRONISING if waits else _INHERITED)
    if role == _PARALLEL:
        return PARALLEL, 0, codes.RUNNING, 0, place, 0
    if role in _TASKS:
        return TASK, 0, codes.RUNNING, 0, 0, 0
    if role in _SYNCHRONISATION:
        return plain(*_SYNCHRONISATION[role])
    if paradigm in (_USER, _COMPILER, _SAMPLING, _KOKKOS, _UNKNOWN) and role not in (
        _THREAD_CREATE,
    ):
        traits = USER if paradigm in (_USER, _KOKKOS) else 0
        return FUNCTION, traits, _INHERITED, 0, place, 0
    if paradigm == _OPENMP and role not in (_FUNCTION, _WRAPPER):
        return plain(codes.RUNNING)
    return plain()


_SYNCHRONISATION: Mapping[int, tuple[Any, ...]] = {
    _BARRIER: (codes.SYNCHRONISING, Event.BARRIER),
    _IMPLICIT_BARRIER: (codes.SYNCHRONISING, Event.BARRIER),
    _CRITICAL: (codes.SYNCHRONISING, Event.CRITICAL, 3),
    _ORDERED: (codes.SYNCHRONISING, Event.ORDERED),
    _TASK_WAIT: (codes.SYNCHRONISING, Event.TASKWAIT),
    _ATOMIC: (codes.SYNCHRONISING,),
    _FLUSH: (codes.SYNCHRONISING,),
    _TASK_CREATE: (codes.SCHEDULING,),
    _THREAD_CREATE: (codes.SCHEDULING,),
}
"""State, event and its value of roles in which threads wait."""


def group_of(name: str) -> CallGroup:
    """What a call of MPI is about."""
    for pattern, group in (
        (_COLLECTIVES, CallGroup.COLLECTIVE),
        (_POINT_TO_POINT, CallGroup.POINT_TO_POINT),
        (_ONE_SIDED, CallGroup.ONE_SIDED),
    ):
        if pattern.fullmatch(name):
            return group
    return CallGroup.IO if name.lower().startswith("mpi_file_") else CallGroup.OTHER


def _mpi(name: str, calls: dict[str, int], values: dict[int, dict[int, str]]) -> _Row:
    group = group_of(name)
    type_ = _TYPES[group]

    def value_of(name: str) -> int:
        if name not in calls:
            free = _FIRST_OWN + len(calls)
            calls[name] = _VALUES.get(name, free)
            values[type_][calls[name]] = name
        return calls[name]

    state = _STATES_OF_GROUPS.get(group, codes.OTHER)
    for pattern, other in _STATES_OF_CALLS:
        if pattern.fullmatch(name):
            state = other
    traits = COLLECTIVE if group is CallGroup.COLLECTIVE else 0
    traits |= BY_ENTRY if _BY_ENTRY.fullmatch(name) else 0
    value, missed = value_of(name), 0
    if _TESTS.fullmatch(name) and "probe" not in name.lower():
        traits |= TEST
        missed = value_of(name + FOUND_NOTHING)
    return MPI, traits, state, type_, value, missed


# Metrics.


_STRICT, _SYNCHRONOUS = 0, 1
_VALUE_ABSOLUTE, _VALUE_RELATIVE, _VALUE_MASK = 1, 2, 15
_SCOPE_LOCATION = 0
Counters = dict[int, list[tuple[int, bool, float]]]


def plan_metrics(
    definitions: Mapping[str, Sequence[tuple[Any, ...]]],
    strings: Mapping[int, str],
    labels: Labels,
) -> tuple[Counters, Labels, int]:
    """Type, whether it is relative, and scale of what each metric counts on the thread itself.

    And labels with the names of counters, and how many metrics are of more than a thread.
    """
    types = dict(labels.event_types)
    usual = legend({}, counters=True).event_types
    numbers = {name: type_ for type_, name in usual.items()}
    members = {}
    for self, text, _, mode, _, base, exponent in definitions.get("members", ()):
        name = strings.get(text, "") or f"metric {self}"
        name = _PAPI_NAMES.get(name.lower().removeprefix("perf::"), name)
        kind = mode & _VALUE_MASK
        if kind == _VALUE_ABSOLUTE:
            members[self] = (0, False, 1.0)  # a level, not a count
            continue
        type_ = numbers.setdefault(name, _FIRST_COUNTER + len(numbers))
        types[type_] = name
        scale = float((10 if base else 2) ** min(max(exponent, -300), 300))
        members[self] = (type_, kind == _VALUE_RELATIVE, scale)
    found: Counters = {
        self: [members.get(member, (0, False, 1.0)) for member in of]
        for self, occurrence, of in definitions.get("metrics", ())
        if occurrence in (_STRICT, _SYNCHRONOUS)
    }
    wider = 0
    for self, of, recorder, scope, where in definitions.get("instances", ()):
        if scope == _SCOPE_LOCATION and recorder == where and of in found:
            found[self] = found[of]
        else:
            wider += 1
    return found, Labels(labels.states, types, labels.event_values), wider
