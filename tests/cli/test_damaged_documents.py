"""Documents with random damage: every command that reads one works, or says what is wrong.

More of it: ``DAMAGED=2000 HYPOTHESIS_PROFILE=default python -m pytest THIS_FILE``.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from fuzz.documents import mutate, mutate_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines.profiles import document as profile_document
from tracer.builder import Run as TracedRun
from tracer.builder import post, receive, send

from popmodel.base.errors import PopmodelError
from popmodel.cli import main
from popmodel.machines import profile
from popmodel.machines.bench import bench_plan as plan
from popmodel.machines.bench import collect, run_directory, suite
from popmodel.machines.quantity import Cache, Topology
from popmodel.machines.register import PARTS

from .played_machine import FILES, played_programs

TABLE = "processes,threads,runtime,note\n2,2,0.5,first\n2,2,0.25,\n"
damaged = given(st.integers(0, 2**32).map(random.Random))


def often(examples: int) -> Any:
    """As many examples as the time of a test allows, or as asked for."""
    return settings(
        max_examples=int(os.environ.get("DAMAGED", examples)),
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )


def check(capsys: pytest.CaptureFixture[str], *words: str) -> None:
    """A command works, or ends with one line, perhaps with a hint, and nothing else."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status = main(words)
    out, err = capsys.readouterr()
    assert "unexpected" not in err, err
    if status == 0:
        assert out
        return
    assert status in (1, 2)
    first, *rest = [line for line in err.splitlines() if not line.startswith("popmodel: warning")]
    assert first.startswith("popmodel: error: ")
    assert len(first) < 600
    assert [line for line in rest if not line.startswith("hint: ")] == []
    assert len(rest) <= 1


