"""The tournament: what is predicted is stored before anything is measured, and scored by hand."""

from __future__ import annotations

import json
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from popmodel.machines.host import hardware

FOLDER = Path(__file__).parent.parent.parent / "examples" / "tournament"
DRIVER: dict[str, Callable[..., Any]] = runpy.run_path(str(FOLDER / "tournament.py"))

PROGRAMS = """
[even]
command = "even {N}"
set = { N = [1, 2] }
target = { N = 4 }
time = 'took ([\\d.]+) s'

[square]
command = "square {N}"
set = { N = [1, 2] }
target = { N = 4 }
time = 'took ([\\d.]+) s'
"""
STUDY = """#!/bin/sh
[ "$1" = --version ] && echo popmodel 1 && exit
echo "$@" >> {log}
case "$*" in
*square*) echo "popmodel: error: no run was made" >&2; exit 1;;
esac
cat <<END
{{"trust": {{"ok": true}},
 "choices": [{{"take": [1, 1]}}, {{"take": [2, 1]}}, {{"take": [1, 4]}}],
 "candidates": [{{"processes": 1, "threads": 1, "runtime": {{"value": 4}}}},
  {{"processes": 2, "threads": 1, "runtime": {{"value": 2}}}},
  {{"processes": 1, "threads": 4, "runtime": {{"value": 1}}}}]}}
END
"""
LAUNCHER = """#!/bin/sh
[ "$1" = --version ] && echo launcher 1 && exit
[ -s {results} ] || exit 9
echo "$1 x $OMP_NUM_THREADS: $2 $3" >> {log}
case "$2 $1x$OMP_NUM_THREADS" in
"square 2x"*) exit 1;;
*1x1) echo "took 4 s";;
*2x1|*1x2) echo "took 2 s";;
"even 1x4") echo "took 1.5 s";;
*) echo "took 1 s";;
esac
"""


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Play with a popmodel and a launcher that know their times; the log has what was started."""
    places = {"log": tmp_path / "log", "results": tmp_path / "kept" / "result.json"}
    for name, text in (("popmodel", STUDY), ("launch", LAUNCHER)):
        (tmp_path / name).write_text(text.format(**places))
        (tmp_path / name).chmod(0o755)
    (tmp_path / "programs.toml").write_text(PROGRAMS)
    here = SimpleNamespace(usable_cores=4, sockets=1)
    monkeypatch.setattr(hardware, "here", lambda: here)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def run(*options: str) -> dict[str, Any]:
        DRIVER["main"](
            [
                *("--also", str(tmp_path), "--only", "even,square", "--launch", "launch {P}"),
                *("--machine", str(tmp_path / "machine.json")),
                *("--into", str(places["results"]), "--repeats", "3", *options),
            ]
        )
        found: dict[str, Any] = json.loads(places["results"].read_text())
        return found

    return run


def test_predictions_are_stored_with_their_hash_before_any_split_is_run(
    play: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    found = play()  # the launcher fails where the predictions are not there yet
    for game in found["programs"].values():
        assert game["sha256"] == DRIVER["hash_of"](game["prediction"])
        assert found["begin"]["date"] <= game["predicted"]["date"] <= found["measured"]["date"]
    changed = found["programs"]["even"]["prediction"] | {"choice": "4x1"}
    assert DRIVER["hash_of"](changed) != found["programs"]["even"]["sha256"]
    started = (tmp_path / "log").read_text().splitlines()
    assert [line.startswith("study") for line in started[:3]] == [True, True, False]
    assert "--set N=1,2 --target N=4 --cores 1,2,4 -- launch {P} even {N}" in started[0]


def test_all_splits_are_run_in_turn_and_those_refused_are_left_out(
    play: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    programs = play()["programs"]
    assert {
        split: len(times) for split, times in programs["even"]["times"].items()
    } == dict.fromkeys(("1x1", "1x2", "1x4", "2x1", "2x2", "4x1"), 3)
    assert set(programs["square"]["times"]) == {"1x1", "1x2", "1x4", "4x1"}
    started = [line for line in (tmp_path / "log").read_text().splitlines() if "even 4" in line]
    splits = [line.partition(":")[0] for line in started if "study" not in line]
    assert splits[:6] == ["1 x 1", "1 x 2", "2 x 1", "1 x 4", "2 x 2", "4 x 1"]
    assert splits[6:8] == ["1 x 2", "2 x 1"]  # another one begins


def test_the_score_is_that_by_hand(play: Callable[..., dict[str, Any]]) -> None:
    """Even: 1.5 s of 1 x 4, which popmodel takes, against 1 s; square: no answer, the slowest."""
    found = play()
    even, square = (found["programs"][name]["regrets"] for name in ("even", "square"))
    assert even == pytest.approx(
        {"popmodel": 0.5, "all MPI": 0, "one process per socket": 0.5, "random": 0.5 / 3}
    )
    assert square == {"popmodel": 3, "all MPI": 0, "one process per socket": 0, "random": 0}
    assert found["programs"]["square"]["prediction"]["why"].endswith("no run was made")
    score = found["score"]["popmodel"]
    assert (score["mean"], score["worst"]) == (1.75, 3)
    assert score["low"] == pytest.approx(0.5)  # both drawn programs are the same one
    assert score["high"] == pytest.approx(3)


def test_no_round_is_begun_after_the_time_but_three_are_made(
    play: Callable[..., dict[str, Any]],
) -> None:
    times = play("--minutes", "0", "--repeats", "5")["programs"]["even"]["times"]
    assert {len(some) for some in times.values()} == {3}


def test_no_program_is_measured_at_a_size_that_its_study_runs() -> None:
    own = DRIVER["read_programs"](FOLDER, Path("bin"))
    for program in own.values():
        assert {"command", "set", "target", "time", "build"} <= set(program)
        (parameter,) = program["target"]
        assert max(program["set"][parameter]) < program["target"][parameter]
