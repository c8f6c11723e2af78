"""Which parameters of a machine predictions use is what the register says, both ways."""

import copy
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from console import ROOT

from popmodel.base.expressions.elementary import Value
from popmodel.machines import profile as profiles
from popmodel.machines import register
from popmodel.machines.profile import Profile
from popmodel.machines.profile_comparison import network_of
from popmodel.machines.quantity import Quantity
from popmodel.machines.register import REGISTER, TIERS
from popmodel.model import signatures
from popmodel.model.uncertainty import Draws
from popmodel.prediction.prediction import predict

EVERY = signatures.load(ROOT / "tests/data/signatures/every.toml")
MACHINE = json.loads((ROOT / "tests/data/machines/every.json").read_text())
SPLITS = ((1, 1), (1, 3), (2, 12), (4, 2), (16, 1), (32, 2))
"""Among them one with threads on two sockets, one with several nodes, and a count of threads that
no overhead was measured at."""


class Read(dict[str, Any]):
    """A table of a profile that keeps the paths of the numbers and texts that are taken of it."""

    def __init__(self, table: dict[str, Any], path: str, seen: set[str]) -> None:
        super().__init__({key: _read(item, f"{path}.{key}", seen) for key, item in table.items()})
        self.path = path
        self.seen = seen

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        if not isinstance(value, Read | list):
            self.seen.add(f"{self.path}.{key}".lstrip("."))
        return value

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, default) if key not in self else self[key]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def values(self) -> Any:
        return [self[key] for key in self]


def _read(item: Any, path: str, seen: set[str]) -> Any:
    if isinstance(item, dict) and "value" not in item:
        return Read(item, path, seen)
    if isinstance(item, list):
        return [_read(one, f"{path}[]", seen) for one in item]
    return item


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Paths that predictions of all splits, and a replay of a trace, read from the profile."""
    seen: set[str] = set()
    value_of, quantity_of = Draws.__getitem__, Profile.get

    def value(draws: Draws, path: str) -> Value:
        seen.add(path)
        return value_of(draws, path)

    def quantity(profile: Profile, path: str) -> Quantity:
        seen.add(path)
        return quantity_of(profile, path)

    monkeypatch.setattr(Draws, "__getitem__", value)
    monkeypatch.setattr(Profile, "get", quantity)
    by_cores = copy.deepcopy(MACHINE)
    for key in ("b1", "bsat", "q"):
        del by_cores["memory"][key]
    del by_cores["core"]["overlap"]  # a word for all levels goes first
    no_caches = copy.deepcopy(MACHINE)
    no_caches["topology"]["caches"] = []
    for document in (MACHINE, by_cores, no_caches):
        known = profiles.from_document(document)
        machine = replace(known, document=Read(dict(document), "", seen))
        for processes, threads in SPLITS:
            predict(EVERY, machine, processes, threads, {}, draws=0)
    network_of(profiles.from_document(MACHINE), np.arange(4, dtype=np.int32) // 2)
    return seen


@pytest.mark.long
def test_what_predictions_read_is_what_the_register_calls_used(used: set[str]) -> None:
    read = {(one.path, path.split(".")[1]) for path in used if (one := register.find(path))}
    read = {(path, tier if "TIER" in path else "") for path, tier in read}
    assert read == {
        (one.path, tier)
        for one in REGISTER
        for tier in (TIERS if one.has_tiers else ("",))
        if not one.reason(tier)
    }
