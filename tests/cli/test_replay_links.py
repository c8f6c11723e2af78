"""``popmodel replay`` on networks whose links messages share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Answer = tuple[int, str, str]
Call = Callable[..., Answer]
DATA = Path(__file__).parent.parent / "data"
PURE = str(DATA / "comd.4.prv.gz")


def test_links_that_messages_share_make_a_run_slower(popmodel: Call) -> None:
    words = ("replay", PURE, "--network", "alpha-beta", "--bandwidth", "100MB/s", "--mapping")
    given = ("block:1", "--links", "0,1,2:1", "--sharing", "fifo,fair")
    runs = json.loads(popmodel(*words, *given, "--format", "json")[1])["runs"]
    free, free_too, fifo, fair, *_ = (run["runtime"] for run in runs)
    assert free == free_too < min(fifo, fair)
    assert "output_links" not in runs[0]["network"]
    assert runs[2]["network"]["output_links"] == runs[2]["network"]["input_links"] == 1
    assert [run["network"].get("sharing") for run in runs[2:]] == ["fifo", "fair"] * 2
    lines = popmodel(*words, *given)[1].splitlines()
    assert any(line.split()[:4] == ["5", "2", "1", "fifo"] for line in lines)


def test_a_topology_from_a_file(popmodel: Call) -> None:
    words = ("replay", PURE, "--bandwidth", "1GB/s", "--mapping", "block:1")
    given = ("--topology", "tests/data/fat_tree.toml")
    document = json.loads(popmodel(*words, *given, "--format", "json")[1])
    assert document["runs"][0]["network"]["topology"].startswith("fat tree (down 2, 2; up 1, 1;")
    assert "tests/data/fat_tree.toml" in json.dumps(document["provenance"])
    assert "topology fat tree (down 2, 2" in " ".join(popmodel(*words, *given)[1].split())


def test_links_between_nodes_of_a_run_on_one_node_are_named(popmodel: Call) -> None:
    out = " ".join(popmodel("replay", PURE, "--links", "1")[1].split())
    assert "all ranks are on one node, so that no message takes a link between nodes" in out
    within = popmodel("replay", PURE, "--bandwidth", "1GB/s", "--intra-links", "1")[1]
    assert "links within 1" in " ".join(within.split())
    assert "on one node, so" not in within


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--links", "x"), "--links: must be a whole number of at least 0, or OUT:IN, not 'x'"),
        (("--links", "1:"), "--links: must be a whole number of at least 0, or OUT:IN, not '1:'"),
        (("--buses", "-1"), "--buses: must be a whole number of at least 0, not '-1'"),
        (("--intra-links", "1.5"), "--intra-links: must be a whole number of at least 0"),
        (("--sharing", "fare"), "--sharing: unknown sharing of links 'fare'"),
        (("--sharing", "fair"), "sharing: no network has anything to share"),
        (
            ("--links", "1", "--topology", "tests/data/fat_tree.toml"),
            "a topology has its own links",
        ),
    ],
)
def test_what_nobody_shares_is_refused(
    given: tuple[str, ...], message: str, popmodel: Call
) -> None:
    status, _, err = popmodel("replay", PURE, *given)
    assert (status, message in err) == (2, True), err
