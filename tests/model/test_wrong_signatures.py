"""What a wrong signature is answered: `wrong_signatures.txt` has the signatures and the answers.

A block is the text of a signature, behind the same head where it has none of its own, and what its
check says: ``> line: mistake``, ``> line: remark: ...``, with its hint below. Where it ends with
``$ predict P T`` the answer is that of a prediction on the machine of `demo`.
``python tests/model/test_wrong_signatures.py`` writes the answers anew: review the difference.
"""

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from model.demo import machine

from popmodel.base.errors import PopmodelError
from popmodel.model import signatures
from popmodel.model.signature.reading import SignatureError
from popmodel.model.signature_check import check
from popmodel.prediction.prediction import predict

FILE = Path(__file__).with_name("wrong_signatures.txt")
HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'


def blocks() -> list[tuple[str, str]]:
    """The signatures and their answers."""
    parts = re.split(r"^=+\n", FILE.read_text(), flags=re.M)[1:]
    return [(text, answer) for text, answer in (_divided(part) for part in parts)]


def _divided(part: str) -> tuple[str, str]:
    lines = part.splitlines(keepends=True)
    first = next((i for i, line in enumerate(lines) if line.startswith(">")), len(lines))
    return "".join(lines[:first]), "".join(lines[first:])


def answer(text: str) -> str:
    asked = re.search(r"^\$ predict (\d+) (\d+)\n", text, re.M)
    whole = text[: asked.start()] if asked else text
    whole = whole if re.search(r"^(schema|\[?app)", whole, re.M) else HEAD + whole
    return "".join(_predicted(whole, *map(int, asked.groups())) if asked else _checked(whole))


def _predicted(text: str, processes: int, threads: int) -> Iterator[str]:
    try:
        predict(signatures.from_text(text, "demo.toml"), machine(), processes, threads, draws=0)
    except PopmodelError as error:
        assert error.exit_status == 2
        yield from _lines(error.message, error.hint)


def _checked(text: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "demo.toml"
        path.write_text(text)
        found = check(path)
    for begin, findings in (("", found.mistakes), ("remark: ", found.remarks)):
        for one in findings:
            yield from _lines(f"{one.line}: {begin}{one.message}", one.hint)
    try:
        signatures.from_text(text, "demo.toml")
    except SignatureError as error:  # a file that is loaded is refused by one of its mistakes
        assert (error.line, error.problem) in [(one.line, one.message) for one in found.mistakes]


def _lines(message: str, hint: str | None) -> Iterator[str]:
    yield f"> {message}\n"
    if hint:
        yield f">   {hint}\n"


def test_every_wrong_signature_is_answered_as_written() -> None:
    known = blocks()
    assert len(known) > 100
    for text, expected in known:
        given = answer(text)
        assert given.count("\n") == len(given.splitlines())
        assert given == expected, f"{text}is answered\n{given}and not\n{expected}"


if __name__ == "__main__":
    FILE.write_text("".join(f"{'=' * 60}\n{text}{answer(text)}" for text, _ in blocks()))
