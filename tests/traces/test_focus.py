"""The window of analysis: from the end of MPI_Init to the start of MPI_Finalize."""

from pathlib import Path

import pytest

from popmodel.traces import read
from popmodel.traces.paraver.labels import Labels
from popmodel.traces.paraver.writer import TraceWriter
from popmodel.traces.recorded_run import Trace
from popmodel.traces.selection import TraceFocus, TracePart, focused, program_of

OTHER = 50000003
INIT, FINALIZE, SESSION_INIT, SESSION_FINALIZE = 31, 32, 901, 902
SESSIONS = Labels(
    {},
    {OTHER: "MPI other"},
    {OTHER: {SESSION_INIT: "MPI_Session_init", SESSION_FINALIZE: "MPI_Session_finalize"}},
)
S = 10**9

Call = tuple[int, int, int, int]
"""Process, value, entry and exit in s."""


def run(
    folder: Path,
    *calls: Call | tuple[int, int, int, int, int],
    processes: int = 2,
    threads: int = 1,
    duration: int = 10,
    labels: Labels | None = None,
) -> Trace:
    """A run whose threads run all the time; a fifth number of a call is its thread."""
    writer = TraceWriter([threads] * processes, duration=duration * S, labels=labels)
    for process in range(processes):
        writer.state(process, 0, 0, duration * S, 1)
    for process, value, entry, exit_, *thread in calls:
        where = (process, *(thread or (0,)))
        writer.event(*where, entry * S, [(OTHER, value)])
        if exit_ >= 0:
            writer.event(*where, exit_ * S, [(OTHER, 0)])
    writer.write(folder / "x.prv")
    return read(folder / "x.prv")


def limits(focus: TraceFocus) -> tuple[float, float, float, float]:
    """Begin, end, and what is left out before and after, s."""
    return focus.begin / S, focus.end / S, focus.before / S, focus.after / S


def test_from_the_last_init_to_the_first_finalize(tmp_path: Path) -> None:
    trace = run(
        tmp_path, (0, INIT, 0, 2), (1, INIT, 1, 3), (0, FINALIZE, 9, 10), (1, FINALIZE, 8, 10)
    )
    found = program_of(trace)
    assert limits(found) == (3, 8, 3, 2)
    assert found.why == "MPI_Init to MPI_Finalize"
    assert found.caveats[0] == (
        "analysed 5 s of 10 s: MPI_Init to MPI_Finalize (left out: 3 s before, 2 s after; "
        "--from-start includes them)"
    )
    part, same = focused(trace)
    assert same == found
    assert (part.begin, part.end, part.whole is trace) == (3 * S, 8 * S, True)


def test_long_runs_are_written_without_exponents(tmp_path: Path) -> None:
    trace = run(tmp_path, (0, INIT, 0, 3), processes=1, duration=36_000)
    assert program_of(trace).caveats[0].startswith("analysed 35997 s of 36000 s: ")


def test_the_whole_run_when_asked_for(tmp_path: Path) -> None:
    trace = run(tmp_path, (0, INIT, 0, 2), (0, FINALIZE, 9, 10), processes=1)
    part, focus = focused(trace, part=TracePart(from_start=True))
    assert part is trace
    assert limits(focus) == (0, 10, 0, 0)
    assert focus.caveats == (
        "the whole run is analysed, including 2 s up to the end of MPI_Init and 1 s from "
        "MPI_Finalize on",
    )


def test_a_run_without_mpi_is_taken_whole_and_nothing_is_said(tmp_path: Path) -> None:
    trace = run(tmp_path)
    part, focus = focused(trace)
    assert part is trace
    assert limits(focus) == (0, 10, 0, 0)
    assert focus.caveats == ()


def test_a_window_that_was_given_is_kept(tmp_path: Path) -> None:
    whole = run(tmp_path, (0, INIT, 0, 2), (0, FINALIZE, 9, 10), processes=1)
    window = whole.window(1 * S, 10 * S)
    part, focus = focused(window)
    assert part is window
    assert limits(focus) == (1, 10, 0, 0)


def test_tracing_that_began_after_init(tmp_path: Path) -> None:
    found = program_of(run(tmp_path, (0, FINALIZE, 9, 10), (1, FINALIZE, 9, 10)))
    assert limits(found) == (0, 9, 0, 1)
    assert found.why == "start of the trace (no MPI_Init) to MPI_Finalize"


def test_a_run_that_crashed(tmp_path: Path) -> None:
    found = program_of(run(tmp_path, (0, INIT, 0, 2), (1, INIT, 0, 2)))
    assert limits(found) == (2, 10, 2, 0)
    assert found.why == "MPI_Init to the end of the trace (no MPI_Finalize)"


def test_a_rank_without_record_follows_the_others_and_is_named(tmp_path: Path) -> None:
    found = program_of(run(tmp_path, (0, INIT, 0, 2), (1, FINALIZE, 9, 10)))
    assert limits(found) == (2, 9, 2, 1)
    assert found.caveats[1:] == (
        "1 process has no MPI_Init record (first: rank 1): the others decide what is analysed",
        "1 process has no MPI_Finalize record (first: rank 0): the others decide what is analysed",
    )


