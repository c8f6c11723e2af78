"""``popmodel predict``."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from popmodel.model import reduced_run
from popmodel.prediction import split_choice

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
WAVE = """
schema = "popmodel/signature/1"
[app]
name = "wave"
[params]
blocks = 2
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
SVG = "{http://www.w3.org/2000/svg}"
RUN = ("predict", "--cores", "64")


@pytest.mark.parametrize("width", [60, 80])
def test_the_screen_has_all_splits_and_what_to_take(
    shown: Call, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    status, out, err = shown(*RUN)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith("stencil3d (bundled)  N=512 steps=100 ")
    assert lines[0].endswith(" 64 cores")
    (head,) = [line for line in lines if line.startswith("  P x T")]
    assert head.split() == ["P", "x", "T", "runtime", "s", "90", "%", "PE", "%", "best", "mem/proc"]
    marked = [line for line in lines if line.startswith("* ")]
    assert len(marked) == 1
    rows = lines[lines.index(head) + 1 : lines.index("", lines.index(head))]
    splits = [re.match(r"[ *] +(\d+) x (\d+)", line) for line in rows]
    assert [(one[1], one[2]) for one in splits if one] == [
        (str(64 // threads), str(threads)) for threads in (1, 2, 4, 8, 16, 32, 64)
    ]
    assert any(line.startswith("   2 x 32  not possible: a node has 16 cores") for line in lines)
    assert any(line.startswith("recommended   32 x 2, expected loss ") for line in lines)
    assert any(line.startswith("equally good  32 x 2 (") for line in lines)
    assert any(line.startswith("defaults      all MPI (64 x 1): +") for line in lines)
    assert any(line.startswith("              one process per socket (8 x 8): +") for line in lines)
    assert any(line.startswith("replay        5 splits; closed form up to 2.") for line in lines)
    assert any(line.startswith("uncertainty   law of serial code (law.serial") for line in lines)
    assert any(line.startswith("OMP_NUM_THREADS=2 ") for line in lines)
    assert any(line.startswith("srun -N 4 -n 32 ") for line in lines)
    assert any(line.startswith("mpirun -np 32 ") for line in lines)


def test_a_narrow_screen_leaves_out_columns_and_says_so(
    shown: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    out = shown(*RUN)[1]
    (head,) = [line for line in out.splitlines() if line.startswith("  P x T")]
    assert head.split() == ["P", "x", "T", "runtime", "s", "PE", "%", "best"]
    assert "not shown (terminal too narrow):\nmem/proc, 90 %\n" in out


def test_many_splits_refused_for_one_reason_share_a_line(popmodel: Call) -> None:
    out = popmodel("predict", "--cores", "128")[1]
    assert "    4 x 32 .. 1 x 128  not possible: a node has 16 cores, fewer than 32" in out
    assert out.count("not possible") == 1


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


def test_the_document_and_the_records(shown: Call) -> None:
    document = json.loads(shown(*RUN, "--format", "json")[1])
    assert document["schema"] == "popmodel/sweep/1"
    assert document["best"][0] == [32, 2]
    paths = [source["path"] for source in document["provenance"]["inputs"]]
    assert [path.rpartition(".")[2] for path in paths] == ["toml", "json"]
    rows = list(csv.DictReader(io.StringIO(shown(*RUN, "--format", "csv")[1])))
    assert len(rows) == len(document["candidates"]) + len(document["refused"])
    assert {row["cores"] for row in rows} == {"64"}
    assert rows[-1]["absent"] == "a node has 16 cores, fewer than 64 threads"


def test_cores_without_a_split_are_told_after_the_result_of_the_others(shown: Call) -> None:
    words = ("predict", "--cores", "4096,16,2048,2000000")
    status, out, err = shown(*words)
    assert status == 1
    assert err == (
        "popmodel: error: stencil3d: no split of 4096 cores is possible: it needs 256 nodes, the "
        "profile has 64; 2048, 2000000 cores are not possible either\n"
        "hint: possible: 1024 cores for stencil3d, or --nodes 256 if the machine has as many\n"
    )
    assert "\n16 cores\n" in out
    assert re.search(r"\n4,096 cores\n +4096 x 1 +\.\. ", out)
    document = json.loads(shown(*words, "--format", "json")[1])
    assert [one["cores"] for one in document["choices"]] == [16]
    assert [one["cores"] for one in document["impossible"]] == [4096, 2048, 2_000_000]
    assert shown("predict", "--cores", "4096,2048")[:2] == (2, "")


def test_the_drawing_names_cores_without_a_split(popmodel: Call) -> None:
    out = popmodel("predict", "--cores", "16,4096", "--format", "svg")[1]
    assert "no split of 4096 cores is possible: it needs 256 nodes" in out


def test_the_imbalance_can_be_set(popmodel: Call) -> None:
    words = (*RUN, "--format", "json")
    even, uneven = (
        json.loads(popmodel(*words, "--imbalance", text)[1])
        for text in ("persistent=0,transient=0", "persistent=0.2")
    )
    assert uneven["application"]["imbalance"] == {"persistent_cv": 0.2}
    fastest = [min(one["runtime"]["value"] for one in d["candidates"]) for d in (even, uneven)]
    assert fastest[0] < fastest[1]


def test_a_sweep_over_some_nodes_or_some_of_their_cores(popmodel: Call) -> None:
    spread = json.loads(popmodel(*RUN, "--nodes", "8", "--format", "json")[1])
    assert {one["nodes"] for one in spread["candidates"]} == {8}
    reasons = {one["threads"]: one["why"] for one in spread["refused"]}
    assert reasons[16] == "8 nodes for 4 processes"
    half = json.loads(popmodel(*RUN, "--cores-per-node", "8", "--format", "json")[1])
    assert {one["nodes"] for one in half["candidates"]} == {8}
    assert max(one["threads"] for one in half["candidates"]) == 8
    status, _, err = popmodel(*RUN, "--nodes", "0")
    assert (status, err.splitlines()[0]) == (
        2,
        "popmodel: error: --nodes: must be a whole number, at least 1, not '0'",
    )


def test_markdown(shown: Call) -> None:
    out = shown(*RUN, "--format", "markdown")[1]
    assert "| P x T | runtime s | 90 % | PE % | best | mem/proc |\n" in out
    assert "- **recommended**: 32 x 2, expected loss" in out
    assert out.count("\n- **defaults**: ") == 1
    assert out.count("\n  - ") == 2  # the other defaults
    assert "```sh\nOMP_NUM_THREADS=2" in out


def test_what_to_measure_is_told_where_the_choice_may_cost_much(popmodel: Call) -> None:
    """A run tells which split is better; a benchmark the largest input that it measures."""
    out = " ".join(popmodel("predict", "--cores", "32")[1].split())
    assert re.search(
        r"uncertainty law of [a-z ]+ \(law\.\w+\), \d\d % of the variance; "
        r"measure a run of \d+ x \d to decide; "
        r"largest that a benchmark measures: [a-z, ]+ \((?!law)[\w.]+\), \d+ % of the variance "
        r"measure, then add --machine machine\.json: popmodel machine measure ",
        out,
    )


def test_a_small_loss_is_not_worth_a_measurement(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_choice, "WORTH", 0.2)
    lines = popmodel(*RUN)[1].splitlines()
    assert any(line.startswith("uncertainty   none that matters: measuring") for line in lines)
    assert not any(line.startswith("  popmodel machine measure") for line in lines)


def test_a_drawing(shown: Call, tmp_path: Path) -> None:
    path = tmp_path / "sweep.svg"
    assert shown("predict", "--cores", "16,64", "-o", str(path)) == (0, "", "")
    root = ET.fromstring(path.read_text())
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    for split in ("16 x 1", "1 x 16", "64 x 1", "8 x 8", "4 x 16"):
        assert texts.count(split) == 2  # below the runtime and below the efficiency
    assert "Not possible: 2 x 32: a node has 16 cores, fewer than 32 threads" in texts
    assert texts[0].startswith("stencil3d (bundled) N=512 steps=100: runtime and parallel")
    assert {"Runtime (s)", "Parallel efficiency (%)", "processes x threads"} < set(texts)
    metadata = json.loads(root.findtext(f"{SVG}metadata") or "")
    assert metadata["command"].endswith("sweep.svg")
    assert shown("predict", "--cores", "16", "--format", "svg")[1].startswith("<?xml ")


def test_the_unit_of_a_drawing_suits_the_runtime(popmodel: Call) -> None:
    out = popmodel("predict", "--cores", "16", "--set", "steps=2", "--format", "svg")[1]
    assert ">Runtime (ms)<" in out


def test_a_suffix_of_no_format_is_refused(popmodel: Call) -> None:
    status, _, err = popmodel("predict", "--procs", "4", "-o", "x.pdf")
    assert status == 2
    assert "-o x.pdf: cannot tell the format from the suffix\n" in err
    assert "hint: use .json, .csv, .md, .txt, .svg or .html, or give --format\n" in err


def test_long_work_is_counted_on_a_terminal(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    words = ("predict", "--cores", "4")
    assert popmodel(*words)[2] == ""  # it takes less than a moment
    monkeypatch.setattr("popmodel.cli.progress.PATIENCE", 0.0)
    err = popmodel(*words)[2]
    assert "\r\x1b[K3 of 3 splits" in err
    assert err.endswith("\r\x1b[K")


def test_several_numbers_of_cores(shown: Call) -> None:
    out = shown("predict", "--cores", "16,64")[1]
    assert out.splitlines()[0].endswith(" 16, 64 cores")
    assert out.count("recommended   ") == 2
    assert "\n16 cores\n" in out
    assert "\n64 cores\n" in out
    assert "\n# 64 cores\nOMP_NUM_THREADS=2 " in out
    assert re.search(
        r" 64 cores are 3\.\d\d times as fast as 16 \(90 %: 3\.\d\d \.\. 4\.\d\d\) at 9\d % of the "
        r"efficiency: \d+ % more core time per run \(PE 9\d\.\d -> \d\d\.\d %\) ",
        " ".join(out.split()),
    )


@pytest.mark.long
def test_the_largest_number_of_cores_that_keeps_an_efficiency(
    popmodel: Call, few_nodes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    status, out, err = popmodel("predict", "--efficiency", "82%", "--machine", few_nodes)
    assert (status, err) == (0, "")
    assert out.splitlines()[0].endswith(" 32 cores")
    told = " ".join(out[out.index("largest  ") : out.index("  P x T")].split())
    found = re.fullmatch(
        r"largest 32 cores keep a parallel efficiency of 82 %: 16 x 2, the fastest split, has "
        r"(\d\d\.\d) % \(90 %: \d\d\.\d \.\. \d\d\.\d\); 48 cores have (\d\d\.\d) %",
        told,
    )
    assert found is not None
    assert float(found[2]) < 82 <= float(found[1])
    all_of_it = popmodel("predict", "cannon", "--efficiency", "0.8", "--format", "markdown")[1]
    assert "; the machine has no more cores\n" in all_of_it


def test_splits_that_are_too_large_for_a_replay_are_not_compared_with_replays(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(reduced_run, "MOST_AT_ONCE", 1000)
    monkeypatch.setattr(reduced_run, "FEWEST", 64)
    out = popmodel(*RUN)[1]
    assert re.search(r"\n  64 x 1 \^ +1\.\d{3} .* 8\d\.\d +-  ", out)
    assert "\n^ closed form, not compared with replays: too large to replay: " in out
    assert _line(out, "replay").endswith("; not 64 x 1: too large")
    assert "all MPI (64 x 1): not compared\n" in out
    rows = list(csv.DictReader(io.StringIO(popmodel(*RUN, "--format", "csv")[1])))
    assert [row["probability_best"] == "" for row in rows[:5]] == [True, *[False] * 4]
    drawing = popmodel(*RUN, "--format", "svg")[1]
    assert ">-</text>" in drawing


def test_where_nothing_can_be_replayed_the_closed_form_compares(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(reduced_run, "MOST_AT_ONCE", 1)
    out = popmodel(*RUN)[1]
    told = _line(out, "replay")
    assert told.startswith("none, closed form: 64 x 1: too large to replay: ")
    assert told.endswith("; likewise 4 other splits")
    assert "^" not in out


def _line(screen: str, name: str) -> str:
    """What the line of a name says."""
    (line,) = [line for line in screen.splitlines() if line.startswith(f"{name} ")]
    return line.removeprefix(name).strip()


@pytest.fixture
def even(tmp_path: Path) -> str:
    """A program that only computes: its splits take equally long."""
    (tmp_path / "even.toml").write_text(EVEN)
    return str(tmp_path / "even.toml")


def test_equally_good_splits_do_not_stand_out_and_the_simplest_is_recommended(
    shown: Call, even: str
) -> None:
    out = " ".join(shown("predict", even, "--cores", "4")[1].split())
    assert (
        "recommended 4 x 1, the simplest (all MPI): none stands out, all 3 are predicted within "
        "2 %; expected loss "
    ) in out
    assert " uncertainty law of parallel loops " in out
    document = json.loads(shown("predict", even, "--cores", "4", "--format", "json")[1])
    assert document["choices"][0]["indifferent"] is True
    assert document["choices"][0]["take"] == [4, 1]


def test_splits_do_not_matter_if_a_wrong_one_costs_nothing(
    popmodel: Call, even: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(split_choice, "WORTH", 0.2)
    out = popmodel("predict", even, "--cores", "4")[1]
    assert (
        "recommended 4 x 1, the simplest (all MPI): the split does not matter, all 3 are equally "
        "good (within 2 %)"
    ) in " ".join(out.split())
    assert "\nuncertainty" not in out


def test_the_only_possible_split_is_told(popmodel: Call) -> None:
    out = popmodel("predict", "cannon", "--cores", "7", "--set", "N=512", "--max-memory", "1GiB")[1]
    assert "recommended  1 x 7, the only split that is possible\n" in out


def test_one_core_keeps(popmodel: Call, few_nodes: str, tmp_path: Path) -> None:
    (tmp_path / "wave.toml").write_text(WAVE.replace("blocks = 2", "blocks = 1"))
    words = ("predict", str(tmp_path / "wave.toml"), "--machine", few_nodes)
    told = popmodel(*words, "--efficiency", "0.99")[1]
    assert "\nlargest  1 core keeps a parallel efficiency of 99 %: 1 x 1, the fastest split" in told


def test_another_machine_can_be_tried(popmodel: Call) -> None:
    out = popmodel(*RUN, "--what-if", "latency=0.5x,bandwidth=2")[1]
    assert "what if  latency 0.5x, bandwidth 2x\n" in out


@pytest.mark.long(after=14)
@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("predict",), "--cores is missing", "try --cores 64"),
        (
            (*RUN, "--efficiency", "0.8"),
            "--cores and --efficiency cannot be combined",
            "leave one of them out",
        ),
        (
            ("predict", "--efficiency", "80"),
            "--efficiency: must be above 0 and at most 1, not '80'",
            "try --efficiency 0.8 or --efficiency 80%",
        ),
        (
            ("predict", "--cores", "2000000000"),
            "2000000000 cores are more than any machine has",
            "ask for at most 1000000000",
        ),
        (("predict", "--cores", "x"), "--cores: must be a whole number, at least 1, not 'x'", None),
        (("predict", "--cores", "0"), "--cores: must be a whole number, at least 1, not '0'", None),
        (
            (*RUN, "--what-if", "latncy=2"),
            "--what-if latncy=2: unknown name 'latncy'",
            "did you mean latency?",
        ),
        (
            (*RUN, "--what-if", "gpu=2"),
            "--what-if gpu=2: unknown name 'gpu'",
            "known: latency, bandwidth, memory, clock, openmp, imbalance",
        ),
        (
            (*RUN, "--what-if", "clock=0x"),
            "--what-if clock=0x: must be a factor above 0",
            "0.5 halves, 2 doubles",
        ),
        (
            (*RUN, "--what-if", "clock=2,clock=3"),
            "--what-if clock=3: clock is given twice",
            "leave one of them out",
        ),
        (
            (*RUN, "-o", "x.pdf"),
            "-o x.pdf: cannot tell the format from the suffix",
            "use .json, .csv, .md, .txt, .svg or .html, or give --format",
        ),
        ((*RUN, "--set", "M=3"), "stencil3d has no parameter 'M'", "its parameters: N, steps"),
        ((*RUN, "--max-memory", "lots"), "--max-memory: 'lots'", None),
        (
            ("predict", "cannon", "--cores", "64", "--max-memory", "1KiB"),
            "cannon: no split of 64 cores fits into --max-memory: 64 x 1: needs 40 MiB "
            "per process, more than 1 KiB\n",
            "allow more memory, or ask for more cores",
        ),
        (
            ("predict", "cannon", "--efficiency", "100%"),
            "cannon: no number of cores has a parallel efficiency of 100 %",
            "the highest is slightly less, on 1 core",
        ),
    ],
)
def test_wrong_usage_is_told(
    popmodel: Call, words: tuple[str, ...], message: str, hint: str | None
) -> None:
    status, out, err = popmodel(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert "\nhint: " in err
    if hint is not None:
        assert err.endswith(f"hint: {hint}\n")
