"""The grammar of signatures: one table of keys, the page that shows it, the values it refuses."""

from __future__ import annotations

import re
from dataclasses import fields

import grammar_page
import numpy as np
import pytest

from popmodel.model import signatures as signature
from popmodel.model.grammar.keys import NOT_NEGATIVE, ONE_OR_MORE, POSITIVE, SHARE
from popmodel.model.grammar.reading import SignatureError
from popmodel.model.kinds import KINDS
from popmodel.model.kinds.collective import COMMUNICATORS
from popmodel.model.kinds.loops import Parallel, SharedWrites
from popmodel.model.signature.tables import KEYS, key_of
from popmodel.network.collectives import OPERATIONS, ROOTED

PAGE = grammar_page.PAGE.read_text()
HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'


def test_the_page_says_what_the_reader_does() -> None:
    assert grammar_page.page() == PAGE, "run python tests/update_documents.py"


def test_words_with_a_meaning_are_on_the_page() -> None:
    for words, name, key in (
        (COMMUNICATORS, "collective", "comm"),
        (OPERATIONS, "collective", "op"),
        (ROOTED, "collective", "root"),
    ):
        assert all(word in key_of(name, key).meaning for word in words)
    for keys in KEYS.values():
        for each in keys:
            assert all(word in each.meaning for word in each.choices)


def test_the_example_of_the_page_is_read() -> None:
    for text in re.findall(r"```toml\n(.*?)```", PAGE, re.S):
        assert signature.from_text(text).program


def test_what_an_item_holds_has_a_key() -> None:
    for name, kind in KINDS.items():
        names = {entry.name for entry in fields(kind)}
        for field, part in kind.parts.items():
            names = names - {field} | {entry.name for entry in fields(part)}
        names -= {"portions"}  # follows from the numbers
        assert names == {key.name for key in KEYS[name]}


def test_domains() -> None:
    assert POSITIVE.holds(1e-9)
    assert not POSITIVE.holds(0.0)
    assert not POSITIVE.holds(float("nan"))
    assert NOT_NEGATIVE.holds(0)
    assert not ONE_OR_MORE.holds(0.5)
    assert SHARE.holds(np.array([-0.1, 0.0, 1.0, 1.1])).tolist() == [False, True, True, False]


