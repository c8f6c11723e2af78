"""Exit statuses, messages and manners of the program as a whole."""

from __future__ import annotations

import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from patience import GENEROUS, measuring

import popmodel as package
from popmodel.base.errors import UsageError
from popmodel.cli import app

from .conftest import Call

Shell = Callable[..., "subprocess.CompletedProcess[str]"]


def test_the_version_is_that_of_the_package(popmodel: Call) -> None:
    assert popmodel("--version") == (0, f"popmodel {package.__version__}\n", "")
    assert version("popmodel-hpc") == package.__version__


def test_the_help_of_every_verb_has_examples_and_fits_the_terminal(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for verb in ([], *([verb] for verb in app.VERBS)):
        shown = popmodel(*verb, "--help")
        assert popmodel(*verb, "-h") == shown
        assert shown[0] == 0
        assert shown[1].startswith(" ".join(["Usage: popmodel", *verb]))
        # The help ends with the examples, and each is a call of this verb.
        examples = shown[1].partition("Examples:\n")[2].replace(" \\\n", " ").splitlines()
        assert not verb or examples
        assert all(line.startswith(f"    popmodel {verb[0]}") for line in examples), verb
        for width in (40, 60, 80):
            monkeypatch.setenv("COLUMNS", str(width))
            out = popmodel(*verb, "--help")[1]
            assert max(len(line) for line in out.splitlines()) <= width, verb
            assert "..." not in out.partition("Commands:")[2]
        monkeypatch.delenv("COLUMNS")


def test_wrong_usage_without_a_hint_of_its_own_leads_to_the_help(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise UsageError("this is not possible")

    monkeypatch.setattr("popmodel.cli.docs.pages", refuse)
    assert popmodel("docs") == (
        2,
        "",
        "popmodel: error: this is not possible\nhint: see popmodel docs --help\n",
    )


def test_messages_stay_on_their_line_and_cannot_steer_the_terminal(popmodel: Call) -> None:
    status, _, err = popmodel("inspect", "a\nb\x1b[31m.prv")
    assert status == 1
    assert err.startswith("popmodel: error: a b\\x1b[31m.prv: ")
    assert "\x1b" not in err


def test_a_defect_is_one_line_that_says_how_to_see_more(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> int:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.delenv("POPMODEL_DEBUG", raising=False)
    monkeypatch.setattr(app, "run", broken)
    assert popmodel("inspect") == (
        1,
        "",
        "popmodel: error: unexpected ZeroDivisionError: division by zero\n"
        "hint: this is a bug in popmodel: set POPMODEL_DEBUG=1 for a traceback\n",
    )
    monkeypatch.setenv("POPMODEL_DEBUG", "1")
    _, _, err = popmodel("inspect")
    assert "Traceback" in err
    assert err.endswith("for a traceback\n")


def test_too_little_memory_is_one_line(popmodel: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> int:
        raise MemoryError

    monkeypatch.setattr(app, "run", broken)
    assert popmodel("inspect") == (
        1,
        "",
        "popmodel: error: not enough memory\n"
        "hint: use a machine with more memory, or analyse part of the run\n",
    )


def test_an_interrupt_is_one_line_and_status_130(
    popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(app, "run", interrupted)
    assert popmodel("inspect") == (130, "", "popmodel: interrupted\n")


def test_ctrl_c_while_reading(tmp_path: Path) -> None:
    """The signal that Ctrl-C sends arrives while the text of a trace is read."""
    (tmp_path / "x.prv").write_text("#Paraver (x):9_ns:1(1):1:1(1:1),0\n")
    script = (
        "import os, signal, sys\n"
        "from popmodel.cli import main\n"
        "from popmodel.traces import source\n"
        "source.TraceSource.readinto = lambda *_: os.kill(os.getpid(), signal.SIGINT) or 1\n"
        "sys.exit(main())\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", script, "inspect", str(tmp_path / "x.prv")],
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
        timeout=GENEROUS,
    )
    answer = (finished.returncode, finished.stdout, finished.stderr)
    assert answer == (130, "", "popmodel: interrupted\n")


@pytest.mark.long
def test_a_reader_that_goes_away_is_no_error(trace: str, shell: Shell) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        finished = shell("metrics", trace, capture_output=False, stdout=write, stderr=-1)
    finally:
        os.close(write)
    assert finished.returncode == 141
    assert finished.stderr == ""


@pytest.mark.long
@pytest.mark.parametrize("more", [[], ["--format", "json", "--family", "all"]])
def test_a_threshold_is_checked_although_the_reader_went_away(
    more: list[str], trace: str, shell: Shell
) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        finished = shell(
            *("metrics", trace, "--fail-if", "load_balance < 0.99", *more),
            **{"capture_output": False, "stdout": write, "stderr": -1},
        )
    finally:
        os.close(write)
    assert finished.returncode == 3
    (line,) = finished.stderr.splitlines()
    assert line.startswith("popmodel: error: mpi.load_balance is 0.875, less than 0.99")


@pytest.mark.long
def test_a_threshold_is_checked_in_a_pipe_that_closes_early(trace: str) -> None:
    program = f"{shlex.quote(sys.executable)} -m popmodel"
    command = f"{program} metrics {trace} --fail-if 'load_balance<0.99' | head -1 >/dev/null"
    finished = subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=GENEROUS,
    )
    assert finished.returncode == 3
    assert len(finished.stderr.splitlines()) == 1


def test_options_of_a_traced_command_are_its_own(popmodel: Call) -> None:
    _, _, err = popmodel("trace", "--", "/does/not/exist", "--format", "a", "--format", "b")
    assert "given twice" not in err


def test_a_repeatable_option_and_a_flag_may_be_given_twice(popmodel: Call) -> None:
    words = ("predict", "--procs", "2", "--set", "N=64", "--set", "steps=9", "--force", "--force")
    assert popmodel(*words)[0] == 0


def test_a_full_disk_behind_standard_output_is_one_line(trace: str, shell: Shell) -> None:
    with Path("/dev/full").open("w") as full:
        finished = shell("inspect", trace, capture_output=False, stdout=full, stderr=-1)
    assert finished.returncode == 1
    assert finished.stderr == (
        "popmodel: error: standard output: No space left on device\n"
        "hint: the result is incomplete; choose another path with -o FILE\n"
    )


def test_a_closed_standard_output_is_one_line(trace: str) -> None:
    command = f"exec {shlex.quote(sys.executable)} -m popmodel inspect {trace} >&-"
    finished = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert finished.returncode == 1
    assert finished.stderr == ("popmodel: error: standard output is closed\nhint: use -o FILE\n")


def test_names_that_an_encoding_lacks_are_written_as_escapes(trace: str, shell: Shell) -> None:
    name = "größe-計算.prv"
    Path(name).write_bytes(Path(trace).read_bytes())
    finished = shell("inspect", name, env={"PYTHONIOENCODING": "ascii"})
    assert finished.returncode == 0
    assert "gr\\xf6\\xdfe-\\u8a08\\u7b97.prv " in finished.stdout


@pytest.mark.long
def test_file_names_may_hold_any_bytes(trace: str, shell: Shell) -> None:
    name = os.fsdecode(b"bad-\xff.prv")
    Path(name).write_bytes(Path(trace).read_bytes())
    for form in ("table", "json", "csv", "markdown"):
        finished = shell("inspect", name, "--format", form)
        assert (finished.returncode, finished.stderr.count("error")) == (0, 0)


def _cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.long
@measuring()
def test_the_help_costs_little_more_than_typer_itself() -> None:
    """Loading numpy, rich or a verb's work, or building all verbs' options, would break this."""
    python = sys.executable
    rounds = [
        (
            _cpu([python, "-c", "import typer"]),
            _cpu([python, "-m", "popmodel", "--help"]),
        )
        for _ in range(5)
    ]
    base = min(first for first, _ in rounds)
    full = min(second for _, second in rounds)
    assert full < 1.8 * base + 0.02


BESIDE_NUMPY = ("numpy.ma", "rich", "sympy", "scipy", "pandas", "pydantic")
HEAVY = ("numpy", *BESIDE_NUMPY)
MODEL = ("popmodel.machines", "popmodel.model")
OTHER_ACTIONS = ("popmodel.machines.profile_comparison", "popmodel.reports.machine_diff")


@pytest.mark.long(after=5)
@pytest.mark.parametrize(
    ("arguments", "unwanted"),
    [
        (["--help"], HEAVY),
        (["inspect", "two.prv"], (*BESIDE_NUMPY[1:], "popmodel.machines", "popmodel.model")),
        (["metrics", "two.prv"], (*BESIDE_NUMPY, "popmodel.model")),
        (["predict", "--procs", "4"], ("numpy.ma", "urllib.request", "scipy", "sympy", "pandas")),
        (["docs", "load_balance"], (*HEAVY, "popmodel.model.kinds")),
        (["metrics", "--help"], HEAVY),
        (
            ["inspect", "two.prv", "--show", "info"],
            (*BESIDE_NUMPY, "popmodel.machines", "popmodel.model"),
        ),
        (["whatif", "two.prv"], (*BESIDE_NUMPY, "popmodel.model")),
        (["whatif", "two.prv", "--network", "ideal"], (*BESIDE_NUMPY, "popmodel.model")),
        (["machine", "show"], (*HEAVY, "popmodel.model", "popmodel.efficiency", *OTHER_ACTIONS)),
        (["machine", "check"], (*HEAVY, "popmodel.model", "popmodel.efficiency", *OTHER_ACTIONS)),
        (["predict", "--cores", "4"], ("numpy.ma", "urllib.request", "scipy", "sympy", "email")),
        (["docs", "expected loss"], (*HEAVY, "popmodel.model.kinds")),
        (["docs", "memory.bsat"], (*HEAVY, "popmodel.model.kinds")),
        (["docs", "parallel.trip"], ("sympy", "scipy", "pandas", "pydantic")),
    ],
)
def test_only_what_is_needed_is_loaded(
    arguments: list[str], unwanted: tuple[str, ...], trace: str
) -> None:
    assert trace == "two.prv"
    code = (
        "import sys; from popmodel.cli import main; status = main(sys.argv[1:]);"
        f"sys.exit(str([name for name in {unwanted!r} if name in sys.modules]) + str(status))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert finished.stderr == "[]0\n"
