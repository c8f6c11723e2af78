"""Names from files and folders of others: nothing of them runs, moves the cursor or hides."""

from __future__ import annotations

import json
import shlex
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from popmodel.model import signatures
from popmodel.model.signature.reading import SignatureError

from .conftest import Call

HIDDEN = "\n\r\t\x0b\x1b\x7f\x85\x9b\u200f\u202e\u2066\u2028"
NAMES = st.text(f"{HIDDEN}'\"\\$`;&|<>#*~ =-ab\u00fc\U0001f600", min_size=1, max_size=12)
FORMATS = ("table", "json", "csv", "markdown")

SIGNATURE = """\
schema = "popmodel/signature/1"
[app]
name = {name}
[params]
N = 1000
[[program]]
[program.serial]
name = {item}
trip = "N"
flops = 100
"""


def described(name: str, item: str = "work") -> str:
    """A signature's text; what JSON escapes TOML does, and DEL."""
    words = (json.dumps(word, ensure_ascii=False) for word in (name, item))
    return SIGNATURE.format(**dict(zip(("name", "item"), words, strict=True))).replace(
        "\x7f", "\\u007f"
    )


def signature(path: Path, name: str, item: str = "work") -> Path:
    path.write_text(described(name, item), encoding="utf-8")
    return path


@given(NAMES)
def test_a_name_becomes_one_word_or_is_refused(name: str) -> None:
    from popmodel.machines.quantity import Topology
    from popmodel.model.run.process_placement import launch_line, mpirun_line, place

    where = place(2, 2, Topology(1, 4, 1, 1, (), None))
    try:
        found = signatures.from_text(described(name), "app.toml")
    except SignatureError as error:
        assert set(name) & set(HIDDEN)
        assert error.line == 3
        assert error.message.startswith("app.toml:3: name contains an invisible character")
        assert error.message.isprintable()
        return
    for line in (launch_line, mpirun_line):
        command = line(where, found.started(2, 2, {}))
        assert command.count("\n") == 1
        assert shlex.split(command)[-1] == f"./{name}"


def test_predictions_refuse_such_a_name(tmp_path: Path, popmodel: Call) -> None:
    names = ("a\nrm -rf ~", "a\x1b[2Jb", "a\u202eb")
    for size, name, format in product(("--procs", "--cores"), names, FORMATS):
        app = signature(tmp_path / "app.toml", name)
        status, out, said = popmodel("predict", str(app), size, "2", "--format", format)
        assert (status, out) == (1, ""), (size, name, format)
        assert said.startswith(f"popmodel: error: {app}:3: name contains an invisible character")
        assert len(said.splitlines()) == 2
        assert said.replace("\n", "").isprintable()


@pytest.mark.parametrize("format", ["table", "markdown", "csv"])
def test_other_words_of_a_signature_are_shown_harmless(
    tmp_path: Path, popmodel: Call, format: str
) -> None:
    app = signature(tmp_path / "app.toml", "it's; `id`", "a\n# b\x1b[31m\u202ec")
    status, out, _ = popmodel("predict", str(app), "--procs", "2", "--format", format)
    assert status == 0
    assert out.replace("\n", "").isprintable()
    assert "\n# b" not in out
    if format != "csv":
        assert shlex.quote("./it's; `id`") in out


@pytest.mark.long
@given(NAMES, NAMES)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_names_of_traces_and_in_them_are_shown_harmless(
    trace: str, popmodel: Call, name: str, label: str
) -> None:
    path = Path(f"{name.replace('/', '_')}.prv")
    path.write_text(Path(trace).read_text())
    labels = Path(trace).with_suffix(".pcf").read_text().replace("MPI_Barrier", f"MPI_{label}")
    path.with_suffix(".pcf").write_text(labels)
    for verb in ("inspect", "metrics"):
        for format in FORMATS:
            status, out, said = popmodel(verb, f"./{path}", "--format", format)
            assert status == 0, said
            shown = (out + said).replace("\n", "")
            assert not set(shown) & set(HIDDEN)
            assert "\x1b" not in shown
    path.unlink()
    path.with_suffix(".pcf").unlink()


@pytest.mark.parametrize(
    ("verb", "output"),
    [
        ("metrics", "x.json"),
        ("whatif", "x.csv"),
        ("report", "x.html"),
        ("convert", "x.csv"),
        ("predict --procs 4", "x.json"),
        ("signature from", "x.toml"),
    ],
)
def test_a_trace_may_have_a_name_of_bytes_that_are_no_text(
    tmp_path: Path, trace: str, popmodel: Call, verb: str, output: str
) -> None:
    named = tmp_path / "l\udce4uft.prv"
    named.write_text(Path(trace).read_text())
    status, _, said = popmodel(*verb.split(), str(named), "-o", str(tmp_path / output))
    assert status == 0, said
    assert "udce4uft" in (tmp_path / output).read_text() or output == "x.csv"


@pytest.mark.parametrize("options", [("--print-env",), ("--script", "slurm"), ()])
def test_a_trace_gets_no_such_name(
    tmp_path: Path, popmodel: Call, options: tuple[str, ...]
) -> None:
    words = () if "--print-env" in options else ("--", "/bin/true")
    name = tmp_path / "a\nrm -rf ~.prv"
    assert popmodel("trace", *options, "-o", str(name), *words) == (
        2,
        "",
        f"popmodel: error: -o contains an invisible character (\\n): {tmp_path}/a\\nrm -rf "
        "~.prv\nhint: rename it: it becomes part of a command\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_commands_to_go_on_with_are_quoted(tmp_path: Path, popmodel: Call) -> None:
    raw = tmp_path / "a;id.raw"
    raw.mkdir()
    (raw / "host.1.meta").write_text("")
    _, _, said = popmodel("trace", "-o", str(tmp_path / "a;id.prv"), "--", "/bin/true")
    assert f"popmodel trace merge '{raw}'; or remove them with --force" in said