@pytest.fixture(scope="module")
def prediction(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("saved") / "p.json"
    assert (
        main(["predict", "--procs", "2", "--threads", "2", "--set", "N=64", "-o", str(path)]) == 0
    )
    return json.loads(path.read_text())


@pytest.mark.long
@often(80)
@damaged
def test_predictions(
    prediction: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random
) -> None:
    runs, saved = tmp_path / "runs.csv", tmp_path / "p.json"
    runs.write_text(TABLE)
    saved.write_text(mutate(prediction, dice))
    trace = Path(__file__).parent.parent / "data" / "bt-mz.S.2x2.prv.gz"
    measured = dice.choice([runs, runs, runs, trace])
    check(capsys, "validate", str(saved), str(measured), "--format", dice.choice(["json", "table"]))


TRACE = str(Path(__file__).parent.parent / "data" / "is.S.4.prv.gz")
RUNS = str(Path(__file__).parent.parent / "data" / "epoch.csv")
SAVED = (
    ("inspect", TRACE),
    ("metrics", TRACE),
    ("metrics", TRACE, "--by", "process"),
    ("whatif", TRACE, "--latency", "1us", "--metrics"),
    ("whatif", TRACE),
    ("predict", RUNS, "--procs", "16", "--law", "amdahl"),
    ("predict", "cannon", "--procs", "16", "--threads", "1"),
    ("predict", "cannon", "--procs", "16", "--formula", "runtime"),
    ("predict", "cannon", "--cores", "16"),
    ("signature", "from", TRACE),
    ("docs", "load_balance"),
)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Results that were saved, the last one a report."""
    folder = tmp_path_factory.mktemp("results")
    paths = [folder / f"{number}.json" for number, _ in enumerate(SAVED)]
    for words, path in zip(SAVED, paths, strict=True):
        assert main([*words, "--format", "json", "-o", str(path)]) == 0
    assert main(["report", *map(str, paths[:9]), "-o", str(folder / "all.json")]) == 0
    return [*paths, folder / "all.json"]


@pytest.mark.long
@often(300)
@damaged
def test_saved_results(
    results: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random
) -> None:
    saved, page = tmp_path / "saved.json", tmp_path / "page.html"
    text = mutate(json.loads(dice.choice(results).read_text()), dice)
    if dice.random() < 0.1:
        text = text[: dice.randrange(len(text))]
    coded = text.encode(dice.choice(["utf-8"] * 8 + ["utf-16", "utf-8-sig"]), "surrogatepass")
    saved.write_bytes(coded)
    status = main(["report", str(saved), "-o", str(page), "--force"])
    _, err = capsys.readouterr()
    assert status in (0, 1)
    if status:
        first, *hints = err.splitlines()
        assert first.startswith(f"popmodel: error: {saved}:")
        assert len(first) < 600
        assert [line for line in hints if not line.startswith("hint: ")] == []


@pytest.mark.long
@often(60)
@damaged
def test_documents_of_runs(
    results: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random
) -> None:
    saved = tmp_path / "runs.json"
    saved.write_text(mutate(json.loads(results[1].read_text()), dice))
    check(capsys, "predict", str(saved), "--procs", "16")


@pytest.mark.long
@often(100)
@damaged
def test_tables_of_run_times(
    prediction: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random
) -> None:
    runs, saved = tmp_path / "runs.csv", tmp_path / "p.json"
    runs.write_text(mutate_text(TABLE, dice), encoding="utf-8")
    saved.write_text(json.dumps(prediction))
    check(capsys, "validate", str(saved), str(runs), "--format", dice.choice(["json", "table"]))


@pytest.mark.long
@often(150)
@damaged
def test_profiles(tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random) -> None:
    path, good = tmp_path / "m.json", tmp_path / "good.json"
    good.write_text(json.dumps(profile_document()))
    path.write_text(mutate(profile_document(), dice))
    words = dice.choice(
        [
            ("show", str(path)),
            ("check", str(path)),
            ("diff", str(path), str(good)),
            ("diff", str(good), str(path)),
        ]
    )
    check(capsys, "machine", *words, "--format", dice.choice(["json", "table", "csv", "markdown"]))


@pytest.mark.long
@often(60)
@damaged
def test_predictions_with_profiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random
) -> None:
    path = tmp_path / "m.json"
    path.write_text(mutate(profile_document(), dice))
    words = ("predict", "--procs", "2", "--threads", "2", "--machine", str(path), "--set", "N=64")
    check(capsys, *words, "--format", dice.choice(["json", "table"]))


@often(20)
@damaged
def test_profiles_of_which_a_part_is_measured_anew(tmp_path: Path, dice: random.Random) -> None:
    path = tmp_path / "m.json"
    path.write_text(mutate(profile_document(), dice))
    fresh = {**profile_document(), "provenance": {"measurements": [{"parts": ["core"]}]}}
    parts = dice.sample(PARTS, dice.randint(1, 3))
    try:
        merged = collect.replace_parts(profile.load(path).document, fresh, parts)
    except PopmodelError:
        return
    profile.from_document(merged)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with two launches of each program, as short as may be."""
    folder = tmp_path_factory.mktemp("measured") / "m.samples"
    topology = Topology(1, 4, 1, 1, (Cache("L2", 1 << 20, 1),))
    made = plan.make(PARTS, "quick", topology, ranks=2, seed=1)
    run = run_directory.begin(folder, made, {"host": "played"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FILES", json.dumps(FILES))
        begin = suite.starter(played_programs(tmp_path_factory.mktemp("programs")), None)
        assert suite.measure(run, begin) == []
    return folder


def some_lines(text: str, dice: random.Random) -> str:
    """Samples with damage in one or two of their lines."""
    lines = text.splitlines()
    # the header, the end, and any other
    chosen = {0, len(lines) - 1, dice.randrange(len(lines)), dice.randrange(len(lines))}
    for at in dice.sample(sorted(chosen), dice.randint(1, 2)):
        lines[at] = mutate(json.loads(lines[at]), dice)
        if dice.random() < 0.1:
            lines[at] = lines[at][: dice.randrange(len(lines[at]) + 1)]
    return "\n".join(lines) + dice.choice(["\n", "\n", ""])


@often(20)
@damaged
def test_samples(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random
) -> None:
    folder = tmp_path / "m.samples"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    shutil.copy(measured / "plan.json", folder)
    for path in dice.sample(sorted(measured.glob("*.jsonl")), 4):
        shutil.copy(path, folder)
    path = dice.choice(sorted(folder.glob("*.jsonl")))
    path.write_text(some_lines(path.read_text(), dice))
    check(capsys, "machine", "measure", "--samples", str(folder), "-o", "-")


@often(20)
@damaged
def test_plans(measured: Path, tmp_path: Path, dice: random.Random) -> None:
    table = json.loads((measured / "plan.json").read_text())
    for launch in table["launches"]:
        launch["jobs"] = launch["jobs"][:3]
    (tmp_path / "plan.json").write_text(mutate(table, dice))
    for path in measured.glob("launch-001.jsonl"):
        shutil.copy(path, tmp_path)
    try:
        run = run_directory.find(tmp_path)
    except PopmodelError:
        return
    assert run is not None
    run_directory.difference(run, run.plan, run.made_with)
    run_directory.without_sample(run)
    assert run.plan.seconds >= 0


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A raw directory of two ranks that say all that the tracer knows to say."""
    run = TracedRun(2)
    for rank in (0, 1):
        process = run.process(rank)
        process.say("function", address="0x55d0", name="f._omp_fn.0", module="/a", offset="0x1d0")
        process.say("name", id=1, text="solve")
        process.say("counters", why="not permitted here")
        process.say("openmp", how="gomp", runtime="libgomp.so.1")
        process.say("site", number=1, module="/a", offset="0x1d0")
        process.say("thread", number=0, tid=7, time=1000, cpus="0-3")
        process.say("usage", thread=0, used=5000, waited=0)
        process.say("note", text="something odd", count=2)
        process.say("clock", **{"when": "init", "with": "host0", "round_trips": [[1, 3, 2]]})
        thread = process.thread()
        if rank == 0:
            thread.call("Send", 2000, 3000, send(1, 7, 64))
        else:
            thread.call("Recv", 2000, 4000, post(1, blocking=1), *receive(0, 7, 64, 1))
        process.end(9000)
    return run.write(tmp_path_factory.mktemp("traced") / "raw")


@often(20)
@damaged
def test_descriptions_of_traced_processes(
    traced: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], dice: random.Random
) -> None:
    folder = tmp_path / "raw"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(traced, folder)
    path = dice.choice(sorted(folder.glob("*.meta")))
    path.write_text(some_lines(path.read_text(), dice))
    target = str(tmp_path / "merged.prv")
    status = main(["trace", "merge", str(folder), "-o", target, "--force"])
    _, err = capsys.readouterr()
    assert "unexpected" not in err, err
    assert status in (0, 1, 2)
    made = list(tmp_path.glob("merged*.prv"))  # several where a damaged size makes several runs
    assert (status == 0) == bool(made)
    for path in made:
        path.unlink()
