"""From results to plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from popmodel.base.values import dataclass, document, fields_of, plain


class Mode(StrEnum):
    """A choice."""

    STRONG = "strong"


@dataclass(frozen=True)
class Share:
    """A result with a value that is not a field."""

    part: float
    whole: float

    def to_dict(self) -> Mapping[str, Any]:
        """Return its keys."""
        return {"part": self.part, "share": self.part / self.whole}


@dataclass(frozen=True)
class Found:
    """A result whose fields are its document."""

    split: tuple[int, int]
    mode: Mode
    efficiency: float | None
    shares: Mapping[str, Share]
    times: np.ndarray
    path: Path


def test_a_result_has_its_fields_as_keys_in_their_order() -> None:
    one = Found((4, 2), Mode.STRONG, None, {"a": Share(1, 4)}, np.array([0.5]), Path("run.prv"))
    assert json.dumps(plain(one)) == (
        '{"split": [4, 2], "mode": "strong", "efficiency": null, '
        '"shares": {"a": {"part": 1, "share": 0.25}}, "times": [0.5], "path": "run.prv"}'
    )


def test_fields_can_be_named_or_left_out() -> None:
    one = Share(1, 4)
    assert fields_of(one, "whole") == {"whole": 4}
    assert fields_of(one, without=("whole",)) == {"part": 1}


def test_a_document_begins_with_its_schema() -> None:
    made = document("popmodel/test/1", share=Share(1, 4))
    assert json.dumps(made) == '{"schema": "popmodel/test/1", "share": {"part": 1, "share": 0.25}}'


def test_numbers_of_numpy_become_those_of_python() -> None:
    found = plain({1: np.int64(7), "b": np.bool_(True), "c": np.float64(0.5), "d": {2}})
    assert found == {"1": 7, "b": True, "c": 0.5, "d": [2]}
    assert [type(one) for one in found.values()] == [int, bool, float, list]


def test_texts_are_written_as_asked_for() -> None:
    assert plain({"a": ["b", None, 1]}, str.upper) == {"A": ["B", None, 1]}


def test_what_has_no_form_is_refused() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        plain([object()])
