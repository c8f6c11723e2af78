"""Numbers of events in Paraver traces, and names for traces without a ``.pcf`` file.

Nothing knows them but this folder, and that of archives (OTF2), which are read as these events.
They are those that Extrae writes (its merger's event encoding); where its labels contradict them
(it swaps the names of MPI_Win_start and MPI_Win_complete) the names here follow MPI.
"""

from __future__ import annotations

from collections.abc import Mapping

from popmodel.traces.calls import CallGroup
from popmodel.traces.codes import Event

NUMBERS: Mapping[Event, int] = {
    Event.POINT_TO_POINT: 50000001,
    Event.COLLECTIVE: 50000002,
    Event.OTHER: 50000003,
    Event.ONE_SIDED: 50000004,
    Event.IO: 50000005,
    Event.MISSES: 50000304,
    Event.MPI_FILE_BYTES: 50000110,
    Event.FILE_CALL: 40000004,
    Event.FILE_BYTES: 40000011,
    Event.BYTES_SENT: 50100001,
    Event.BYTES_RECEIVED: 50100002,
    Event.IS_ROOT: 50100003,
    Event.COMMUNICATOR: 50100004,
    Event.CALLER: 70000001,
    Event.CALLER_LINE: 80000001,
    Event.PARALLEL: 60000001,
    Event.WORK_SHARING: 60000002,
    Event.BARRIER: 60000005,
    Event.NAMED_CRITICAL: 60000006,
    Event.CRITICAL: 60000007,
    Event.SET_LOCK: 60000008,
    Event.OVERHEAD: 60000010,
    Event.JOIN: 60000016,
    Event.OUTLINED: 60000018,
    Event.OUTLINED_LINE: 60000118,
    Event.USER_REGION: 60000019,
    Event.TASKWAIT: 60000022,
    Event.TASK: 60000023,
    Event.NEW_TASK: 60000024,
    Event.TASKGROUP: 60000027,
    Event.ORDERED: 60000033,
    Event.INSTRUCTIONS: 42000050,
    Event.CYCLES: 42000059,
    Event.APPLICATION: 40000001,
    Event.FLUSH: 40000003,
    Event.TRACING: 40000012,
    # None of Extrae's:
    Event.LOCKS_TAKEN: 60000310,
    Event.LOCKS_WAITS: 60000311,
    Event.LOCKS_WAITED: 60000312,
    Event.LOCKS_HELD: 60000313,
    Event.CRITICALS_TAKEN: 60000320,
    Event.CRITICALS_WAITS: 60000321,
    Event.CRITICALS_WAITED: 60000322,
    Event.CRITICALS_HELD: 60000323,
    Event.ATOMICS_TAKEN: 60000330,
    Event.ATOMICS_WAITS: 60000331,
    Event.ATOMICS_WAITED: 60000332,
    Event.ATOMICS_HELD: 60000333,
    Event.LOST: 40009001,
    Event.CPUS: 40009002,
    Event.SHARING: 40009003,
    Event.USED: 40009004,
    Event.WAITED: 40009005,
    Event.DELAYED: 40009006,
    Event.WOKEN: 40009007,
    Event.LEFT_OUT: 40009101,
    Event.FILE_CALLS: 40009301,
    Event.CRITICAL_PATH: 40009201,
}
"""Type of each event that popmodel writes."""

MPI_TYPES: Mapping[int, CallGroup] = {
    NUMBERS[Event.POINT_TO_POINT]: CallGroup.POINT_TO_POINT,
    NUMBERS[Event.COLLECTIVE]: CallGroup.COLLECTIVE,
    NUMBERS[Event.OTHER]: CallGroup.OTHER,
    NUMBERS[Event.ONE_SIDED]: CallGroup.ONE_SIDED,
    NUMBERS[Event.IO]: CallGroup.IO,
}
"""Event types whose values are MPI calls, 0 being the exit of a call."""

