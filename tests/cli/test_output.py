"""Where results go, and in which format."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from patience import GENEROUS

from popmodel.base.errors import FileError
from popmodel.cli.output import write_file

from .conftest import Call

Shell = Callable[..., "subprocess.CompletedProcess[str]"]
ROOT = Path(__file__).resolve().parents[2]


def test_the_suffix_decides_the_format(trace: str, popmodel: Call) -> None:
    for suffix, beginning in (
        (".json", "{\n"),
        (".csv", "table,trace,"),
        (".md", "## two.prv, "),
        (".txt", "two.prv  "),
    ):
        assert popmodel("inspect", trace, "-o", f"out{suffix}") == (0, "", "")
        assert Path(f"out{suffix}").read_text().startswith(beginning)


def test_the_suffix_and_standard_output_have_the_same_text(trace: str, popmodel: Call) -> None:
    popmodel("metrics", trace, "-o", "out.json")
    _, out, _ = popmodel("metrics", trace, "--format", "json", "-o", "-")
    ours, theirs = json.loads(out), json.loads(Path("out.json").read_text())
    assert ours.pop("provenance")["command"] == "popmodel metrics two.prv --format json -o -"
    assert theirs.pop("provenance")["command"] == "popmodel metrics two.prv -o out.json"
    assert ours == theirs


def test_a_file_that_exists_is_kept_unless_forced(trace: str, popmodel: Call) -> None:
    Path("out.csv").write_text("precious")
    assert popmodel("inspect", trace, "-o", "out.csv") == (
        2,
        "",
        "popmodel: error: -o out.csv: the file exists\nhint: use --force to overwrite it\n",
    )
    assert Path("out.csv").read_text() == "precious"
    assert popmodel("inspect", trace, "-o", "out.csv", "--force") == (0, "", "")
    assert Path("out.csv").read_text().startswith("table,")


def test_a_number_of_5000_digits_is_refused_like_others(trace: str, popmodel: Call) -> None:
    digits = "9" * 5000
    assert popmodel("inspect", trace, "--application", digits) == (
        2,
        "",
        f"popmodel: error: --application: must be a whole number, at least 1, not '{digits}'\n"
        "hint: try --application 4\n",
    )


def test_a_format_makes_up_for_a_missing_suffix(trace: str, popmodel: Call) -> None:
    assert popmodel("inspect", trace, "-o", "out", "--format", "json")[0] == 0
    assert json.loads(Path("out").read_text())["info"]["processes"] == 2


@pytest.mark.long
def test_a_full_disk_leaves_the_old_file_and_no_other(trace: str, shell: Shell) -> None:
    """The limit on the size of files stands in for a full disk; both fail in the write."""
    Path("out.json").write_text("precious")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

    before = set(Path().iterdir())
    command = ("metrics", trace, "-o", "out.json", "--force")
    finished = shell(*command, preexec_fn=limit)
    assert finished.returncode == 1
    assert finished.stderr == (
        "popmodel: error: out.json: cannot be written: file too large\n"
        "hint: choose another path with -o\n"
    )
    assert Path("out.json").read_text() == "precious"
    assert set(Path().iterdir()) == before


def test_devices_are_written_directly(trace: str, popmodel: Call) -> None:
    assert popmodel("inspect", trace, "-o", "/dev/null", "--format", "csv") == (0, "", "")
    assert Path("/dev/null").is_char_device()
    status, _, err = popmodel("inspect", trace, "-o", "/dev/full", "--format", "csv")
    assert status == 1
    assert "/dev/full: cannot be written: no space left on device\n" in err


def test_links_and_permissions_of_a_replaced_file_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_file(link, "new\n", force=True)
    assert link.is_symlink()
    assert real.read_text() == "new\n"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_planted_link_is_not_followed(
    trace: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("out.json").symlink_to("not there yet")
    _, _, said = popmodel("inspect", trace, "-o", "out.json")
    assert said.startswith("popmodel: error: -o out.json: the file exists\n")
    Path("out.md").symlink_to("mine.txt")
    Path("mine.txt").write_text("precious")
    owner = Path("out.md").lstat().st_uid
    if owner == 0:
        os.lchown("out.md", 4321, 4321)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert popmodel("inspect", trace, "-o", "out.md", "--force") == (
        1,
        "",
        "popmodel: error: out.md: is a symbolic link of another user (to mine.txt)\nhint: "
        "choose another path with -o\n",
    )
    assert Path("mine.txt").read_text() == "precious"
    assert not Path("not there yet").exists()


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        write_file(tmp_path / "new.txt", "x", force=False)
    finally:
        os.umask(previous)
    assert (tmp_path / "new.txt").stat().st_mode & 0o777 == 0o640


def test_a_name_that_is_too_long_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written: file name too long"):
        write_file(tmp_path / ("x" * 300), "x", force=False)


def test_every_format_carries_its_provenance(trace: str, popmodel: Call) -> None:
    stamp = json.loads(popmodel("inspect", trace, "--format", "json")[1])["provenance"]
    assert stamp["command"] == "popmodel inspect two.prv --format json"
    assert [source["path"] for source in stamp["inputs"]] == ["two.prv"]
    rows = list(csv.DictReader(io.StringIO(popmodel("inspect", trace, "--format", "csv")[1])))
    stamps = [(row["popmodel"], row["popmodel_command"]) for row in rows]
    assert stamps[0] == (stamp["popmodel"], "popmodel inspect two.prv --format csv")
    assert set(stamps[1:]) == {("", "")}
    for form in ("markdown", "table"):
        out = popmodel("inspect", trace, "--all", "--format", form)[1]
        assert re.search(rf"popmodel {stamp['popmodel']} on \S+, \d{{4}}-\d\d-\d\dT", out)
        assert f"popmodel inspect two.prv --all --format {form}" in out


@pytest.mark.long
def test_colours_are_for_terminals_only(trace: str, shell: Shell) -> None:
    colours = {"TERM": "xterm-256color", "COLORTERM": "", "NO_COLOR": "", "FORCE_COLOR": ""}
    assert "\x1b" not in shell("metrics", trace, env=colours).stdout
    forced = shell("metrics", trace, env=colours | {"FORCE_COLOR": "1"}).stdout
    assert "\x1b[38;5;16;48;5;" in forced
    refused = shell("metrics", trace, env=colours | {"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert "\x1b" not in refused


@pytest.mark.long
def test_a_terminal_sees_colours_unless_it_refuses(trace: str) -> None:
    assert "\x1b[38;5;16;48;5;" in _on_terminal("metrics", trace)
    assert "\x1b" not in _on_terminal("metrics", trace, NO_COLOR="1")


def _on_terminal(*arguments: str, **environment: str) -> str:
    """What the program writes to a pseudo-terminal."""
    import pty

    ours, theirs = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "", **environment}
    if "NO_COLOR" not in environment:
        variables.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "popmodel", *arguments], stdout=theirs, env=variables
    )
    os.close(theirs)
    chunks = []
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    assert process.wait(timeout=GENEROUS) == 0
    return b"".join(chunks).decode()


def test_nothing_but_a_path_is_wider_than_the_terminal(
    trace: str, popmodel: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = "a_trace_with_a_name_that_is_much_longer_than_a_column.prv"
    Path(longer).write_bytes(Path(trace).read_bytes())
    for verb, width in product(("inspect", "metrics"), (40, 60, 79, 200)):
        monkeypatch.setenv("COLUMNS", str(width))
        result, _, end = popmodel(verb, longer, "--all")[1].rpartition("\npopmodel 0.")
        wide = [line for line in result.splitlines() if len(line) > width]
        assert all(line.endswith(longer) for line in wide), (verb, width)
        # The command can be read back, however long a name is.
        command = end[end.index("popmodel ") :].replace("\\\n", "")
        assert shlex.split(command) == ["popmodel", verb, longer, "--all"], (verb, width)


def test_a_terminal_sees_the_whole_command(trace: str) -> None:
    name = "a trace with a name that is longer than the line of a terminal has columns.prv"
    Path(name).write_bytes(Path(trace).read_bytes())
    screen = _on_terminal("inspect", name, "--all").replace("\r\n", "\n")
    command = screen[screen.rindex("popmodel inspect") :].replace("\\\n", "")
    assert shlex.split(command) == ["popmodel", "inspect", name, "--all"]


@pytest.mark.long
def test_a_log_behind_standard_error_is_written_to(trace: str) -> None:
    call = f"{shlex.quote(sys.executable)} -m popmodel inspect {trace} -o /dev/stderr --format csv"
    with Path("log").open("w") as log:
        finished = subprocess.run(f"echo before >&2; {call}", shell=True, stderr=log, check=False)
    assert finished.returncode == 0
    first, second, *_ = Path("log").read_text().splitlines()
    assert first == "before"
    assert second.startswith("table,trace,")


def test_every_result_has_a_page_that_holds_it(trace: str, popmodel: Call, tmp_path: Path) -> None:
    vm = "examples/profiles/two-core-vm.json"
    Path("examples").symlink_to(ROOT / "examples")
    for words in (
        ("docs", "tutorial"),
        ("docs", "load_balance"),
        ("machine", "show", vm),
        ("machine", "check", vm),
        ("machine", "compare", "sandybridge-fdr", vm),
        ("metrics", trace),
        ("whatif", trace),
        ("whatif", trace, "--network", "ideal"),
        ("inspect", trace),
        ("predict", "--cores", "4"),
    ):
        page = tmp_path / "x.html"
        assert popmodel(*words, "-o", str(page), "--force") == (0, "", ""), words
        assert page.read_text().startswith("<!doctype html>"), words
        status, out, err = popmodel("report", str(page), "--format", "json")
        assert (status, err) == (0, ""), words
        schema = json.loads(out)["documents"][0]["schema"]
        kinds = {"predict": "splits/1", "docs": "", "machine": ""}
        assert schema.startswith(f"popmodel/{kinds.get(words[0], f'{words[0]}/1')}")
