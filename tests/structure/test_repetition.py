"""What repeats in sequences, against the plainest way to find it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle import repetition as oracle

from popmodel.kernel import _kernel
from popmodel.structure.repetition import repetition, repetitions

COLUMNS = ("token", "parent", "offsets", "counts", "node", "iteration")


def tokens_of(text: str) -> np.ndarray:
    return np.array([ord(each) - ord("a") for each in text], np.int32)


def shown(text: str) -> str:
    """The nest of a text: loops in brackets, with their counts."""
    (found,) = repetitions([tokens_of(text)])

    def show(node: int) -> str:
        if found.token[node] >= 0:
            return chr(found.token[node] + ord("a"))
        counts = ",".join(str(each) for each in sorted(set(found.counts_of(node).tolist())))
        return "(" + "".join(show(each) for each in found.children[node]) + ")" + counts

    return "".join(show(node) for node in found.children[0])


@pytest.mark.parametrize(
    ("text", "nest"),
    [
        ("", ""),
        ("abcd", "abcd"),
        ("abcabcabc", "(abc)3"),
        ("xabcabcabcy", "x(abc)3y"),
        ("aab" * 3, "(aab)3"),
        ("aba" * 4, "(aba)4"),
        (("ab" * 4 + "c") * 3, "((ab)4c)3"),
        ("".join("a" + "i" * n + "b" for n in (5, 5, 5, 6, 7)), "(a(i)5,6,7b)5"),
        ("".join("p" + "xy" * n + "q" + "z" * m for n, m in ((3, 4), (4, 5), (5, 4))),
         "(p(xy)3,4,5q(z)4,5)3"),
        ("aabb", "aabb"),
        ("aaaa", "(a)4"),
    ],
)  # fmt: skip
def test_nests(text, nest):
    assert shown(text) == nest


NESTS = st.recursive(
    st.text("abcdef", min_size=1, max_size=4),
    lambda inner: st.lists(
        st.one_of(
            st.text("abcdef", min_size=1, max_size=3),
            st.tuples(inner, st.integers(2, 7)).map(lambda loop: loop[0] * loop[1]),
        ),
        min_size=1,
        max_size=4,
    ).map("".join),
    max_leaves=8,
)


WAYS = st.fixed_dictionaries({"alone": st.booleans(), "shortest": st.booleans()})


@given(st.one_of(NESTS, st.text("abcd", max_size=60)), WAYS)
def test_as_the_reference_finds_it(text, way):
    tokens = tokens_of(text[:200])
    found, wanted = repetition(tokens, **way), oracle.repetition(tokens, **way)
    for name in COLUMNS:
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist(), name


@given(NESTS, WAYS)
def test_executed_it_is_the_sequence(text, way):
    found = repetition(tokens_of(text), **way)
    spent = dict.fromkeys(range(len(found.token)), 0)
    said = []

    def run(node):
        if found.token[node] >= 0:
            said.append(int(found.token[node]))
            return
        counts = found.counts_of(node)
        spent[node] += 1
        for _ in range(counts[spent[node] - 1]):
            for each in found.children[node]:
                run(each)

    run(0)
    assert said == tokens_of(text).tolist()


def test_finds_the_outer_loop_of_a_long_sequence():
    body = np.arange(40, dtype=np.int32)
    tokens = np.tile(np.concatenate([np.tile(body, 9), [77, 78]]), 300).astype(np.int32)
    found = repetition(tokens)
    assert found.counts_of(1).tolist() == [300]


def test_refuses_what_is_no_token():
    with pytest.raises(ValueError, match="tokens must count from 0"):
        _kernel.repetition(np.array([0, -1], np.int32), False, False)