# -- values that are wrong whatever the run is


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ("serial = { trip = 0 }", "trip must be above 0, not 0"),
        ("serial = { trip = '1/0' }", "trip: expression '1/0': has no finite value"),
        ("serial = { trip = 1, flops = -1 }", "flops must be at least 0, not -1"),
        ("serial = { trip = 1, bytes.MEM = -8 }", "MEM must be at least 0, not -8"),
        ("serial = { trip = 1, chain = -8 }", "chain must be at least 0, not -8"),
        (
            "serial = { trip = 1, instructions = 4, latency = -8 }",
            "latency must be at least 0, not -8",
        ),
        ("loop = { count = -3, body = [{ serial = { trip = 1 } }] }", "count must be"),
        ("loop = { count = 3, body = [{ serial = { trip = 1, every = 0 } }] }", "every must be"),
        ("parallel = { trip = 1, inner = 0 }", "inner must be above 0, not 0"),
        ("parallel = { trip = 1, chunk = 0 }", "chunk must be at least 1, not 0"),
        ("parallel = { trip = 1, iteration_cv = -1 }", "iteration_cv must be"),
        ("parallel = { trip = 1, constructs = { barrier = -1 } }", "barrier must be"),
        (
            "parallel = { trip = 1, critical = { entries = 1, seconds = -1 } }",
            "seconds must be at least 0, not -1",
        ),
        (
            "parallel = { trip = 1, shared_writes = { count = 1, bytes = 0, chunk = 1 } }",
            "bytes must be above 0, not 0",
        ),
        ("task = { count = 0, seconds = 1 }", "count must be above 0, not 0"),
        ("halo = { width = 0, bytes_per_cell = 8 }", "width must be above 0, not 0"),
        (
            "halo = { width = 1, bytes_per_cell = 8, overlap = 2 }",
            "overlap must be between 0 and 1, not 2",
        ),
        (
            "halo = { width = 1, bytes_per_cell = 8, comm_threads = 0 }",
            "comm_threads must be at least 1, not 0",
        ),
        (
            "pipeline = { dims = [0], blocks = 0, seconds = 1, bytes = 1 }",
            "blocks must be at least 1, not 0",
        ),
        ("collective = { op = 'bcast', bytes = -1 }", "bytes must be at least 0, not -1"),
        ("collective = { op = 'bcast', bytes = 1, root = -1 }", "root must be"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(item: str, words: str) -> None:
    with pytest.raises(SignatureError, match=words) as caught:
        signature.from_text(HEAD + "[decomp]\nglobal = [8]\n[[program]]\n" + item, "demo.toml")
    assert re.match(r"demo\.toml:[67]: ", caught.value.message)  # 6 for what is inside a body
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("item", "words", "hint"),
    [
        (
            "serial = { trip = 1, every = 5 }",
            "every counts the iterations of a loop, but 'serial' is not in a loop",
            "move the item into the body of a loop, or remove every",
        ),
        (
            "collective = { op = 'barrier', comm_threads = 2 }",
            "comm_threads in collective: a collective is called by one thread",
            "only halo, shift and p2p can send with several threads",
        ),
        (
            "pipeline = { dims = [0], blocks = 1, seconds = 1, bytes = 1, comm_threads = 'T' }",
            "comm_threads in pipeline: the blocks of a pipeline are sent one after the other",
            "only halo, shift and p2p can send with several threads",
        ),
        (
            "collective = { op = 'bcast', bytes = 1, comm = 'dim1' }",
            "comm must be world, node, leaders, grid dimensions or a formula of rank, not 'dim1'",
            "dimensions of this decomp: dim0",
        ),
        (
            "collective = { op = 'bcast', bytes = 1, comm = ['dim0', 'dim0'] }",
            "grid dimensions or a formula of rank, not .'dim0', 'dim0'.",
            "dimensions of this decomp: dim0",
        ),
        (
            "collective = { op = 'allreduce', bytes = 1, root = 0 }",
            "allreduce has no root",
            "only bcast, reduce, gather, scatter have one",
        ),
        (
            "serial = { trip = 1, mode = 'fast' }",
            "mode must be sum, ecm, roofline or issue, not 'fast'",
            None,
        ),
        ("parallel = { trip = 1, shared_writes = 3 }", "shared_writes must be a table", None),
        (
            "parallel = { trip = 1, shared_writes = { count = 1, bytes = 8 } }",
            "chunk is missing in shared_writes",
            None,
        ),
    ],
)
def test_what_cannot_be_is_refused_with_advice(item: str, words: str, hint: str | None) -> None:
    with pytest.raises(SignatureError, match=words) as caught:
        signature.from_text(HEAD + "[decomp]\nglobal = [8]\n[[program]]\n" + item, "demo.toml")
    assert caught.value.line == 7
    assert caught.value.hint == hint


def test_grid_dimensions_need_a_grid() -> None:
    text = HEAD + "[[program]]\ncollective = { op = 'bcast', bytes = 1, comm = 'dim0' }"
    with pytest.raises(SignatureError, match="not 'dim0'") as caught:
        signature.from_text(text)
    assert caught.value.hint == "grid dimensions need decomp"


def test_further_keys_are_read() -> None:
    text = HEAD + (
        "[decomp]\nglobal = [8, 8]\n[[program]]\n"
        "parallel = { trip = 9, iteration_cv = 0.1, chain = 4, instructions = 12, mode = 'ecm', "
        "shared_writes = { count = 9, bytes = 8, chunk = 1 } }\n"
        "[[program]]\ncollective = { op = 'reduce', bytes = 8, comm = ['dim1', 'dim0'], root = 3 }"
    )
    loop, reduction = signature.from_text(text).program
    assert isinstance(loop, Parallel)
    assert isinstance(loop.shared_writes, SharedWrites)
    assert (loop.iteration_cv.text, loop.costs.chain.text) == ("0.1", "4")
    assert loop.costs.instructions is not None
    assert loop.costs.mode == "ecm"
    assert getattr(reduction, "comm") == (0, 1)  # noqa: B009 - an item of any kind
    assert getattr(reduction, "root").text == "3"  # noqa: B009
