"""Words of commands that people paste and scripts run.

Names come from files and folders of others. A command stays on one line and shows every character
that it holds, whatever its words are; what would be hidden or end the line is written as an escape,
in the form ``$'...'`` of bash, ksh and zsh. Names that have no need of such characters, for they
only go into a command, are refused with them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from popmodel.base.errors import UsageError

PLACEHOLDER = r"\{([A-Za-z_]\w*)\}"
"""Stands in a command for a value."""

_HIDDEN = (
    "[\x00-\x1f\x7f-\x9f"  # control characters: they end lines, move the cursor, colour the screen
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"  # show text in another order, or not
    "\u2028\u2029"  # end lines in some programs
    "\ud800-\udfff]"  # bytes of a name that are no UTF-8
)

_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quote(word: str) -> str:
    """Quote a word for a shell, on one line and with all its characters to be seen."""
    if word.isprintable() or not re.search(_HIDDEN, word):
        return shlex.quote(word)
    return "$'" + re.sub(rf"['\\]|{_HIDDEN}", lambda found: _bytes(found[0]), word) + "'"


def join(words: Iterable[str]) -> str:
    """Quote the words of a command, and put blanks between them."""
    return " ".join(map(quote, words))


def split(text: str) -> tuple[str, ...]:
    """Split a command into words as a shell does, without expanding anything."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"not a command: {str(error).lower()}: {visible(text)}") from None
    if not words:
        raise UsageError("not a command: it has no word", "write it as in a shell")
    return words


def filled(words: Iterable[str], values: Mapping[str, float]) -> tuple[str, ...]:
    """Return words with values in place of ``{NAME}``; whole numbers without a point."""

    def value(found: re.Match[str]) -> str:
        return f"{values[found[1]]:.15g}" if found[1] in values else found[0]

    return tuple(re.sub(PLACEHOLDER, value, word) for word in words)


def visible(text: str) -> str:
    r"""Text in which what is hidden stands as an escape: a line end as ``\n``, ESC as ``\x1b``."""
    if text.isprintable():  # as nearly every text is: it costs no compiling of the pattern
        return text
    return re.sub(_HIDDEN, lambda found: _escape(found[0]), text)


def plain(name: str, what: str) -> str:
    """Return a name that goes into commands or scripts, which need not hold what is hidden."""
    # Bytes that are no UTF-8 are an old name's letters, and harmless.
    found = next(
        (each for each in re.findall(_HIDDEN, name) if not "\ud800" <= each <= "\udfff"), None
    )
    if found is not None:
        raise UsageError(
            f"{what} contains an invisible character ({_escape(found)}): {visible(name)}",
            "rename it: it becomes part of a command",
        )
    return name


def _escape(character: str) -> str:
    code = ord(character)
    if _stands_for_byte(character):
        return f"\\x{code - 0xDC00:02x}"
    short = _SHORT.get(character)
    return short or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def _bytes(character: str) -> str:
    """A character as a shell understands it in any locale."""
    errors = "surrogateescape" if _stands_for_byte(character) else "surrogatepass"
    coded = character.encode(errors=errors)
    return _SHORT.get(character) or "".join(f"\\x{byte:02x}" for byte in coded)


def _stands_for_byte(character: str) -> bool:
    """Whether Python has a character in place of a byte of a name that is no UTF-8."""
    return "\udc80" <= character <= "\udcff"
