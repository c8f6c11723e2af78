"""Networks whose links and buses are shared."""

from __future__ import annotations

import pytest

from popmodel.base.errors import UsageError
from popmodel.network.network import PRESETS, Network

COUNTS = ("output_links", "input_links", "links_within", "buses")


@pytest.mark.parametrize("count", COUNTS)
def test_a_limited_resource_makes_a_network_contended(count: str) -> None:
    assert not PRESETS["dimemas"].contended
    assert PRESETS["dimemas"].with_(**{count: 1}).contended


def test_the_ideal_form_of_a_network_has_as_many_links_as_needed() -> None:
    limited = Network(**dict.fromkeys(COUNTS, 1), sharing="fair")
    assert limited.ideal() == Network()


def test_the_document_names_shared_resources_where_there_are_some() -> None:
    assert not {*COUNTS, "sharing"} & set(Network().to_dict())
    found = Network(output_links=2, input_links=1).to_dict()
    assert {name: found[name] for name in (*COUNTS, "sharing")} == {
        "output_links": 2,
        "input_links": 1,
        "links_within": 0,
        "buses": 0,
        "sharing": "fifo",
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"output_links": -1}, "output links must be a whole number of at least 0, not -1"),
        ({"buses": 1.5}, "buses must be a whole number of at least 0, not 1.5"),
        ({"input_links": True}, "input links must be a whole number of at least 0, not True"),
        ({"sharing": "fare"}, "unknown sharing of links 'fare'"),
    ],
)
def test_what_no_link_is_is_refused(values: dict, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Network(**values)
    assert caught.value.message == message
