"""Which rank runs on which node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from popmodel.base.errors import UsageError
from popmodel.network.placement import listed, parse_mapping


def nodes(text: str, processes: int) -> list[int]:
    mapping = parse_mapping(text)
    assert mapping is not None
    return mapping.nodes_of(processes).tolist()


def test_rules() -> None:
    assert nodes("block:2", 5) == [0, 0, 1, 1, 2]
    assert nodes("cyclic:2", 5) == [0, 1, 2, 0, 1]
    assert parse_mapping("traced") is None


@given(st.sampled_from(["block", "cyclic"]), st.integers(1, 40), st.integers(1, 200))
def test_no_node_gets_more_ranks_than_asked_for_and_none_is_spare(
    rule: str, per_node: int, processes: int
) -> None:
    ranks = np.bincount(nodes(f"{rule}:{per_node}", processes))
    assert ranks.max() <= per_node
    assert len(ranks) == -(-processes // per_node)
    assert ranks.min() > 0


def test_a_list_of_nodes_by_name() -> None:
    mapping = listed("hosts", ["n7 # rank 0", "", "n3", "n7"])
    assert mapping.nodes_of(3).tolist() == [0, 1, 0]


@pytest.mark.parametrize("text", ["block", "block:", "block:0", "block:-1", "blck:2", "cyclic:x"])
def test_what_is_no_mapping_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"must be traced, block:N, cyclic:N or a file"):
        parse_mapping(text)


def test_a_list_that_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match=r"mapping hosts: lists 2 ranks, the run has 3"):
        listed("hosts", ["a", "b"]).nodes_of(3)
    with pytest.raises(UsageError, match=r"hosts, line 2: one node expected, not 'b c'"):
        listed("hosts", ["a", "b c"])
    with pytest.raises(UsageError, match=r"hosts: names no node"):
        listed("hosts", ["# nobody"])
