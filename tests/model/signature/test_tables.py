"""The grammar of signatures: one table of keys, the page that shows it, the values it refuses."""

import re
from dataclasses import fields

import grammar_page
import numpy as np

from popmodel.model import signatures as signature
from popmodel.model.kinds import KEYS, KINDS, key_of
from popmodel.model.kinds.calls import _UNEVEN
from popmodel.model.kinds.collective import COMMUNICATORS
from popmodel.model.kinds.costs import ItemCosts
from popmodel.model.kinds.item import COMMON
from popmodel.model.kinds.loops import Parallel, SharedWrites
from popmodel.model.kinds.spread import ItemSpread
from popmodel.model.signature import keys
from popmodel.model.signature.keys import NOT_NEGATIVE, ONE_OR_MORE, POSITIVE, SHARE, page_tables
from popmodel.network.collectives import OPERATIONS, ROOTED

PAGE = keys.PAGE.read_text()
HEAD = 'schema = "popmodel/signature/1"\n[app]\nname = "demo"\n'


def test_the_page_lists_the_quantities_of_the_machine() -> None:
    assert grammar_page.page() == PAGE, "run python tests/update_documents.py"


def test_a_key_says_the_same_in_all_tables_that_share_it() -> None:
    shared = {key.name: key for key in (*ItemCosts.own, *ItemSpread.own)}
    common = {key.name: key for key in COMMON}
    for name, kind in KINDS.items():
        rows = page_tables()[name].keys
        assert common.items() <= rows.items(), name
        for part in kind.parts.values():
            assert all(_row(shared[key.name]) == _row(rows[key.name]) for key in part.own), name
    calls = page_tables()["calls"].keys
    assert all(_row(calls[name]) == _row(shared[name]) for name in calls.keys() & set(_UNEVEN))


def _row(key: keys.GrammarKey) -> tuple[object, ...]:
    return key.name, key.unit, key.default, key.meaning, key.domain


def test_words_with_a_meaning_are_on_the_page() -> None:
    for words, name, key in (
        (COMMUNICATORS, "collective", "comm"),
        (OPERATIONS, "collective", "op"),
        (ROOTED, "collective", "root"),
    ):
        assert all(word in key_of(name, key).meaning for word in words)
    for own in KEYS.values():
        for key in own:
            assert all(word in key.meaning for word in key.choices)


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
