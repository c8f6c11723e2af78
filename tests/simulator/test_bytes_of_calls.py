"""Bytes of a collective mean the same in every form of its call, and on every path."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.script import Script

import popmodel
from popmodel.network.network import PRESETS, Network
from popmodel.simulator import replay
from popmodel.simulator.expand_collectives import lay_out
from popmodel.simulator.from_trace import from_trace
from popmodel.simulator.program import Program
from popmodel.simulator.program_files import write
from popmodel.structure.traffic import uses
from popmodel.traces import Trace, read

ALL, ONE, ROOT, OTHERS = "all parts", "a part", "all parts, of the root", "a part, but the root"
# The plain form and those with counts, with what Extrae records of them as sent and received.
FORMS = [
    [("Alltoall", ONE, ALL), ("Alltoallv", ALL, ALL), ("Alltoallw", ALL, ALL)],
    [("Ialltoall", ONE, ALL), ("Ialltoallv", ALL, ALL), ("Ialltoallw", ALL, ALL)],
    [("Allgather", ONE, ALL), ("Allgatherv", ONE, ALL)],
    [("Gather", ONE, ROOT), ("Gatherv", ONE, ROOT)],
    [("Scatter", ROOT, ONE), ("Scatterv", ROOT, ONE)],
    [("Reduce_scatter_block", ALL, ONE), ("Reduce_scatter", ALL, ONE)],
]
FORMS_ONLY = [forms for forms in FORMS if not forms[0][0].startswith("I")]


def recorded(
    folder: Path, form: tuple[str, str, str], processes: int, part: int, times: int = 1
) -> Trace:
    """A trace in which all call a collective some times."""
    name, *sides = form
    script = Script(processes)
    for turn in range(times):
        for p in range(processes):
            amount = {ONE: part, ALL: processes * part, ROOT: processes * part * (p == 0)}
            sent, received = (amount[side] for side in sides)
            script.compute(p, 1000 + 10 * p + turn % 3)
            script.collective(p, name, sent=sent, received=received, root=ROOT in sides and p == 0)
            if name.startswith("I"):
                script.call(p, "Wait")
    script.end()
    made = folder / name
    made.mkdir()
    return script.read(made)


def sent_by(program: Program) -> dict[str, int]:
    """Bytes that each kind of call sends, of those that act."""
    acting = {program.call_name[code] for code in program.call_code[program.call].tolist()}
    return {use["name"]: use["bytes"] for use in uses(program, dict.fromkeys(acting, 1), {})}


def messages(program: Program) -> list[tuple[int, int, int]]:
    """Those that SMPI sends for the collectives of a program."""
    laid = lay_out(program).program.messages
    rows = zip(laid.sender.tolist(), laid.receiver.tolist(), laid.size.tolist(), strict=True)
    return sorted(rows)


LINK = {"latency": 1e-6, "bandwidth": 1e9}
NETWORKS = [
    Network(),
    Network(**LINK, collectives="algorithm"),
    Network(**LINK, collectives="algorithm", eager_threshold=0),
    Network(**LINK, input_links=1, output_links=1, collectives="algorithm"),
]


@pytest.mark.long
@settings(deadline=None)
@given(st.sampled_from(FORMS), st.integers(1, 17), st.integers(0, 70_000), st.integers(1, 3))
def test_equal_parts_are_the_plain_form_in_every_replay(
    forms: list[tuple[str, str, str]], processes: int, part: int, times: int
) -> None:
    with TemporaryDirectory() as folder:
        plain, *others = (
            from_trace(recorded(Path(folder), form, processes, part, times)) for form in forms
        )
    assert (plain.collectives.part() == part * (processes if "Reduce" in forms[0][0] else 1)).all()
    (sent,) = (size for name, size in sent_by(plain).items() if "Wait" not in name)
    assert sent == times * part * {
        "Alltoall": processes**2,
        "Ialltoall": processes**2,
        "Reduce_scatter_block": processes**2,
    }.get(forms[0][0], processes)
    for other in others:
        for network in NETWORKS:
            assert replay(other, network).end.tolist() == replay(plain, network).end.tolist()
        assert other.collectives.part().tolist() == plain.collectives.part().tolist()
        assert sorted(sent_by(other).values()) == sorted(sent_by(plain).values())
        assert not len(other.uneven.operation)
        if processes < 8:  # SMPI sends an Alltoall of these at once, as Alltoallv always
            assert messages(other) == messages(plain)
            network = PRESETS["smpi"].with_(**LINK)
            assert replay(other, network).end.tolist() == replay(plain, network).end.tolist()


@pytest.mark.parametrize("collectives", ["dimemas", "synchronising", "rooted"])
@pytest.mark.parametrize("forms", FORMS_ONLY, ids=lambda forms: forms[0][0])
def test_dimemas_charges_what_is_recorded(
    forms: list[tuple[str, str, str]], collectives: str, tmp_path: Path
) -> None:
    """An Alltoall the mean of a part and all, an Alltoallv all: as its answers for both are."""
    network = Network(bandwidth=1e9, collectives=collectives)
    plain, *others = (from_trace(recorded(tmp_path, form, 4, 1000)) for form in forms)
    factor = 8 / 5 if forms[0][0] == "Alltoall" else 1
    spent = [replay(one, network).runtime - replay(one, Network()).runtime for one in others]
    alone = replay(plain, network).runtime - replay(plain, Network()).runtime
    assert spent == pytest.approx([factor * alone] * len(others))


@pytest.mark.long
@pytest.mark.parametrize("forms", FORMS_ONLY, ids=lambda forms: forms[0][0])
def test_equal_parts_are_the_plain_form_in_signatures_predictions_and_screens(
    forms: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    found, intervals = [], []
    for form in forms:
        name, trace = form[0], recorded(tmp_path, form, 4, 30_000, times=40)
        signature = tmp_path / f"{name}.toml"
        text = popmodel.signature(trace).text
        signature.write_text(text)
        talk = popmodel.inspect(trace).to_dict()["communication"]
        (pattern,) = (one for one in talk["patterns"] if one["facts"]["op"] != "init")
        runtime = popmodel.predict(signature, procs=8, threads=1).to_dict()["runtime"]
        intervals += [runtime["low"], runtime["high"]]
        found.append(
            (
                re.findall(r'\b(?:op|bytes|comm|root) = (?:"[^"]*"|[^,\s]+)', text),
                runtime["value"],
                [(one["calls"], one["bytes"]) for one in talk["calls"]],
                (pattern["bytes"], pattern["facts"]["bytes_max"], pattern["exact"]),
            )
        )
    assert len(found[0][0]) > 1
    assert all(one == found[0] for one in found)
    assert intervals == pytest.approx(intervals[:2] * len(forms), rel=1e-4)  # the order of draws


@pytest.mark.parametrize("suffix", ["ti", "goal"])
@pytest.mark.parametrize("forms", FORMS_ONLY, ids=lambda forms: forms[0][0])
def test_what_is_converted_sends_the_same(
    forms: list[tuple[str, str, str]], suffix: str, tmp_path: Path
) -> None:
    sent = []
    for form in forms:
        program = from_trace(recorded(tmp_path, form, 4, 30_000))
        path = tmp_path / f"{form[0]}.{suffix}"
        write(program, path)
        again = from_trace(read(path, flop_rate=1e9) if suffix == "ti" else read(path))
        assert messages(again) == messages(program)
        sent.append(messages(again))
    assert all(one == sent[0] for one in sent)


def test_sums_of_an_uneven_alltoallv_are_shared_as_all_receive() -> None:
    sent, received = np.array([600, 0, 300]), np.array([300, 500, 100])
    script = Script(3)
    for p in range(3):
        script.collective(p, "Alltoallv", sent=int(sent[p]), received=int(received[p]))
    script.end()
    with TemporaryDirectory() as folder:
        program = from_trace(script.read(Path(folder)))
    expected = [
        (i, j, round(sent[i] * received[j] / 900)) for i in range(3) for j in range(3) if i != j
    ]
    assert messages(program) == expected


@pytest.mark.parametrize("processes", [2, 3, 8])
def test_in_place_as_extrae_records_it_is_as_with_buffers(processes: int, tmp_path: Path) -> None:
    """Arguments of the sending side, of a root's receiving side of Scatter, mean nothing then."""
    every = 1000 * processes
    (tmp_path / "in place").mkdir()
    found = []
    for here, folder in ((0, tmp_path / "in place"), (1000, tmp_path)):
        script = Script(processes)
        for p in range(processes):
            root = p == 0
            script.collective(p, "Alltoall", sent=here, received=every)
            script.collective(p, "Allgather", sent=here, received=every)
            sent = here if root else 1000
            script.collective(p, "Gather", sent=sent, received=every * root, root=root)
            received = here if root else 1000
            script.collective(p, "Scatter", sent=every * root, received=received, root=root)
        script.end()
        found.append(from_trace(script.read(folder)))
    in_place, plain = found
    assert in_place.collectives.part().tolist() == plain.collectives.part().tolist() == [1000] * 4
    assert not len(in_place.uneven.operation)
    assert messages(in_place) == messages(plain)
    sent, expected = map(sent_by, found)
    assert sent == {**expected, "MPI_Gather": expected["MPI_Gather"] - 1000}  # the root's own part