def test_ranks_far_apart_are_named(tmp_path: Path) -> None:
    found = program_of(
        run(tmp_path, (0, INIT, 0, 1), (1, INIT, 0, 3), (0, FINALIZE, 9, 10), (1, FINALIZE, 6, 10))
    )
    assert found.caveats[1:] == (
        "ranks leave MPI_Init up to 2 s apart (rank 0 first, rank 1 last): what early ranks do "
        "meanwhile is left out",
        "ranks reach MPI_Finalize up to 3 s apart (rank 1 first, rank 0 last): this imbalance is "
        "left out, the analysis ends with the first",
    )


def test_an_init_after_a_finalize_leaves_no_window(tmp_path: Path) -> None:
    trace = run(
        tmp_path, (0, INIT, 0, 1), (0, FINALIZE, 2, 3), (1, INIT, 4, 5), (1, FINALIZE, 8, 9)
    )
    part, focus = focused(trace)
    assert part is trace
    assert limits(focus) == (0, 10, 0, 0)
    assert focus.caveats == (
        "the whole run is analysed: MPI_Init ends at 5 s (rank 1), MPI_Finalize begins at 2 s "
        "(rank 0)",
    )


@pytest.mark.parametrize("call", [(0, INIT, 2, -1), (0, FINALIZE, 0, 10)])
def test_nothing_but_the_start_or_the_end_is_taken_whole(tmp_path: Path, call: Call) -> None:
    part, focus = focused(run(tmp_path, call, processes=1))
    assert part.whole is None
    assert focus.caveats == (
        "the whole run is analysed: nothing lies between MPI_Init and MPI_Finalize",
    )


def test_a_window_in_which_nothing_is_recorded_is_not_taken(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=10 * S)
    writer.state(0, 0, 0, 2 * S, 1)
    writer.state(0, 0, 2 * S, 10 * S, 14)
    for value, entry in ((INIT, 1), (FINALIZE, 9)):
        writer.event(0, 0, entry * S, [(OTHER, value)])
        writer.event(0, 0, (entry + 1) * S, [(OTHER, 0)])
    writer.write(tmp_path / "x.prv")
    part, focus = focused(read(tmp_path / "x.prv"))
    assert part.whole is None
    assert focus.caveats == (
        "the whole run is analysed: no states from MPI_Init to MPI_Finalize (2 s to 9 s)",
    )


def test_calls_of_a_worker_thread_count(tmp_path: Path) -> None:
    trace = run(tmp_path, (0, INIT, 0, 2, 1), (0, FINALIZE, 9, 10, 1), processes=1, threads=2)
    assert limits(program_of(trace)) == (2, 9, 2, 1)


def test_the_first_session_begins_and_the_last_ends(tmp_path: Path) -> None:
    trace = run(
        tmp_path,
        (0, SESSION_INIT, 0, 1),
        (0, SESSION_INIT, 2, 3),
        (0, SESSION_FINALIZE, 6, 7),
        (0, SESSION_FINALIZE, 8, 9),
        processes=1,
        labels=SESSIONS,
    )
    assert limits(program_of(trace)) == (1, 8, 1, 2)


def test_other_events_inside_init_do_not_end_it(tmp_path: Path) -> None:
    writer = TraceWriter([1], duration=10 * S)
    writer.state(0, 0, 0, 10 * S, 1)
    writer.event(0, 0, 0, [(OTHER, INIT)])
    for time in range(1, 1000):
        writer.event(0, 0, time, [(42000050, 7)])
    writer.event(0, 0, 2 * S, [(OTHER, 0)])
    writer.write(tmp_path / "x.prv")
    assert program_of(read(tmp_path / "x.prv")).begin == 2 * S


def test_only_the_chosen_application_counts(tmp_path: Path) -> None:
    lines = [
        f"#Paraver (01/01/2030 at 00:00):{10 * S}_ns:1(2):2:1(1:1),0:1(1:1),0",
        f"1:1:1:1:1:0:{10 * S}:1",
        f"1:2:2:1:1:0:{10 * S}:1",
    ]
    for application, (init, finalize) in ((1, (2, 9)), (2, (4, 5))):
        where = f"{application}:{application}:1:1"
        lines += [
            f"2:{where}:{time * S}:{OTHER}:{value}"
            for time, value in ((1, INIT), (init, 0), (finalize, FINALIZE), (10, 0))
        ]
    head, body = lines[:1], sorted(lines[1:], key=lambda line: int(line.split(":")[5]))
    (tmp_path / "x.prv").write_text("\n".join([*head, *body]) + "\n")
    first, second = (program_of(read(tmp_path / "x.prv", application=number)) for number in (1, 2))
    assert (limits(first)[:2], limits(second)[:2]) == ((2, 9), (4, 5))