_MPI = """
Send Recv Isend Irecv Wait Waitall Bcast Barrier Reduce Allreduce Alltoall Alltoallv Gather Gatherv
Scatter Scatterv Allgather Allgatherv Comm_rank Comm_size Comm_create Comm_dup Comm_split Comm_group
Comm_free Comm_remote_group Comm_remote_size Comm_test_inter Comm_compare Scan Init Finalize Bsend
Ssend Rsend Ibsend Issend Irsend Test Cancel Sendrecv Sendrecv_replace Cart_create Cart_shift
Cart_coords Cart_get Cart_map Cart_rank Cart_sub Cartdim_get Dims_create Graph_get Graph_map
Graph_create Graph_neighbors Graphdims_get Graph_neighbors_count Topo_test Waitany Waitsome Probe
Iprobe Win_create Win_free Put Get Accumulate Win_fence Win_start Win_complete Win_post Win_wait
Win_test Win_lock Win_unlock Pack Unpack Op_create Op_free Reduce_scatter Attr_delete Attr_get
Attr_put Group_difference Group_excl Group_free Group_incl Group_intersection Group_rank
Group_range_excl Group_range_incl Group_size Group_translate_ranks Group_union Group_compare
Intercomm_create Intercomm_merge Keyval_free Keyval_create Abort Error_class Errhandler_create
Errhandler_free Errhandler_get Error_string Errhandler_set Get_processor_name Initialized Wtick
Wtime Address Bsend_init Buffer_attach Buffer_detach Request_free Recv_init Send_init Get_count
Get_elements Pack_size Rsend_init Ssend_init Start Startall Testall Testany Test_cancelled Testsome
Type_commit Type_contiguous Type_extent Type_free Type_hindexed Type_hvector Type_indexed Type_lb
Type_size Type_struct Type_ub Type_vector File_open File_close File_read File_read_all File_write
File_write_all File_read_at File_read_at_all File_write_at File_write_at_all Comm_spawn
Comm_spawn_multiple Request_get_status Ireduce Iallreduce Ibarrier Ibcast Ialltoall Ialltoallv
Iallgather Iallgatherv Igather Igatherv Iscatter Iscatterv Ireduce_scatter Iscan
Reduce_scatter_block Ireduce_scatter_block Alltoallw Ialltoallw Get_accumulate Dist_graph_create
Neighbor_allgather Ineighbor_allgather Neighbor_allgatherv Ineighbor_allgatherv Neighbor_alltoall
Ineighbor_alltoall Neighbor_alltoallv Ineighbor_alltoallv Neighbor_alltoallw Ineighbor_alltoallw
Fetch_and_op Compare_and_swap Win_flush Win_flush_all Win_flush_local Win_flush_local_all Mprobe
Improbe Mrecv Imrecv
"""

MPI_CALLS: Mapping[int, str] = {
    value: f"MPI_{name}" for value, name in enumerate(_MPI.split(), start=1)
}
"""Name of each MPI call by the value of its event, whatever the type of the event."""

SENT_TO_ONE = tuple(
    f"MPI_{name}" for name in ("Alltoall", "Ialltoall", "Neighbor_alltoall", "Ineighbor_alltoall")
)
"""Calls of which the bytes sent to one peer are recorded, and those received from all."""

# Newer Extrae versions write the second number of each.
PARALLEL = (NUMBERS[Event.PARALLEL], 60002)
"""Event types of a parallel construct on the master."""
OUTLINED = (NUMBERS[Event.OUTLINED], 60012)
"""Event types of the outlined function of a region that a thread executes."""
LINE_OF: Mapping[int, int] = dict(zip(OUTLINED, (NUMBERS[Event.OUTLINED_LINE], 60013), strict=True))
"""Event type of the source line of an outlined function."""
BARRIERS = (NUMBERS[Event.BARRIER], 60004)
"""Event types of barriers; the second one is of all synchronisation."""
LOCKS = (60000006, 60000007, 60000008, 60000009)
"""Event types of critical sections and locks."""
USER_EVENTS = range(1, 30_000_000)
"""Event types that are left to users, but for the short numbers of OpenMP below."""
SAMPLES = range(30_000_000, 30_000_100)
"""Event types of samples: the function that is running, that which has called it, and so on."""
CONSTRUCTS: Mapping[int, str] = {1: "parallel do", 2: "parallel sections", 3: "parallel region"}
"""What the values of the parallel-construct event mean."""

