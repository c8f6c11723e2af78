"""Built-in names for traces without a ``.pcf`` file, and the event types that popmodel reads.

The numbers are those that Extrae writes (its merger's event encoding); where its labels contradict
them (it swaps the names of MPI_Win_start and MPI_Win_complete) the names here follow MPI.
"""

from __future__ import annotations

from collections.abc import Mapping

MPI_TYPES: Mapping[int, str] = {
    50000001: "MPI point to point",
    50000002: "MPI collective",
    50000003: "MPI other",
    50000004: "MPI one-sided",
    50000005: "MPI I/O",
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
Reduce_scatter_block Ireduce_scatter_block Alltoallw Ialltoallw Get_accumulate
"""

MPI_CALLS: Mapping[int, str] = {
    value: f"MPI_{name}" for value, name in enumerate(_MPI.split(), start=1)
}
"""Name of each MPI call by the value of its event, whatever the type of the event."""

STATES: Mapping[int, str] = dict(
    enumerate(
        (
            "Idle",
            "Running",
            "Not created",
            "Waiting a message",
            "Blocking Send",
            "Synchronization",
            "Test/Probe",
            "Scheduling and Fork/Join",
            "Wait/WaitAll",
            "Blocked",
            "Immediate Send",
            "Immediate Receive",
            "I/O",
            "Group Communication",
            "Tracing Disabled",
            "Others",
            "Send Receive",
        )
    )
)

RUNNING = 1
"""State of a thread in user code."""
SYNCHRONISING = 5
"""State of a thread in a barrier, critical section or lock."""
TRACING_DISABLED = 14
"""State of a thread of which nothing is recorded."""

APPLICATION = 40000001
"""Event type whose value 0 ends a process."""
BYTES_SENT, BYTES_RECEIVED, IS_ROOT, COMMUNICATOR = 50100001, 50100002, 50100003, 50100004
"""Event types of what a collective records at its entry."""

CALLER, CALLER_LINE = 70000001, 80000001
"""Event types of the function that makes an MPI call, and of the line of the call, at its entry."""

# Newer Extrae versions write the second number of each.
PARALLEL = (60000001, 60002)
"""Event types of a parallel construct on the master."""
OUTLINED = (60000018, 60012)
"""Event types of the outlined function of a region that a thread executes."""
SYNCHRONISATION = (60000005, 60000006, 60000007, 60000008, 60000009, 60004)
"""Event types of barriers, critical sections and locks."""
LOCKS = (60000006, 60000007, 60000008, 60000009)
"""Event types of critical sections and locks."""
SUMMED_LOCKS: Mapping[str, int] = {
    "locks": 60000310,
    "critical sections": 60000320,
    "atomic operations": 60000330,
}
"""Event types of popmodel's own about locks that have no events of their own: how often they were
taken since the event before, with 1 added how often the thread had to wait, with 2 the ns that it
waited in its running state, with 3 the ns that they were held."""
WAITS_OF_LOCKS, WAITED_FOR_LOCKS, LOCKS_HELD = 1, 2, 3
USER_FUNCTION = 60000019
"""Event type of the regions and functions that a user has marked."""
USER_EVENTS = range(1, 30_000_000)
"""Event types that are left to users, but for the short numbers of OpenMP below."""
LINE_OF: Mapping[int, int] = {60000018: 60000118, 60012: 60013}
"""Event type of the source line of an outlined function."""
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

INSTRUCTIONS, CYCLES = 42000050, 42000059
"""Event types of the two counters that the metrics use."""
COUNTERS: Mapping[int, str] = {INSTRUCTIONS: "PAPI_TOT_INS", CYCLES: "PAPI_TOT_CYC"}
COUNTER_RANGE = range(42000000, 43000000)
"""Event types of hardware counters: a value counts since the thread's previous reading."""

EVENT_TYPES: Mapping[int, str] = {
    **MPI_TYPES,
    **OPENMP_TYPES,
    **COUNTERS,
    **{
        type_ + offset: f"{text} {name}"
        for name, type_ in SUMMED_LOCKS.items()
        for offset, text in enumerate(
            ("Taken since the last event:", "Waited for:", "ns waited for:", "ns holding:")
        )
    },
    APPLICATION: "Application",
    40000003: "Flushing traces",
    40000012: "Tracing",
    40000018: "Tracing mode",
    BYTES_SENT: "Send size in MPI global operation",
    BYTES_RECEIVED: "Receive size in MPI global operation",
    IS_ROOT: "Root in MPI global operation",
    COMMUNICATOR: "Communicator in MPI global operation",
}


def is_counter(type_: int) -> bool:
    """Whether an event type is a hardware counter."""
    return type_ in COUNTER_RANGE
