"""Instructions of a signature, beside those that the efficiencies count in the trace."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from model.demo import machine
from synthetic import Counters, programs, run

from popmodel.efficiency.measure import analyse
from popmodel.model.signatures import from_text
from popmodel.model.study import Study
from popmodel.signature import signature_from
from popmodel.signature.from_runs import LearntSignature
from popmodel.trace import Trace
from popmodel.trace.selection import focused


def traced(folder: Path, counters: Counters | None = None, **options: Any) -> Trace:
    program = programs.jacobi((4,), 12, **options)
    return run(program, counters=counters, persistent=0.2, transient=0.1, seed=2).read(folder)


def modelled(found: LearntSignature, processes: int, threads: int) -> float | None:
    """Instructions of all processes in a run of the signature."""
    study = Study(from_text(found.text), machine(), {}, 0, 0)
    done = study.run(study.admit(processes, threads), study.sources())
    each = done.work.instructions
    return None if each is None else processes * float(each)  # type: ignore[arg-type]


@pytest.mark.parametrize("cause", ["instructions", "ipc"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_signature_has_as_many_instructions_as_its_trace(
    cause: str, threads: int, tmp_path: Path
) -> None:
    trace = traced(tmp_path, Counters(cause=cause), threads=threads)
    counted = analyse(trace).observables.aggregates()["instructions_sum"]
    found = signature_from([focused(trace)[0]])
    assert modelled(found, 4, threads) == pytest.approx(counted, rel=0.002)


def test_instructions_grow_as_times_do(tmp_path: Path) -> None:
    found = signature_from([focused(traced(tmp_path, Counters()))[0]])
    strong = modelled(found, 4, 1)
    assert modelled(found, 8, 1) == pytest.approx(strong, rel=0.002)


def test_without_counters_nothing_is_said_of_instructions(tmp_path: Path) -> None:
    found = signature_from([focused(traced(tmp_path))[0]])
    assert modelled(found, 4, 1) is None
    assert "instructions" not in found.text
    assert {phase["instructions"] for phase in found.to_dict()["phases"]} == {None}


def test_each_formula_of_instructions_is_told(tmp_path: Path) -> None:
    found = signature_from([focused(traced(tmp_path, Counters()))[0]])
    told = {phase["instructions"] for phase in found.to_dict()["phases"]}
    items = tomllib.loads(found.text)["program"]
    inside = [one for item in items for one in item.get("body", [])] + items
    written = {str(one["serial"]["instructions"]) for one in inside if "serial" in one}
    assert written
    assert written <= told
