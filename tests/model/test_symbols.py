"""The table of symbols is complete and agrees with the schema of the machine profile."""

import pytest

from popmodel.base.documents import Items, NamedShape, OneOf, Shape, TableShape
from popmodel.machines import profile
from popmodel.machines.profile_schema import PROFILE, Number
from popmodel.model.symbols import explain, label, not_modelled
from popmodel.model.uncertainty import group


def schema_unit(path: str) -> str:
    entry: Shape = PROFILE
    for key in path.replace("[", ".[").split("."):
        match entry:
            case TableShape(keys=keys):
                entry = keys[key]
            case NamedShape(of=inner) | Items(of=inner):
                entry = inner
    if isinstance(entry, OneOf):  # a word may stand in its place
        entry = entry.shapes[-1]
    assert isinstance(entry, Number)
    return entry.unit


def test_every_quantity_of_the_presets_has_a_symbol_with_the_same_unit() -> None:
    for name in profile.presets():
        for path in profile.load(name).quantities:
            symbol = explain(path)
            assert symbol is not None, path
            assert symbol.unit == schema_unit(path), path
            assert symbol.source == "machine"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("memory.bsat", "saturated memory bandwidth (memory.bsat)"),
        (
            "net.inter.classes.beta",
            "time per byte of a message between nodes (net.inter.classes.beta)",
        ),
        ("net.intra.os", "CPU time to send a message within a node (net.intra.os)"),
        ("openmp.for.fit.a", "overhead of OpenMP for (openmp.for.fit.a)"),
        ("imbalance.transient_cv", "transient imbalance (imbalance.transient_cv)"),
        ("params.N", "parameter N of the application"),
        ("lambda_T", "stretch of a parallel loop by uneven shares (lambda_T)"),
        ("elsewhere", "elsewhere"),
    ],
)
def test_an_input_is_named_in_words_with_its_path(path: str, words: str) -> None:
    assert label(path) == words


def test_every_group_of_the_presets_has_words() -> None:
    for name in profile.presets():
        for path in profile.load(name).quantities:
            assert label(group(path)) != group(path)


def test_what_is_not_modelled_is_named_with_its_effect() -> None:
    assert not_modelled(["net.shm_k", "core.loop_cycles"]) == (
        "not modelled, no value in the profile: core.loop_cycles (loop-control cycles per "
        "iteration), net.shm_k (sharing of the memory channel by messages within a node)"
    )
