"""``popmodel predict --procs``: one run; what all its questions have in common."""

from __future__ import annotations

import json
import subprocess
from itertools import product
from pathlib import Path

import pytest

from popmodel.reports.renderers.text import command_lines

from .conftest import Call

RUN = ("predict", "--procs", "16", "--threads", "4")


def test_a_screen_fits_its_terminal(shown: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (40, 50, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        brief, whole = (shown(*RUN, *more)[1] for more in ((), ("--all",)))
        assert max(map(len, [*brief.splitlines(), *whole.splitlines()])) <= width
        assert ("\n not shown (terminal too narrow): 90 %\n" in brief) == (width <= 50)
        trees = whole.count("\nParallel efficiency ")  # intervals are continued below
        assert trees == (2 if width <= 50 else 1)


def test_the_screen_says_what_the_document_says(shown: Call) -> None:
    document = json.loads(shown(*RUN, "--format", "json")[1])
    assert (document["processes"], document["threads"]) == (16, 4)
    assert document["trust"] == {"ok": True, "why": "no measured range (preset values)"}
    (row,) = [
        line for line in shown(*RUN)[1].splitlines() if line.startswith("Parallel efficiency ")
    ]
    value = document["metrics"]["hybrid-additive"]["parallel_efficiency"]["value"]
    assert f"{100 * value:.1f}" in row
    assert sum(part["value"] for part in document["time"].values()) == pytest.approx(
        document["runtime"]["value"]
    )
    paths = [source["path"] for source in document["provenance"]["inputs"]]
    assert [path.rpartition(".")[2] for path in paths] == ["toml", "json"]


def test_the_reference_of_scaling_can_be_chosen(shown: Call) -> None:
    chosen = json.loads(shown(*RUN, "--reference", "16x1,N=256", "--format", "json")[1])
    assert (chosen["reference"]["processes"], chosen["reference"]["threads"]) == (16, 1)
    assert chosen["reference"]["settings"] == {"N": 256}
    assert chosen["reference"]["mode"] == "weak"
    values = {id: estimate["value"] for id, estimate in chosen["metrics"]["scaling"].items()}
    assert values["speedup"] == pytest.approx(
        chosen["reference"]["work_ratio"]["value"]
        * chosen["reference"]["runtime"]["value"]
        / chosen["runtime"]["value"]
    )
    screen = shown(*RUN, "--reference", "16x1", "--family", "scaling", "--all")[1]
    assert "\nreference  16 x 1, predicted " in screen


def test_where_nothing_is_lost_nothing_is_marked(popmodel: Call) -> None:
    screen = popmodel("predict", "--procs", "1", "--all")[1]
    assert "100.0" in screen
    assert "<-" not in screen


def test_an_exact_value_says_why_it_has_no_interval(shown: Call) -> None:
    for form in (("--all",), ("--format", "markdown")):
        lines = shown("predict", "cannon", *RUN[1:], *form)[1].splitlines()
        (row,) = [line for line in lines if "Serial region efficiency" in line]
        assert row.rstrip(" |").endswith("-[1]")
        assert "[1] no uncertain input acts on it" in lines


@pytest.mark.long
def test_a_run_can_be_spread_over_more_nodes(popmodel: Call) -> None:
    document = json.loads(popmodel(*RUN, "--nodes", "8", "--format", "json")[1])
    assert document["placement"]["nodes"] == 8
    assert document["placement"]["processes_per_node"] == 2
    lines = popmodel(*RUN, "--cores-per-node", "8")[1].splitlines()
    assert "place    8 nodes x 2 processes x 4 cores, grid 2x2x4" in lines
    assert any(line.startswith("srun -N 8 -n 16 -c 8 --ntasks-per-node=2 ") for line in lines)


def test_conditions(popmodel: Call) -> None:
    met = "hybrid-additive.parallel_efficiency is 0.7243, less than 0.8"
    status, out, err = popmodel(*RUN, "--fail-if", "parallel_efficiency < 80%")
    assert (status, err) == (3, f"popmodel: error: {met}\n")
    assert "Parallel efficiency" in out
    assert popmodel(*RUN, "--fail-if", "runtime > 10")[0] == 0
    assert "unknown value 'talp.speed'" in popmodel(*RUN, "--fail-if", "talp.speed < 1")[2]
    status, _, err = popmodel(*RUN, "--fail-if", "mpi.global_efficiency < 1")
    assert status == 1
    assert "no value for mpi.global_efficiency (processes have several threads" in err


def test_launch_lines_fit_and_mean_the_same() -> None:
    command = "A=1 B=2 \\\nsrun -N 4 -n 16 -c 4 --ntasks-per-node=4 --cpu-bind=cores ./app"
    lines = command_lines(command, 40)
    assert lines == [
        "A=1 B=2 \\",
        "srun -N 4 -n 16 -c 4 \\",
        "  --ntasks-per-node=4 --cpu-bind=cores \\",
        "  ./app",
    ]
    assert command_lines("one", 40) == ["one"]
    echoed = "\n".join(command_lines("X=1 \\\necho a b c d e f g h i j k l m n o p q", 20))
    shell = subprocess.run(echoed, shell=True, capture_output=True, text=True, check=True)
    assert shell.stdout == "a b c d e f g h i j k l m n o p q\n"


LOOP = """
schema = "popmodel/signature/1"
[app]
name = "loop"
[[program]]
parallel = { trip = 1200, flops = 1 }
"""


def test_table_3_of_adhianto_and_chapman(shown: Call, tmp_path: Path) -> None:
    """One loop of 0.2895 s with the printed overheads; its threads seem to share a core."""
    overheads = [0.013, 0.144, 0.179, 0.203]
    seconds = [{"value": value, "origin": "user"} for value in overheads]
    machine = {
        "schema": "popmodel/machine/1",
        "name": "one node of the paper",
        "topology": {"cores_per_node": 4},
        "core": {
            "freq": {"1": {"value": 1200 / 0.2895, "origin": "user"}},
            "flop_per_cycle": {"value": 1, "origin": "user"},
            "loop_cycles": {"value": 0, "origin": "user"},
        },
        "openmp": {"parallel_for": {"T": [1, 2, 3, 4], "seconds": seconds}},
    }
    (tmp_path / "loop.toml").write_text(LOOP)
    (tmp_path / "node.json").write_text(json.dumps(machine))
    files = (str(tmp_path / "loop.toml"), "--machine", str(tmp_path / "node.json"))
    found = []
    for threads in range(1, 5):
        split = ("--procs", "1", "--threads", str(threads))
        found.append(json.loads(shown("predict", *files, *split, "--format", "json")[1]))
        screen = " ".join(shown("predict", *files, *split, "--all")[1].split())
        assert ("the threads bring no speed-up, as if they shared a core" in screen) == (
            threads > 1
        )
    assert [one["e_mt"]["value"] for one in found] == pytest.approx(
        [0.957, 0.501, 0.350, 0.263], abs=5e-4
    )
    assert [one["runtime"]["value"] for one in found] == pytest.approx(
        [0.2895 / (n + 1) + overhead for n, overhead in enumerate(overheads)]
    )


def test_numbers_too_large_to_compute_with_are_one_line(popmodel: Call, few_nodes: str) -> None:
    # A warning of NumPy would be an error here, and so an unexpected one.
    settings = ("N=1e300", "N=1e120", "steps=1e300", "steps=1e305")
    for size, setting in product(("--procs", "--cores"), settings):
        words = ("predict", size, "4", "--set", setting, "--machine", few_nodes)
        status, out, err = popmodel(*words)
        assert (status in (1, 2), out) == (True, ""), words
        first, hint = err.splitlines()
        assert first.startswith("popmodel: error: ")
        assert "unexpected" not in first
        assert hint.startswith("hint: ")


@pytest.mark.long
def test_the_imbalance_can_be_set(popmodel: Call) -> None:
    words = ("predict", "--procs", "16", "--format", "json")
    document = json.loads(popmodel(*words, "--imbalance", "persistent=5%, transient=0.02")[1])
    assert document["application"]["imbalance"] == {"persistent_cv": 0.05, "transient_cv": 0.02}
    even = json.loads(popmodel(*words, "--imbalance", "persistent=0,transient=0")[1])
    assert even["inputs"]["imbalance.persistent_cv"]["source"] == "set for this prediction"
    balance = "process_load_balance"
    by_hand = [one["metrics"]["hybrid-additive"][balance]["value"] for one in (document, even)]
    assert by_hand[0] < by_hand[1] == 1.0
    screen = popmodel("predict", "--procs", "16", "--imbalance", "transient=0.02")[1]
    assert screen.startswith("stencil3d (bundled)  N=512 steps=100 transient_cv=0.02")
    formula = json.loads(popmodel(*words, "--formula", "runtime", "--imbalance", "persistent=0")[1])
    assert formula["application"]["imbalance"] == {"persistent_cv": 0.0}