OPENMP_TYPES: Mapping[int, str] = {
    60000001: "Parallel (OMP)",
    60000002: "Worksharing (OMP)",
    60000005: "OpenMP barrier",
    60000006: "OpenMP named-Lock",
    60000007: "OpenMP unnamed-Lock",
    60000008: "OpenMP set lock",
    60000009: "OpenMP unset lock",
    60000010: "OpenMP overhead",
    60000011: "OpenMP work",
    60000016: "OpenMP join",
    60000018: "Executed OpenMP parallel function",
    60000021: "OMP task creation",
    60000022: "OMP taskwait",
    60000023: "Executed OpenMP task function",
    60000024: "Instantiated OpenMP task function",
    60000025: "OMP taskgroup start",
    60000026: "OMP taskgroup end",
    60000027: "Within OMP taskgroup",
    60000028: "OMP taskloop",
    60000029: "OMP taskloop identifier",
    60000033: "OMP ordered section",
    60000: "OpenMP runtime call",
    60001: "OpenMP nesting level",
    60002: "OpenMP parallel",
    60003: "OpenMP worksharing",
    60004: "OpenMP synchronization",
    60005: "OpenMP lock status",
    60006: "OpenMP lock name",
    60007: "OpenMP ordered",
    60008: "OpenMP taskgroup",
    60009: "OpenMP tasking",
    60010: "OpenMP target",
    60011: "OpenMP function address",
    60012: "OpenMP outlined function",
    60013: "OpenMP outlined function, line",
}
"""Event types of OpenMP whose value tells what is open on a thread, 0 meaning nothing."""
SHORT_OPENMP = range(60000, 60100)
"""Short numbers that newer Extrae versions give to events of OpenMP."""

DEVICE_CALLS = (63000000, 63500000)
"""Event types of calls of threads to the runtime of CUDA and HIP."""
OPENCL_CALLS = range(64000001, 64099000)
"""Event types of the calls of OpenCL, one for each; 1 begins it."""
DEVICE_EVENTS = (
    range(63000001, 63500000),  # CUDA
    range(63500001, 64000000),  # HIP
    range(64100000, 64300000),  # OpenCL: accelerators, their kernels
)
"""Event types that streams have; threads that call the device's runtime have others as well."""
KERNELS, TRANSFERS, COLLECTIVES = (63000006, 63500006), (63000001, 63500001), (63000007,)
"""Event types of what a stream does where it has no states (nsys2prv)."""
COPIES = range(3, 7)
"""Values of transfers that are copies from device to device, from it, to it, and memset."""

COUNTERS: Mapping[Event, str] = {
    Event.INSTRUCTIONS: "PAPI_TOT_INS",
    Event.CYCLES: "PAPI_TOT_CYC",
}
"""Counters that the metrics use, by the names that PAPI gives them."""
COUNTER_RANGE = range(42000000, 43000000)
"""Event types of hardware counters: a value counts since the thread's previous reading."""

EVENT_TYPES: Mapping[int, str] = {
    **{type_: group.value for type_, group in MPI_TYPES.items()},
    **OPENMP_TYPES,
    **{NUMBERS[counter]: name for counter, name in COUNTERS.items()},
    **{
        NUMBERS[Event(first + offset)]: f"{text} {name}"
        for name, first in (
            ("locks", Event.LOCKS_TAKEN),
            ("critical sections", Event.CRITICALS_TAKEN),
            ("atomic operations", Event.ATOMICS_TAKEN),
        )
        for offset, text in enumerate(
            ("Taken since the last event:", "Waited for:", "ns waited for:", "ns holding:")
        )
    },
    NUMBERS[Event.APPLICATION]: "Application",
    NUMBERS[Event.FLUSH]: "Flushing traces",
    NUMBERS[Event.FILE_CALL]: "I/O call",
    NUMBERS[Event.FILE_BYTES]: "I/O size",
    NUMBERS[Event.MPI_FILE_BYTES]: "MPI-IO size",
    NUMBERS[Event.TRACING]: "Tracing",
    40000018: "Tracing mode",
    NUMBERS[Event.BYTES_SENT]: "Send size in MPI global operation",
    NUMBERS[Event.BYTES_RECEIVED]: "Receive size in MPI global operation",
    NUMBERS[Event.IS_ROOT]: "Root in MPI global operation",
    NUMBERS[Event.COMMUNICATOR]: "Communicator in MPI global operation",
}
"""Usual names of event types."""
