"""``metrics --history``: runs added to a file, compared, held to limits, and drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from synthetic import Counters, Program, Rank, run
from synthetic.program import Steps

import popmodel as library

from .conftest import Call

SITE = ("solve", "solver.c", 120)
STEPS, WORK = 12, 1e-3  # s of a step
NOISE = 0.03
PLANTED = ("imbalance", "extra barrier", "more messages", "slower clock", "more instructions")
FACTOR = {
    "imbalance": "load_balance", "extra barrier": "serialisation", "more messages": "transfer",
    "slower clock": "frequency", "more instructions": "instructions",
}  # fmt: skip


def program(noise: float, slower: float, kind: str) -> Program:
    """Four ranks that exchange halos; each kind of regression makes it so much slower."""
    more = slower - 1
    work = WORK * noise * (slower if kind in ("slower clock", "more instructions") else 1)
    uneven = more / 2  # in each half of a step, another half of the ranks
    # Each message more takes 10 us.
    messages = 1 + round(more * WORK / 1.2e-5) if kind == "more messages" else 1

    def body(me: Rank) -> Steps:
        right, left = (me.rank + 1) % me.size, (me.rank - 1) % me.size
        of_rank = 1 + (more * 4 / 3 if kind == "imbalance" and me.rank == 0 else 0)
        for _ in range(STEPS):
            for half in (0, 1):
                way = 1 if (me.rank + half) % 2 else -1
                yield me.compute(work * of_rank * (0.5 + way * uneven), "sweep")
                if half == 0 and kind == "extra barrier":
                    yield me.collective("Barrier", site=("solve", "solver.c", 130))
            for _ in range(messages):
                request = yield me.irecv(left, site=SITE)
                yield me.send(right, 100_000, site=SITE)
                yield me.wait(request, site=SITE)
            yield me.collective("Allreduce", 8, site=("norm", "solver.c", 140))

    return Program(4, body)


def traces(
    folder: Path,
    name: str,
    number: int,
    rng: np.random.Generator,
    kind: str = "",
    slower: float = 1.0,
) -> list[str]:
    """Traces of runs whose clock, and so their runtime, has 3 % of noise."""
    paths = []
    for repeat in range(number):
        noise = math.exp(rng.normal(0, NOISE))
        clock = 2e9 / noise / (slower if kind == "slower clock" else 1)
        done = run(program(noise, slower, kind), counters=Counters(frequency=clock))
        paths.append(str(done.write(folder / f"{name}{repeat}.prv")))
    return paths


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("base")
    return traces(folder, "base", 10, np.random.default_rng(40))


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("slow")
    rng = np.random.default_rng(41)
    return traces(folder, "slow", 5, rng, "imbalance", 1.12)


@pytest.fixture
def history(base: list[str], popmodel: Call, tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "perf.jsonl")
    status, out, err = popmodel("metrics", *base, "--history", path, "--label", "base")
    assert (status, err) == (0, "")
    assert "no earlier runs on this machine to compare with" in out
    yield path


def test_a_regression_is_answered_first_with_its_factor_and_its_place(
    history: str, slow: list[str], popmodel: Call
) -> None:
    words = ("--history", history, "--label", "slow", "--fail-if", "runtime > +5 %")
    status, out, err = popmodel("metrics", *slow, *words)
    assert status == 3
    answer = " ".join(out.partition("\n\n")[0].split())
    assert answer.startswith("-> 4 x 1: ")
    assert " % slower than the last 10 runs (90 %: +" in answer
    assert ": Load balance -" in answer
    assert err.startswith("popmodel: error: runtime of 4 x 1 changed by +")
    assert out.count("\n") <= 25
    assert max(len(line) for line in out.splitlines() if "perf.jsonl" not in line) <= 80


def test_what_is_no_slower_than_noise_does_not_fail(
    history: str, popmodel: Call, tmp_path: Path
) -> None:
    same = traces(tmp_path, "same", 5, np.random.default_rng(42))
    words = ("--history", history, "--label", "same", "--fail-if", "runtime > +0 %")
    status, out, err = popmodel("metrics", *same, *words)
    assert (status, err) == (0, "")
    assert "no change shown against the last 10 runs" in out


def test_two_runs_decide_nothing_and_say_so(history: str, slow: list[str], popmodel: Call) -> None:
    words = ("--history", history, "--label", "slow", "--fail-if", "runtime > +5 %")
    status, out, _ = popmodel("metrics", *slow[:2], *words)
    assert status == 0
    assert "nothing is decided with 2 runs now, 10 before" in out
    # Those of a later command with the same label are repeats, too.
    status, out, _ = popmodel("metrics", *slow[2:], *words)
    assert status == 3
    assert "now 5" in out


def test_a_command_can_be_repeated(history: str, slow: list[str], popmodel: Call) -> None:
    words = ("metrics", *slow, "--history", history, "--label", "slow", "--format", "json")
    first, again = (json.loads(popmodel(*words)[1])["history"] for _ in range(2))
    assert (first["added"], again["added"]) == (5, 0)
    assert first["comparisons"] == again["comparisons"]
    assert len(Path(history).read_text().splitlines()) == 15


def test_the_document_keeps_its_keys_and_its_factors_multiply_to_the_change(
    history: str, slow: list[str], popmodel: Call
) -> None:
    words = ("--history", history, "--label", "slow", "--format", "json")
    document = json.loads(popmodel("metrics", *slow, *words)[1])
    assert set(document) == {"schema", "runs", "scaling", "advice", "history", "provenance"}
    (comparison,) = document["history"]["comparisons"]
    product = math.prod(factor["effect"] for factor in comparison["factors"])
    assert product == pytest.approx(comparison["runtime"]["ratio"], rel=1e-12)
    assert comparison["causes"][0] == "load_balance"


def test_metrics_have_relative_limits_too(history: str, slow: list[str], popmodel: Call) -> None:
    words = ("--history", history, "--label", "slow")
    limit = ("--fail-if", "load_balance < -3 %")
    status, _, err = popmodel("metrics", *slow, *words, *limit)
    assert status == 3
    assert err.startswith("popmodel: error: mpi.load_balance of 4 x 1 changed by -")
    status, _, err = popmodel("metrics", *slow, *words, "--fail-if", "load_balence < -3 %")
    assert (status, err.splitlines()[0]) == (2, "popmodel: error: unknown value 'load_balence'")


def test_absolute_and_relative_limits_stand_beside_each_other(
    history: str, slow: list[str], popmodel: Call
) -> None:
    words = ("--history", history, "--label", "slow", "--fail-if", "runtime > +5 %")
    _, _, err = popmodel("metrics", *slow, *words, "--fail-if", "parallel_efficiency < 0.99")
    assert "runtime of 4 x 1 changed by" in err
    assert "parallel_efficiency of slow0 is" in err


def test_a_damaged_line_is_one_line_with_its_number(
    history: str, slow: list[str], popmodel: Call
) -> None:
    lines = Path(history).read_text().splitlines()
    lines[3] = lines[3][:-20]
    Path(history).write_text("\n".join(lines))
    status, out, err = popmodel("metrics", *slow, "--history", history, "--label", "slow")
    assert (status, out) == (1, "")
    assert err.startswith(f"popmodel: error: {history}:4: is not JSON")
    assert err.count("\n") == 2
    assert Path(history).read_text().splitlines() == lines


def test_another_configuration_is_compared_for_itself(
    history: str, base: list[str], popmodel: Call
) -> None:
    status, out, _ = popmodel(
        "metrics", *base[:3], "--history", history, "--label", "window", "--window", "2ms:8ms"
    )
    assert status == 0
    assert "4 x 1 (window 2ms:8ms): no earlier runs" in out


def test_the_badge_is_well_formed_and_says_the_change(
    history: str, slow: list[str], popmodel: Call, tmp_path: Path
) -> None:
    badge = tmp_path / "badge.svg"
    words = ("--history", history, "--label", "slow", "--badge", str(badge))
    status, out, _ = popmodel("metrics", *slow, *words)
    assert status == 0
    root = ElementTree.fromstring(badge.read_text())
    title = root.findtext("{http://www.w3.org/2000/svg}title") or ""
    assert title.startswith("performance: ")
    assert title.removeprefix("performance: ").split(" slower")[0] in out


def test_the_markdown_begins_with_the_answer(history: str, slow: list[str], popmodel: Call) -> None:
    words = ("--history", history, "--label", "slow", "--format", "markdown")
    out = popmodel("metrics", *slow, *words)[1]
    assert out.startswith("4 x 1: ")
    assert "\n| 4 x 1, geometric means | last 10 | now 5 | change | makes | p |\n" in out


def test_the_page_shows_the_series(
    history: str, slow: list[str], popmodel: Call, tmp_path: Path
) -> None:
    page = tmp_path / "perf.html"
    words = ("--history", history, "--label", "slow", "-o", str(page))
    assert popmodel("metrics", *slow, *words)[0] == 0
    text = page.read_text()
    assert "Change against earlier runs" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    status, _, err = popmodel("report", str(page), "-o", str(tmp_path / "again.html"))
    assert (status, err) == (0, "")


def test_python_has_the_same(history: str, slow: list[str]) -> None:
    found = library.metrics(slow, history=history, label="slow")
    ((where, change),) = found.changes("runtime")
    assert where == "4 x 1"
    assert change.ratio > 1.05
    assert "slower than the last 10 runs" in str(found)


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.long(after=1)
def test_a_planted_regression_of_8_per_cent_in_traces_is_found_and_named(
    kind: str, history: str, popmodel: Call, tmp_path: Path
) -> None:
    planted = traces(tmp_path, "new", 5, np.random.default_rng(43), kind, 1.08)
    words = ("--history", history, "--label", kind, "--format", "json")
    document = json.loads(popmodel("metrics", *planted, *words)[1])
    (comparison,) = document["history"]["comparisons"]
    assert comparison["runtime"]["shown"], comparison["sentence"]
    assert comparison["causes"][0] == FACTOR[kind], comparison["sentence"]


def talp(folder: Path, name: str, number: int, seconds: float, balance: float) -> list[str]:
    """Reports of runs that take so long, with so much load balance, and some noise."""
    paths = []
    for repeat in range(number):
        runtime = seconds * (1 + 0.004 * (repeat % 5))
        cpus, between, inside = 8, 0.96, 0.9
        region = {
            "numCpus": cpus, "numMpiRanks": 4, "elapsedTime": int(runtime * 1e9),
            "usefulTime": int(cpus * runtime * balance * between * inside * 1e9),
            "instructions": 10**11 + repeat, "cycles": 2 * 10**11,
            "parallelEfficiency": round(balance * between * inside, 2),
            "mpiParallelEfficiency": round(balance * between, 2), "mpiLoadBalance": balance,
            "mpiCommunicationEfficiency": between, "ompParallelEfficiency": inside,
        }  # fmt: skip
        path = folder / f"{name}{repeat}.json"
        path.write_text(json.dumps({"dlbVersion": "3.5.1", "Application": {"Global": region}}))
        paths.append(str(path))
    return paths


def test_reports_of_talp_are_compared_too(popmodel: Call, tmp_path: Path) -> None:
    path = str(tmp_path / "perf.jsonl")
    words = ("--history", path, "--fail-if", "runtime > +5 %", "--format", "json")
    before, now = talp(tmp_path, "a", 10, 5.0, 0.95), talp(tmp_path, "b", 5, 5.6, 0.85)
    assert popmodel("metrics", *before, *words, "--label", "a")[0] == 0
    status, out, _ = popmodel("metrics", *now, *words, "--label", "b")
    assert status == 3
    (comparison,) = json.loads(out)["history"]["comparisons"]
    assert comparison["causes"][0] == "load_balance"
    assert comparison["split"][3:] == ["load_balance", "communication", "thread_efficiency"]
    product = math.prod(factor["effect"] for factor in comparison["factors"])
    assert product == pytest.approx(comparison["runtime"]["ratio"], rel=1e-9)


def test_traces_and_reports_are_added_by_two_commands(
    base: list[str], popmodel: Call, tmp_path: Path
) -> None:
    (report,) = talp(tmp_path, "a", 1, 5.0, 0.95)
    status, _, err = popmodel("metrics", base[0], report, "--history", str(tmp_path / "perf.jsonl"))
    assert (status, err.count("\n")) == (2, 2)
    assert "add them by two commands" in err


def test_what_makes_runs_doubtful_comes_before_the_answer(popmodel: Call, tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    trace = str(root / "examples" / "traces" / "stencil3d.2x2.prv.gz")
    for label in "ab":
        out = popmodel("metrics", trace, "--history", str(tmp_path / "p.jsonl"), "--label", label)[
            1
        ]
        assert out.startswith("-> Doubtful: ")
        assert out.count("\n") <= 25
