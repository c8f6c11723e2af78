"""Cores that are left to themselves: how it is told, and what a measurement does meanwhile."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable

import pytest
from microbench.node_program import CPUS, SOURCES, Finished, Line, compile_beside, two_cpus

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """What is told of teams whose paces, (threads, ns), are seen one after the other."""
    names = ("pace.c", "cpus.c", "jobs.c", "machine_state.c", "samples.c", "text.c")
    sources = [str(SOURCES / name) for name in names]
    output = tmp_path_factory.mktemp("paces") / "paces"
    program = compile_beside(["cc", "-fopenmp"], "paces.c", output, *sources, "-lm")

    def of(*paces: tuple[int, float]) -> list[str]:
        lines = "".join(f"{threads} {ns}\n" for threads, ns in paces)
        done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return of


def test_a_core_is_shared_if_its_pace_is_far_from_the_best(
    judged: Callable[..., list[str]],
) -> None:
    assert judged((1, 0.31), (1, 0.40), (1, 0.55)) == ["own", "own", "shared"]


def test_the_first_pace_is_the_best_until_a_better_one_is_seen(
    judged: Callable[..., list[str]],
) -> None:
    assert judged((1, 0.62), (1, 0.31), (1, 0.62)) == ["own", "own", "shared"]


def test_fewer_threads_tell_what_is_too_slow_for_more(judged: Callable[..., list[str]]) -> None:
    assert judged((1, 0.31), (8, 0.45), (8, 0.55)) == ["own", "own", "shared"]
    assert judged((8, 0.31), (1, 0.62)) == ["own", "own"]  # more tell nothing of fewer


@pytest.fixture(scope="module")
def waited(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], tuple[str, ...]]:
    """Batches, those on a shared core, seconds, and why it stopped, of a budget of 0.1 s."""
    sources = [str(SOURCES / name) for name in ("batch.c", "text.c")]
    output = tmp_path_factory.mktemp("waiting") / "waiting"
    program = compile_beside(["cc"], "waiting.c", output, *sources, "-lm")

    def of(seconds: float) -> tuple[str, ...]:
        words = [str(program), str(seconds)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return tuple(done.stdout.split())

    return of


def test_a_core_of_its_own_needs_no_wait(waited: Callable[[float], tuple[str, ...]]) -> None:
    batches, shared, seconds, stopped = waited(0)
    assert (batches, shared, stopped) == ("50", "0", "converged")
    assert float(seconds) < 0.01


def test_batches_wait_until_the_core_is_left_alone(
    waited: Callable[[float], tuple[str, ...]],
) -> None:
    batches, shared, seconds, stopped = waited(0.03)
    assert (batches, shared, stopped) == ("50", "0", "converged")
    assert 0.03 < float(seconds) < 0.04


def test_a_core_that_is_shared_all_the_time_is_measured_as_it_is(
    waited: Callable[[float], tuple[str, ...]],
) -> None:
    batches, shared, seconds, stopped = waited(1)
    assert batches == shared == "200"  # all that are allowed: they never decide to stop
    assert stopped == "batches"
    assert 0.05 < float(seconds) <= 0.1


@pytest.mark.long
def test_every_batch_has_the_pace_of_its_cores(measure: Callable[..., list[Line]]) -> None:
    jobs = ["loop", "construct name=barrier threads=1"]
    jobs += ["construct name=barrier threads=2"] if CPUS > 1 else []
    for line in measure(*jobs):
        assert len(line["pace"]) == len(line["seconds"])
        assert 1e-11 < min(line["pace"]) < 1e-8  # a turn is a cycle or two


@pytest.mark.long
def test_mixed_tells_the_pace_of_its_arithmetic(measure: Callable[..., list[Line]]) -> None:
    (line,) = measure("mixed threads=1 bytes=1048576 arithmetic=100")
    assert len(line["arithmetic_pace"]) == len(line["arithmetic"])


@pytest.mark.long
@two_cpus
def test_what_shares_a_core_or_is_noise_itself_is_not_looked_at(
    run: Callable[..., Finished],
) -> None:
    done = run("--budget", "0.01", "--least", "3", "quantum", "smt shared=0")
    _, *lines, _ = map(json.loads, done.stdout.splitlines())
    assert [line["job"] for line in lines] == ["quantum", "smt"]
    assert all("pace" not in line for line in lines)
