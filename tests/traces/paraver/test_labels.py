"""Names from the files beside a trace, and without them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.traces import read
from popmodel.traces.paraver.labels import Labels, beside, parse_pcf, parse_row
from popmodel.traces.paraver.numbers import MPI_CALLS

DATA = Path(__file__).parents[2] / "data"

PCF = """DEFAULT_OPTIONS

LEVEL               THREAD

STATES
0    Idle
1    Running

STATES_COLOR
0    {117,195,255}

EVENT_TYPE
9   50000001    MPI Point-to-point
9   50000003    MPI Other
VALUES
1   MPI_Send
0   Outside MPI


EVENT_TYPE
7  42000050 PAPI_TOT_INS [Instr completed]


GRADIENT_COLOR
0    {0,255,2}
"""


def test_a_pcf_file() -> None:
    labels = parse_pcf(PCF)
    assert labels.states == {0: "Idle", 1: "Running"}
    assert labels.event_types == {
        50000001: "MPI Point-to-point",
        50000003: "MPI Other",
        42000050: "PAPI_TOT_INS [Instr completed]",
    }
    assert labels.event_values == {
        type_: {1: "MPI_Send", 0: "Outside MPI"} for type_ in (50000001, 50000003)
    }
    assert parse_pcf(PCF.replace("\n", "\r\n")) == labels


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    parse_pcf(text)
    parse_row(text)
    parse_pcf("EVENT_TYPE\n" + text)
    parse_row("LEVEL THREAD SIZE 3\n" + text)


def test_a_row_file() -> None:
    assert parse_row("LEVEL CPU SIZE 2\na\nb\n\nLEVEL THREAD SIZE 1\nTHREAD 1.1.1\n") == {
        "CPU": ("a", "b"),
        "THREAD": ("THREAD 1.1.1",),
    }


def test_names_fall_back_to_the_usual_ones_and_then_to_numbers() -> None:
    labels = parse_pcf(PCF)
    assert labels.mpi_name(50000001, 1) == "MPI_Send"
    assert labels.mpi_name(50000002, 10) == "MPI_Allreduce"
    assert labels.mpi_name(50000002, 999) == "MPI call 50000002:999"
    assert labels.state(1) == "Running"
    assert labels.state(14) == "Tracing Disabled"
    assert labels.state(99) == "state 99"
    assert labels.event_type(42000050) == "PAPI_TOT_INS [Instr completed]"
    assert labels.event_type(60000018) == "Executed OpenMP parallel function"
    assert labels.event_type(5) == "event 5"
    assert labels.event_value(50000001, 0) == "Outside MPI"
    assert labels.event_value(50000001, 77) == "77"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.pcf")), ids=lambda path: path.stem)
def test_the_built_in_names_are_those_of_extrae(path: Path) -> None:
    labels = parse_pcf(path.read_text())
    for type_ in range(50000001, 50000006):
        for value, name in labels.event_values.get(type_, {}).items():
            assert value == 0 or MPI_CALLS[value] == name


def test_some_values_far_down_the_table() -> None:
    wanted = {
        1: "Send", 5: "Wait", 6: "Waitall", 18: "Allgatherv", 30: "Scan", 32: "Finalize",
        41: "Sendrecv", 61: "Probe", 69: "Win_start", 80: "Reduce_scatter", 116: "Recv_init",
        117: "Send_init", 124: "Startall", 125: "Testall", 150: "File_write_at_all",
        155: "Iallreduce", 167: "Iscan", 172: "Get_accumulate",
            178: "Neighbor_alltoall", 183: "Ineighbor_alltoallw", 193: "Imrecv",
    }  # fmt: skip
    assert {value: MPI_CALLS[value].removeprefix("MPI_") for value in wanted} == wanted
    assert len(MPI_CALLS) == 193


def test_files_beside_a_trace() -> None:
    for name in ("a/x.prv", "a/x.prv.gz", "a/x"):
        assert beside(Path(name), ".pcf") == Path("a/x.pcf")
    assert beside(Path("x.y.prv"), ".row") == Path("x.y.row")


def test_bytes_of_no_encoding_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "x.prv").write_text("#Paraver (x):9_ns:1(1):1:1(1:1),0\n")
    (tmp_path / "x.pcf").write_bytes(b"STATES\n1  Ru\xe9ning\n")
    trace = read(tmp_path / "x.prv")
    assert trace.records.labels == Labels({1: "Ru\ufffdning"})
