"""``popmodel predict``."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from popmodel.reports.renderers.text import command_lines

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
RUN = ("predict", "--procs", "16", "--threads", "4")
CANNON = ("predict", "cannon", *RUN[1:])


@pytest.fixture(autouse=True)
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")


def test_the_screen_has_everything_within_60_columns(shown: Call) -> None:
    status, out, err = shown(*RUN)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[0].startswith("stencil3d (bundled)  N=512 steps=100 ")
    assert lines[0].endswith("  16 procs x 4 threads")
    assert lines[1].startswith("machine  ")
    assert lines[1].endswith("(preset, not measured)")
    assert lines[2] == "place    4 nodes x 4 processes x 4 cores, grid 2x2x4"
    assert any(line.startswith("runtime  ") and "90 %: " in line for line in lines)
    assert any(line.startswith("Parallel efficiency ") and " .. " in line for line in lines)
    (marked,) = [line for line in lines if " <-" in line]
    assert marked.startswith("  Serial region efficiency <-")
    # most of what only one thread does is to copy layers of the halo whose cells are a row apart
    (cause,) = [line for line in lines if line.startswith("<- ")]
    assert " lost: packing, columns " in cause
    assert any(line.startswith(" parallel loops ") and line.endswith("#") for line in lines)
    assert "OMP_NUM_THREADS=4 OMP_PLACES=cores OMP_PROC_BIND=close \\" in lines


def test_the_screen_says_what_the_document_says(shown: Call) -> None:
    document = json.loads(shown(*RUN, "--format", "json")[1])
    assert document["schema"] == "popmodel/predict/1"
    assert (document["processes"], document["threads"]) == (16, 4)
    assert set(document["runtime"]) >= {"value", "low", "high"}
    screen = shown(*RUN)[1]
    shown = next(line for line in screen.splitlines() if line.startswith("Parallel efficiency"))
    value = document["metrics"]["hybrid-additive"]["parallel_efficiency"]["value"]
    assert f"{100 * value:.1f}" in shown
    assert sum(part["value"] for part in document["time"].values()) == pytest.approx(
        document["runtime"]["value"]
    )
    paths = [source["path"] for source in document["provenance"]["inputs"]]
    assert [path.rpartition(".")[2] for path in paths] == ["toml", "json"]


def test_other_families_can_be_shown(shown: Call) -> None:
    screen = shown(*RUN, "--family", "talp,mpi")[1]
    assert "MPI + OpenMP (TALP)" in screen
    assert "MPI + OpenMP (additive)" not in screen
    # A process is its master to the families of MPI alone: they have no scaling of all threads.
    (row,) = [line for line in screen.splitlines() if line.startswith("Global efficiency ")]
    number = row.split()[-1]
    assert f"\n{number[1:]} processes have several threads: " in screen


def test_the_reference_of_scaling_can_be_chosen(shown: Call) -> None:
    document = json.loads(shown(*RUN, "--format", "json")[1])
    assert (document["reference"]["processes"], document["reference"]["threads"]) == (1, 1)
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
    screen = shown(*RUN, "--reference", "16x1", "--family", "scaling")[1]
    assert "\nreference  16 x 1, predicted " in screen
    assert " (asked" in screen


def test_where_nothing_is_lost_nothing_is_marked(popmodel: Call) -> None:
    screen = popmodel("predict", "--procs", "1", "--threads", "1")[1]
    assert "100.0" in screen
    assert "<-" not in screen


def test_an_exact_value_says_why_it_has_no_interval(shown: Call) -> None:
    for form in ("table", "markdown"):
        lines = shown(*CANNON, "--format", form)[1].splitlines()
        (row,) = [line for line in lines if "Serial region efficiency" in line]
        assert row.rstrip(" |").endswith("-[1]")
        assert "[1] no uncertain input acts on it" in lines


def test_a_narrow_screen_has_the_tree_once(shown: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = shown(*RUN)[1].splitlines()
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith("Parallel efficiency ") for line in lines) == 1
    after = lines[lines.index(next(line for line in lines if line.startswith(" Process eff"))) + 1]
    assert after.startswith("   90 %: 9")
    assert " ".join(lines).count("where the time goes") == 1
    assert any(line.startswith(" imbalance and waiting ") for line in lines)
    assert "#" not in "".join(lines)


@pytest.mark.long
def test_a_run_can_be_spread_over_more_nodes(popmodel: Call) -> None:
    document = json.loads(popmodel(*RUN, "--nodes", "8", "--format", "json")[1])
    assert document["placement"]["nodes"] == 8
    assert document["placement"]["processes_per_node"] == 2
    lines = popmodel(*RUN, "--cores-per-node", "8")[1].splitlines()
    assert "place    8 nodes x 2 processes x 4 cores, grid 2x2x4" in lines
    assert "srun -N 8 -n 16 -c 8 --ntasks-per-node=2 \\" in lines


def test_parameters_are_set(popmodel: Call) -> None:
    document = json.loads(popmodel(*RUN, "--set", "N=256", "--format", "json")[1])
    assert document["application"]["settings"]["N"] == 256


def test_csv_and_markdown(shown: Call) -> None:
    rows = list(csv.DictReader(io.StringIO(shown(*RUN, "--format", "csv")[1])))
    values = {(row["family"], row["metric"]): row for row in rows}
    assert float(values["", "runtime"]["value"]) > 0
    assert values["mpi", "global_efficiency"]["absent"].startswith("processes have several ")
    assert float(values["scaling", "speedup"]["value"]) > 1
    out = shown(*RUN, "--format", "markdown")[1]
    assert "| MPI + OpenMP (additive) | % | 90 % |\n" in out
    assert "```sh\nOMP_NUM_THREADS=4" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["predict"],
            "--procs is missing\nhint: try --procs 16",
        ),
        (
            ["predict", "--procs", "few"],
            "--procs: must be a whole number, at least 1, not 'few'\nhint: try --procs 4",
        ),
        (
            ["predict", "--procs", "4", "--threads", "0"],
            "--threads: must be a whole number, at least 1, not '0'\nhint: try --threads 4",
        ),
        (
            [*RUN, "--nodes", "two"],
            "--nodes: must be a whole number, at least 1, not 'two'\nhint: try --nodes 4",
        ),
        (
            [*RUN, "--cores-per-node", "0"],
            "--cores-per-node: must be a whole number, at least 1, not '0'\nhint: try "
            "--cores-per-node 4",
        ),
        (
            [*RUN, "--cores-per-node", "32"],
            "32 cores per node are not possible: a node has 16\n"
            "hint: ask for 1 to 16 cores per node",
        ),
        (
            [*RUN, "--nodes", "3"],
            "16 x 4 is not possible: a node has room for 4 processes of 4 threads, 3 nodes "
            "would need 6\n"
            "hint: possible: 12 x 4 (processes x threads), or --nodes 4",
        ),
        (
            [*RUN, "--set", "N"],
            "--set N: value missing\nhint: write NAME=VALUE, such as N=4096",
        ),
        (
            [*RUN, "--set", "=4"],
            "--set =4: value missing\nhint: write NAME=VALUE, such as N=4096",
        ),
        (
            [*RUN, "--set", "N=big"],
            "--set N=big: must be a number, not 'big'\nhint: try N=4096",
        ),
        (
            [*RUN, "--set", "N=64,steps=10"],
            "--set N=64,steps=10: must be a number, not '64,steps=10'\n"
            "hint: give the option once for each NAME=VALUE",
        ),
        (
            [*RUN, "--set", "N=inf"],
            "--set N=inf: must be a number, not 'inf'\nhint: try N=4096",
        ),
        (
            [*RUN, "--set", "N=4", "--set", "N=5"],
            "--set N=5: N is set twice\nhint: leave one of them out",
        ),
        (
            [*RUN, "--family", "tulp"],
            "--family tulp: unknown family 'tulp'\nhint: did you mean talp?",
        ),
        (
            [*RUN, "--reference", "4"],
            "--reference 4: '4' must be PROCESSESxTHREADS\nhint: try --reference "
            "1x1, or --reference 1x1,N=256",
        ),
        (
            [*RUN, "--reference", "0x4"],
            "--reference 0x4: '0x4' must be PROCESSESxTHREADS\nhint: try --reference "
            "1x1, or --reference 1x1,N=256",
        ),
        (
            [*RUN, "--reference", "1x1,N=big"],
            "--reference N=big: must be a number, not 'big'\nhint: try N=4096",
        ),
        (
            [*RUN, "--reference", "1x32"],
            "reference: 1 x 32 is not possible: a node has 16 cores, fewer than 32 threads\n"
            "hint: possible: 1 x 16 (processes x threads)",
        ),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], message: str, popmodel: Call) -> None:
    assert popmodel(*arguments) == (2, "", f"popmodel: error: {message}\n")


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
        screen = " ".join(shown("predict", *files, *split)[1].split())
        assert ("the threads bring no speed-up, as if they shared a core" in screen) == (
            threads > 1
        )
    assert [one["e_mt"]["value"] for one in found] == pytest.approx(
        [0.957, 0.501, 0.350, 0.263], abs=5e-4
    )
    assert [one["runtime"]["value"] for one in found] == pytest.approx(
        [0.2895 / (n + 1) + overhead for n, overhead in enumerate(overheads)]
    )


@pytest.mark.parametrize("verb", [("predict", "--procs", "4"), ("predict", "--cores", "4")])
@pytest.mark.parametrize("setting", ["N=1e300", "N=1e120", "steps=1e300", "steps=1e305"])
def test_numbers_too_large_to_compute_with_are_one_line(
    popmodel: Call, few_nodes: str, verb: tuple[str, ...], setting: str
) -> None:
    # A warning of NumPy would be an error here, and so an unexpected one.
    status, out, err = popmodel(*verb, "--set", setting, "--machine", few_nodes)
    assert status in (1, 2)
    assert out == ""
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
    assert screen.startswith("stencil3d (bundled) N=512 steps=100 transient_cv=0.02\n")
    formula = json.loads(popmodel(*words, "--formula", "runtime", "--imbalance", "persistent=0")[1])
    assert formula["application"]["imbalance"] == {"persistent_cv": 0.0}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("persistent", "persistent: value missing\nhint: write NAME=CV, such as persistent=0.05"),
        ("persistant=1", "persistant=1: unknown name 'persistant'\nhint: did you mean persistent?"),
        ("transient=1,transient=2", "transient=2: transient is given twice\nhint: leave one of"),
        ("transient=-1", "transient=-1: must be a number, at least 0, not '-1'\nhint: try transi"),
        ("transient=x", "transient=x: must be a number, at least 0, not 'x'"),
    ],
)
def test_an_imbalance_that_makes_no_sense_is_refused(
    popmodel: Call, text: str, problem: str
) -> None:
    status, out, err = popmodel("predict", "--procs", "16", "--imbalance", text)
    assert (status, out) == (2, "")
    assert err.startswith(f"popmodel: error: --imbalance {problem}")
