"""Words of commands: on one line, to be seen, and read by a shell as they were meant."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.base.shell import _HIDDEN, join, plain, quote, visible

ALL = "".join(map(chr, range(sys.maxunicode + 1)))
NO_ZERO = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
BYTES = st.binary().map(lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape"))
ODD = st.text("'\"\\$`!#~*?[]{}()<>|&; \n\t\r\x1b\x7f\x85\u202e\u2066\u2028ab\u00fc\U0001f600")


@given(st.lists(st.one_of(NO_ZERO, BYTES, ODD), max_size=8))
def test_bash_reads_the_words_that_were_meant(words: list[str]) -> None:
    command = join(words)
    assert len(f"x{command}x".splitlines()) == 1
    done = subprocess.run(
        ["bash", "-c", b"printf '%s\\0' " + command.encode(errors="surrogateescape")],
        capture_output=True,
        check=True,
    )
    read = done.stdout.split(b"\0")[:-1] if words else []
    assert [word.decode(errors="surrogateescape") for word in read] == words


def test_what_is_hidden_is_not_printable() -> None:
    """For printable texts the pattern is not looked for."""
    assert not any(char.isprintable() for char in re.findall(_HIDDEN, ALL))


@given(st.one_of(NO_ZERO, BYTES, ODD))
def test_nothing_that_is_hidden_is_shown(text: str) -> None:
    for shown in (visible(text), quote(text), quote(f"{text}\ud800")):
        assert not set(shown) & set("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\x1b\x9b\u202e\u2067")
    assert visible("plain ü 😀") == "plain ü 😀"


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("./app", "./app"),
        ("my app", "'my app'"),
        ("a\nb", r"$'a\nb'"),
        ("it's\x1b[31m", r"$'it\x27s\x1b[31m'"),
        ("\u202e", r"$'\xe2\x80\xae'"),
        ("caf\udce9", r"$'caf\xe9'"),
        ("", "''"),
    ],
)
def test_words_are_quoted_as_little_as_will_do(word: str, quoted: str) -> None:
    assert quote(word) == quoted


def test_names_need_not_hold_what_is_hidden() -> None:
    assert plain("my app's (2)", "the name") == "my app's (2)"
    assert plain("caf\udce9", "the name") == "caf\udce9"
    with pytest.raises(UsageError) as caught:
        plain("a\nrm -rf .", "the name")
    assert caught.value.message == (r"the name contains an invisible character (\n): a\nrm -rf .")
    assert caught.value.hint == "rename it: it becomes part of a command"
