"""Documents as JSON."""

import json
import math
from typing import Any

import numpy as np
import pytest

from popmodel.reports.renderers.data import render_json as render
from popmodel.reports.renderers.text import Style
from popmodel.reports.views import Views


def written(document: dict[Any, Any]) -> str:
    return render(document, Views(lambda _: [], lambda _: []), Style())


def test_numbers_keep_full_precision_and_arrays_are_lists() -> None:
    document = {"third": 1 / 3, "times": np.array([0.1, 0.2]), "count": np.int64(7), 1: ("a", None)}
    read = json.loads(written(document))
    assert read == {"third": 1 / 3, "times": [0.1, 0.2], "count": 7, "1": ["a", None]}
    assert written({}).endswith("\n")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_json_never_holds_what_json_does_not_know(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        written({"value": value})


def test_names_that_are_no_utf_8_are_written_as_escapes() -> None:
    read = json.loads(written({"trace": "tr\udcff-größe.prv"}))
    assert read == {"trace": "tr\\udcff-größe.prv"}


def test_json_refuses_what_it_cannot_write() -> None:
    with pytest.raises(TypeError, match="object has no form in JSON"):
        written({"value": object()})
