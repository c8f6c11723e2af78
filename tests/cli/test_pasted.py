"""Commands that verbs print are run by a shell, in the folder and with the names of the verb."""

from __future__ import annotations

import html
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from console import ROOT
from patience import GENEROUS
from unfolded import unfolded

from popmodel.reports.views import pasteable

from .conftest import Call

TRACE = "it's a $run.prv.gz"
VM = str(ROOT / "examples" / "profiles" / "two-core-vm.json")
TABLE = str(ROOT / "examples" / "stencil3d" / "two-core-vm.csv")


def commands(text: str) -> list[str]:
    """Commands of popmodel on a screen: each on lines of its own, or before what it does."""
    joined = re.sub(r" ?\\\n +", " ", text)
    found = re.findall(r"^(?:-> )?(popmodel [a-z].*)$", joined, re.MULTILINE)
    return [re.sub(r" analyses .*", "", one) for one in found if not re.match(r"popmodel \d", one)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "number"),
    [
        (("inspect", TRACE, "--all"), 2),
        (("signature", "from", f"{TRACE}:N=200", "-o", "a $sig.toml"), 2),
        (("whatif", TRACE, "--network", "ideal", "--save-trace", "re played.prv", "--all"), 1),
        (("whatif", TRACE, "--save-trace", "a path.prv", "--all"), 1),
        (("signature", "from", "stencil3d", TABLE, "--machine", VM, "-o", "fit ted.toml"), 1),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_commands_on_screens_can_be_pasted(
    words: tuple[str, ...],
    number: int,
    popmodel: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for suffix in (".prv.gz", ".pcf"):
        shutil.copy(
            ROOT / "examples" / "traces" / f"stencil3d.2x2{suffix}",
            TRACE.replace(".prv.gz", suffix),
        )
    status, out, err = popmodel(*words)
    assert status == 0, err
    printed = commands(out)
    assert len(printed) == number, out
    for command in printed:
        done = subprocess.run(
            ["sh", "-c", command.replace("popmodel", '"$PYTHON" -m popmodel', 1)],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHON": sys.executable},
            timeout=GENEROUS,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("popmodel metrics a.prv -o a.md", "popmodel metrics a.prv -o a.md --force"),
        ("popmodel trace -o a.prv -- ./app", "popmodel trace --force -o a.prv -- ./app"),
        ("popmodel trace -o a.prv ./app -o b", "popmodel trace --force -o a.prv ./app -o b"),
        ("popmodel trace -- ./app --force", "popmodel trace --force -- ./app --force"),
        ("popmodel trace -o a.prv --force -- ./app", "popmodel trace -o a.prv --force -- ./app"),
        ("popmodel trace merge a.raw -o a.prv", "popmodel trace merge a.raw -o a.prv --force"),
        ("popmodel machine measure --only p2p", "popmodel machine measure --only p2p --force"),
        ("popmodel study -o a srun -n {P} ./app", "popmodel study -o a srun -n {P} ./app"),
    ],
)
def test_a_command_replaces_its_own_file_and_hands_the_program_nothing(
    given: str, shown: str
) -> None:
    assert pasteable(given) == shown


def test_commands_on_pages_can_be_pasted(popmodel: Call, trace: str) -> None:
    assert popmodel("metrics", trace, "-o", "a page.html")[0] == 0
    text = Path("a page.html").read_text()
    (shown,) = re.findall(r'aria-label="Command">(.*?)</pre>', unfolded(text))
    words = shlex.split(html.unescape(shown))
    assert words == ["popmodel", "metrics", trace, "-o", "a page.html", "--force"]
    assert popmodel(*words[1:])[0] == 0
