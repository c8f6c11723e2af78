"""Damages trace text the way disks, editors and other programs do: by bytes, fields and lines."""

from __future__ import annotations

import random

FIELDS = [
    b"",
    b"0",
    b"1",
    b"-1",
    b"-",
    b"+1",
    b" 1",
    b"1.5",
    b"x",
    b"12345678",
    b"123456789",
    b"1234567812345678",
    b"12345678123456789",
    b"00000000000000000000000007",
    b"2147483648",
    b"4294967295",
    b"4294967296",
    b"72057594037927936",
    b"9223372036854775",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551615",
    b"18446744073709551616",
    b"9" * 40,
]
BYTES = b"0123456789:\n\r-# \x00;/9\xff"
LINES = [b"#", b"# comment", b"", b"\r", b"c:1:1:1:1", b"i:1:2:3:4", b"4:1:1:1:1", b"1", b":"]


def mutate(text: bytes, dice: random.Random) -> bytes:
    """Return the text with one to four changes."""
    for _ in range(dice.randint(1, 4)):
        text = dice.choice(_CHANGES)(text, dice)
    return text


def _byte(text: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(text) + 1)
    new = bytes([dice.choice(BYTES)])
    return text[:at] + dice.choice([new, b"", text[at : at + 1] + new]) + text[at + 1 :]


def _field(text: bytes, dice: random.Random) -> bytes:
    lines = text.split(b"\n")
    at = dice.randrange(len(lines))
    fields = lines[at].split(b":")
    chosen = dice.randrange(len(fields))
    change = dice.randrange(4)
    if change == 0:
        fields.insert(chosen, dice.choice(FIELDS))
    elif change == 1:
        del fields[chosen]
    else:
        fields[chosen] = dice.choice(FIELDS)
    lines[at] = b":".join(fields)
    return b"\n".join(lines)


def _line(text: bytes, dice: random.Random) -> bytes:
    lines = text.split(b"\n")
    at, other = dice.randrange(len(lines)), dice.randrange(len(lines))
    change = dice.randrange(4)
    if change == 0:
        lines[at], lines[other] = lines[other], lines[at]
    elif change == 1:
        lines.insert(at, lines[other])
    elif change == 2:
        lines.insert(at, dice.choice(LINES))
    else:
        del lines[at]
    return b"\n".join(lines)


def _truncate(text: bytes, dice: random.Random) -> bytes:
    return text[: dice.randrange(len(text) + 1)]


def _windows(text: bytes, _dice: random.Random) -> bytes:
    return text.replace(b"\n", b"\r\n")


_CHANGES = [_byte, _byte, _field, _field, _field, _line, _truncate, _windows]
