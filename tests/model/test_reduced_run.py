"""Runs that are too large to be replayed: one that is like them stands for them, without a jump."""

import copy
import math
from typing import Any

import numpy as np
import pytest
from model.demo import machine, program

from popmodel.machines.profile import Profile, from_document
from popmodel.model import replayed_run
from popmodel.model.predictor import Study
from popmodel.model.replayed_run import ReplayAgreement, similar
from popmodel.model.run.operations import NotUnrolled
from popmodel.model.signature.application import Signature

GRID = {"decomp": 'global = ["N", "N"]\ngrid = "auto"', "params": "N = 8192\nblocks = 40"}
WORK = "[[program.body]]\nparallel = { trip = 64, inner = 1000, flops = 2 }\n"
HALO = '[[program.body]]\nhalo = { width = 1, bytes_per_cell = 80, pack = "none" }\n'
SWEEP = (
    '[[program.body]]\npipeline = { dims = [0, 1], blocks = "blocks", seconds = 1e-3, '
    "bytes = 1000 }\n"
)
PAIRS = (
    '[[program.body]]\np2p = { to = "rank + 1 - 2*(rank % 2)", bytes = 1000, mode = "sendrecv" }\n'
    '[[program.body]]\np2p = { to = "(rank + 8) % P", bytes = 1000, mode = "sendrecv" }\n'
)
SUM = '[[program.body]]\ncollective = { op = "allreduce", bytes = 8 }\n'


def steps(body: str, count: str = "200") -> Signature:
    text = f'[[program]]\nloop = {{ count = "{count}" }}\n'
    return program(text + body, imbalance="transient_cv = 0.05\npersistent_cv = 0.02", **GRID)


@pytest.fixture(scope="module")
def many_nodes() -> Profile:
    document = copy.deepcopy(dict(machine().document))
    document["topology"]["nodes"] = 10**5
    return from_document(document)


def replayed(
    signature: Signature, profile: Profile, processes: int, **values: float
) -> ReplayAgreement:
    study = Study(signature, profile, values, 0, 0)
    return study.replay(study.admit(processes, 1))


def gains(found: list[ReplayAgreement]) -> list[float]:
    """Runtime of the replay over that of the closed form."""
    return [one.replay.runtime / one.closed_form.runtime for one in found]


PROGRAMS = [WORK + HALO, WORK + HALO + SUM + SUM, WORK + PAIRS, SWEEP, SWEEP + WORK + HALO]


@pytest.mark.long(after=2)
@pytest.mark.parametrize(
    ("body", "quarter"),
    list(zip(PROGRAMS, [20_000, 28_000, 7_500, 410_000, 430_000], strict=True)),
)
def test_a_quarter_of_a_run_tells_nearly_what_the_run_itself_tells(
    body: str, quarter: int, many_nodes: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 10**7)
    whole = replayed(steps(body), many_nodes, 256)
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", quarter)
    part = replayed(steps(body), many_nodes, 256)
    assert part.processes <= 128 < whole.processes == 256
    assert part.replay.runtime == pytest.approx(whole.replay.runtime, rel=0.05)


@pytest.mark.long(after=1)
@pytest.mark.parametrize("body", PROGRAMS)
def test_there_is_no_jump_to_runs_with_too_many_processes(
    body: str, many_nodes: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 60_000)
    found = []
    for processes in (8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096):
        found.append(replayed(steps(body), many_nodes, processes))
        if found[-1].processes != processes:
            break
    assert len(found) > 2
    assert found[-1].processes < processes
    *usual, border = np.abs(np.diff(np.log(gains(found))))
    assert border < max(*usual, 0.03)
    assert replayed(steps(body), many_nodes, 4096).processes < 4096


def test_there_is_no_jump_to_runs_with_too_many_blocks(
    many_nodes: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 200_000)
    found = [replayed(steps(SWEEP), many_nodes, 32, blocks=n) for n in range(30, 50, 2)]
    assert found[0].part == pytest.approx(found[1].part, rel=0.15) != found[-1].part
    assert np.abs(np.diff(np.log(gains(found)))).max() < 0.03


def small(body: str, profile: Profile, processes: int) -> Any:
    study = Study(steps(body), profile, {}, 0, 0)
    run = study.run(study.admit(processes, 1), study.sources())
    return run, similar(study.signature, run.tree)


def test_work_and_messages_of_a_process_stay(
    many_nodes: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 100_000)
    run, found = small(WORK + HALO, many_nodes, 4096)
    before, after = run.tree.point, found.point
    assert after.values == before.values
    assert after.placement.per_node == before.placement.per_node
    assert 200 < after.placement.processes == math.prod(after.extent) < 400
    assert after.placement.nodes == math.ceil(after.placement.processes / 8)
    # nodes are still whole lines or parts of one along the last dimension
    assert after.extent[-1] % 8 == 0


def test_formulas_of_ranks_know_how_many_there_are(
    many_nodes: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 20_000)
    text = "[[program]]\nloop = { count = 50 }\n[[program.body]]\n"
    ring = program(f'{text}p2p = {{ to = "(rank + h) % P", bytes = "1e6/P" }}\n', let='h = "P/2"')
    study = Study(ring, many_nodes, {}, 0, 0)
    run = study.run(study.admit(1024, 1), study.sources())
    found = similar(ring, run.tree)
    count = found.point.placement.processes
    assert count == 256  # a power of two, as that of the run
    (loop,) = found.signature.program
    (item,) = loop.inside
    numbers = item.at(found.point, "p2p")
    assert numbers.to.tolist() == [(rank + count // 2) % count for rank in range(count)]
    assert numbers.bytes == pytest.approx(1e6 / 1024)


def test_what_only_comes_again_goes_first(
    many_nodes: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 100_000)
    nested = (
        "[[program.body]]\nloop = { count = 3000, body = [\n"
        "{ parallel = { trip = 64, inner = 1000, flops = 2 } },\n"
        '{ collective = { op = "allreduce", bytes = 8 } } ] }\n'
    )
    run, found = small(nested, many_nodes, 32)
    assert found.point is run.tree.point
    (outer,) = found.signature.program
    (inner,) = outer.inside
    assert outer.count.text == "200"
    assert 20 <= float(inner.count.text) < 60
    both = replayed(steps(nested), many_nodes, 32)
    assert both.gap == pytest.approx(0, abs=1e-9)  # all wait for the slowest
    assert both.part < 0.02


def test_a_run_of_which_too_little_would_be_left_is_not_replayed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 10)
    with pytest.raises(NotUnrolled, match=r"too large to replay: [\d,]+ operations in 20 steps"):
        replayed(steps(SUM), machine(), 64)


def test_names_that_fewer_processes_do_not_have_are_told(
    many_nodes: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_IN_STEPS", 20_000)
    text = "[[program]]\nloop = { count = 50 }\n" + SUM
    odd = program(text, let='x = "log(P - 1000)"')
    with pytest.raises(
        NotUnrolled, match="too large to replay, and with fewer processes 'x' of let"
    ):
        replayed(odd, many_nodes, 1024)
