"""``popmodel predict --cores`` and ``--efficiency``: all splits of some cores."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import popmodel
from popmodel.model import replayed_run
from popmodel.prediction import split_choice

from .conftest import Call

WAVE = """
schema = "popmodel/signature/1"
[app]
name = "wave"
[params]
blocks = 1
[decomp]
global = [4096, 4096]
grid = "auto"
[[program]]
loop = { name = "iteration", count = 50 }
  [[program.body]]
  [program.body.pipeline]
  name = "sweep"
  dims = [0, 1]
  blocks = "blocks"
  seconds = "1e-8*n0*n1"
  bytes = "8*n1/blocks"
"""
EVEN = """
schema = "popmodel/signature/1"
[app]
name = "even"
[[program]]
parallel = { trip = "4e8/P", flops = 8 }
"""
RUN = ("predict", "--cores", "64")


def told(popmodel: Call, *words: str) -> str:
    """The whole screen on one line."""
    status, out, err = popmodel("predict", *words, "--all")
    assert (status, err) == (0, "")
    return " ".join(out.split())


def document(popmodel: Call, *words: str) -> Any:
    return json.loads(popmodel("predict", *words, "--format", "json")[1])


def test_a_narrow_screen_leaves_out_columns_and_says_so(
    shown: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "not shown (terminal too narrow): "
    for width, left_out in {60: "", 50: "mem/proc", 40: "mem/proc, 90 %"}.items():
        monkeypatch.setenv("COLUMNS", str(width))
        out = shown(*RUN)[1]
        assert max(map(len, out.splitlines())) <= width
        assert (said + left_out in " ".join(out.split())) == bool(left_out)


def test_colours_repeat_what_the_figures_say(shown: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    plain = shown(*RUN)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = shown(*RUN)[1]
    assert coloured.count("\x1b[0m") == 2 * 5  # runtime and efficiency of every possible split
    without = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert without.splitlines()[:20] == plain.splitlines()[:20]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(*RUN)[1]


def test_many_rows_are_few_on_a_screen_with_a_word_on_the_others(popmodel: Call) -> None:
    out = popmodel("predict", "--cores", "240")[1]
    found = re.search(r"\nand (\d+) other splits, none of them recommended\n", out)
    rows = re.findall(r"\n[ *] +\d+ x \d+ +[\d.]+ ", out)
    whole = document(popmodel, "--cores", "240")
    assert found is not None
    assert len(rows) + int(found[1]) == len(whole["candidates"])
    assert f"\nand {len(whole['refused'])} splits that are not possible\n" in out
    assert "128 .. " not in out
    refused = popmodel("predict", "--cores", "128", "--all")[1]
    assert "    4 x 32 .. 1 x 128  not possible: a node has 16 cores, fewer than 32" in refused
    assert refused.count("not possible") == 1


def test_cores_without_a_split_are_told_after_the_result_of_the_others(shown: Call) -> None:
    words = ("predict", "--cores", "4096,16,2048,2000000")
    status, out, err = shown(*words, "--all")
    assert status == 1
    assert err == (
        "popmodel: error: stencil3d: no split of 4096 cores is possible: it needs 256 nodes, the "
        "profile has 64; 2048, 2000000 cores are not possible either\n"
        "hint: possible: 1024 cores for stencil3d, or --nodes 256 if the machine has as many\n"
    )
    assert re.search(r"\n4,096 cores\n +4096 x 1 +\.\. ", out)
    found = document(shown, *words[1:])
    assert [one["cores"] for one in found["choices"]] == [16]
    assert [one["cores"] for one in found["impossible"]] == [4096, 2048, 2_000_000]
    assert shown("predict", "--cores", "4096,2048")[:2] == (2, "")


def test_the_imbalance_can_be_set(popmodel: Call) -> None:
    even, uneven = (
        document(popmodel, "--cores", "64", "--imbalance", text)
        for text in ("persistent=0,transient=0", "persistent=0.2")
    )
    assert uneven["application"]["imbalance"] == {"persistent_cv": 0.2}
    fastest = [min(one["runtime"]["value"] for one in d["candidates"]) for d in (even, uneven)]
    assert fastest[0] < fastest[1]


def test_splits_over_some_nodes_or_some_of_their_cores(popmodel: Call) -> None:
    spread = document(popmodel, "--cores", "64", "--nodes", "8")
    assert {one["nodes"] for one in spread["candidates"]} == {8}
    reasons = {one["threads"]: one["why"] for one in spread["refused"]}
    assert reasons[16] == "8 nodes for 4 processes"
    half = document(popmodel, "--cores", "64", "--cores-per-node", "8")
    assert {one["nodes"] for one in half["candidates"]} == {8}
    assert max(one["threads"] for one in half["candidates"]) == 8


def test_what_to_measure_is_told_where_the_choice_may_cost_much(popmodel: Call) -> None:
    """A run tells which split is better; a benchmark the largest input that it measures."""
    assert re.search(
        r"uncertainty law of [a-z ]+ \(law\.\w+\), \d\d % of the variance; "
        r"measure a run of \d+ x \d to decide; "
        r"largest that a benchmark measures: [a-z, ]+ \((?!law)[\w.]+\), \d+ % of the variance "
        r"measure, then add --machine machine\.json: popmodel ",
        told(popmodel, "--cores", "32"),
    )


def test_a_small_loss_is_not_worth_a_measurement(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_choice, "WORTH", 0.2)
    out = told(popmodel, "--cores", "64")
    assert " uncertainty none that matters: measuring " in out
    assert "measure, then" not in out


def test_long_work_is_counted_on_a_terminal(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    words = ("predict", "--cores", "4")
    monkeypatch.setattr("popmodel.cli.progress.PATIENCE", float("inf"))
    assert popmodel(*words)[2] == ""
    monkeypatch.setattr("popmodel.cli.progress.PATIENCE", 0.0)
    err = popmodel(*words)[2]
    assert "\r\x1b[K3 of 3 splits" in err
    assert err.endswith("\r\x1b[K")


@pytest.mark.long
def test_the_largest_number_of_cores_that_keeps_an_efficiency(
    popmodel: Call, few_nodes: str
) -> None:
    found = re.search(
        r" largest 32 cores keep a parallel efficiency of 82 %: 16 x 2, the fastest split, has "
        r"(\d\d\.\d) % \(90 %: \d\d\.\d \.\. \d\d\.\d\); 48 cores have (\d\d\.\d) % ",
        told(popmodel, "--efficiency", "82%", "--machine", few_nodes),
    )
    assert found is not None
    assert float(found[2]) < 82 <= float(found[1])
    all_of_it = told(popmodel, "cannon", "--efficiency", "0.8")
    assert "; the machine has no more cores " in all_of_it


@pytest.mark.long
def test_splits_that_are_too_large_for_a_replay_are_not_compared_with_replays(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_AT_ONCE", 1000)
    monkeypatch.setattr(replayed_run, "FEWEST", 64)
    out = told(popmodel, "--cores", "64")
    assert re.search(r" 64 x 1 \^ 1\.\d{3} \S+ 8\d\.\d - ", out)
    assert " ^ closed form, not compared with replays: too large to replay: " in out
    assert "; not 64 x 1: too large" in out
    assert " all MPI (64 x 1): not compared " in out
    chances = [one["probability_best"] for one in document(popmodel, "--cores", "64")["candidates"]]
    assert [one is None for one in chances] == [True, *[False] * 4]


def test_where_nothing_can_be_replayed_the_closed_form_compares(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayed_run, "MOST_AT_ONCE", 1)
    out = told(popmodel, "--cores", "64")
    assert " replay none, closed form: 64 x 1: too large to replay: " in out
    assert "; likewise 4 other splits" in out
    assert "^" not in out


def test_equally_good_splits_do_not_stand_out_and_the_simplest_is_recommended(
    popmodel: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "even.toml").write_text(EVEN)
    words = (str(tmp_path / "even.toml"), "--cores", "4")
    assert (
        "best of 4 cores: 4 x 1, the simplest (all MPI): none stands out, all 3 are predicted "
        "within 2 %; expected loss "
    ) in (out := told(popmodel, *words))
    assert " uncertainty law of parallel loops " in out
    found = document(popmodel, *words)
    assert found["choices"][0]["indifferent"] is True
    assert found["best"][0] == found["choices"][0]["take"] == [4, 1]
    monkeypatch.setattr(split_choice, "WORTH", 0.2)  # a wrong split then costs nothing
    assert (
        "4 x 1, the simplest (all MPI): the split does not matter, all 3 are equally "
        "good (within 2 %)"
    ) in (out := told(popmodel, *words))
    assert " uncertainty law" not in out


@pytest.mark.long
def test_one_core_keeps(popmodel: Call, few_nodes: str, tmp_path: Path) -> None:
    (tmp_path / "wave.toml").write_text(WAVE)
    words = (str(tmp_path / "wave.toml"), "--machine", few_nodes, "--efficiency", "0.99")
    out = told(popmodel, *words)
    assert " largest 1 core keeps a parallel efficiency of 99 %: 1 x 1, the fastest split" in out


def test_a_split_beyond_all_intervals_is_compared_with_those_within(tmp_path: Path) -> None:
    runs = tmp_path / "runs.csv"
    rows = ("1,1,100.2", "2,1,51.3", "4,1,26.8", "8,1,19.1", "1,2,52", "2,2,27.5", "1,4,29")
    runs.write_text("\n".join(("processes,threads,runtime", *rows)) + "\n")
    document = popmodel.predict(runs, cores=64).to_dict()
    assert document["best"][0] != [64, 1]
    assert not document["trust"]["ok"]
    assert all(one["probability_best"] is None for one in document["candidates"])
