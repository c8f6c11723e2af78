"""The glossary: every name that is defined somewhere is explained, and nothing twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import popmodel
from popmodel.base.documents import Items, NamedShape, Optional, Shape, TableShape
from popmodel.base.errors import UsageError
from popmodel.cli import glossary
from popmodel.efficiency.explain import plain
from popmodel.efficiency.family import AGGREGATES
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines import profile_schema as schema
from popmodel.model.kinds import KEYS, TABLES, remedy
from popmodel.model.run.work import WORK
from popmodel.model.symbols import REMEDIES, SHORT, SYMBOLS

FREE = {"core.freq": "16", "openmp": "barrier", "memory.latency": "L2", "noise": "fwq"}


def explain(name: str) -> dict[str, Any]:
    """The document of a name."""
    return popmodel.docs(name).to_dict()


def meanings(name: str) -> list[str]:
    """What it says of a name."""
    found = explain(name)
    words = [word["meaning"] for word in found["words"]]
    return words + [one["meaning"] for one in found.get("definitions", [])]


def _numbers(shape: Shape, path: str) -> Iterator[str]:
    """Paths of all numbers of a machine profile, as findings and screens write them."""
    if isinstance(shape, schema.Number):
        yield path
    elif isinstance(shape, TableShape):
        for key, one in shape.keys.items():
            yield from _numbers(one, f"{path}.{key}" if path else key)
    elif isinstance(shape, Items):
        yield from _numbers(shape.of, f"{path}[0]")
    elif isinstance(shape, NamedShape) and path not in ("quality", "absent", "noise"):
        yield from _numbers(shape.of, f"{path}.{FREE.get(path, 'L1')}")
    elif isinstance(shape, Optional):
        yield from _numbers(shape.of, path)


PATHS = list(_numbers(schema.PROFILE, ""))


def test_there_are_parameters() -> None:
    assert len(PATHS) > 50
    assert {"memory.bsat", "net.inter.classes[0].alpha", "openmp.barrier.seconds[0]"} <= {*PATHS}


def test_every_parameter_and_symbol_is_explained() -> None:
    for name in (*PATHS, *SYMBOLS, *SHORT.values()):
        assert meanings(name), name


def test_every_quantity_of_a_run_is_explained() -> None:
    for name, one in AGGREGATES.items():
        assert one.meaning in meanings(one.symbol) or find_metric_of(one.symbol)
        assert one.meaning in meanings(name) or find_metric_of(name)


def find_metric_of(name: str) -> bool:
    """Whether a metric has that name: computation scaling is both."""
    return any(plain(name) in family.metrics for family in load_families().values())


def test_every_key_of_a_signature_is_explained() -> None:
    for table, keys in KEYS.items():
        for key in keys:
            assert key.meaning in meanings(f"{table}.{key.name}" if table else key.name)
        assert not table or any(text.startswith(TABLES[table]) for text in meanings(table))


def test_names_that_keys_share_with_other_words_are_listed() -> None:
    """Keys are looked up for these names, and for those that are nothing else."""
    families = load_families().values()
    metrics = {
        name
        for one in families
        for metric in one.metrics.values()
        for name in (metric.id, metric.name)
    }
    others = {name for word in glossary.words() for name in (word.name, *word.also)}
    known = {*map(plain, metrics | others | {*PATHS}), *glossary.abbreviations()}
    keys = {plain(name) for word in glossary._keys() for name in (word.name, *word.also)}
    assert glossary._file()["also_keys"] == sorted(known & keys)


def test_changes_of_parts_of_a_program_have_names_of_their_own() -> None:
    for word in glossary.words():
        assert not any(map(remedy, (word.name, *word.also)))
    for family in load_families().values():
        assert not any(remedy(metric.name) for metric in family.metrics.values())


def test_a_metric_that_shares_its_name_with_a_key_is_explained_with_it() -> None:
    found = explain("Comm")
    assert found["metric"] == "communication_efficiency"
    assert {word["topic"] for word in found["words"]} == {"key of a signature"}


def test_every_symbol_of_formulas_and_every_remedy_is_explained() -> None:
    for name, _, meaning in WORK.values():
        assert meaning in meanings(name)
    for label in REMEDIES:
        assert meanings(label)


def test_metrics_have_their_abbreviations() -> None:
    known = {metric for family in load_families().values() for metric in family.metrics}
    assert set(glossary.abbreviations().values()) <= known
    assert explain("LB")["metric"] == "load_balance"
    assert explain("PE %")["metric"] == "parallel_efficiency"
    assert explain("SerE")["metric"] == explain("sere")["metric"] == "serialisation_efficiency"


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("tie set", "equally good"),
        ("equally good (within 2 %)", "equally good"),
        ("expected regret", "expected loss"),
        ("doubtful", "main uncertainty"),
        ("take", "recommended split"),
        ("P(best)", "P(best)"),
        ("  Eager-Threshold ", "eager threshold"),
        ("CPU factor", "CPU factor"),
        ("e_mp", "e_mp"),
        ("net.g", "net.g"),
        ("parallelise wall, rows", "parallelise wall, rows"),
        ("pack halo in a parallel region", "pack halo in a parallel region"),
        ("net.G", "net.G"),
    ],
)
def test_old_and_new_words_are_known(spelling: str, name: str) -> None:
    assert explain(spelling)["words"][0]["name"] == name


def test_what_is_related_can_be_explained() -> None:
    for word in glossary.words():
        for name in word.see:
            assert explain(name), (word.name, name)


def test_no_spelling_is_given_twice() -> None:
    entries = glossary._file()["term"]
    spellings = Counter(name for one in entries for name in (one["name"], *one.get("also", ())))
    assert [name for name, times in spellings.items() if times > 1] == []
    assert all(one["topic"] in glossary.TOPICS for one in entries)
    assert all(one["meaning"].endswith(".") for one in entries)


def test_a_family_is_known_by_its_title() -> None:
    assert explain("MPI + OpenMP (additive), %")["families"][0]["family"] == "hybrid-additive"


def test_errors_of_one_family_name_it() -> None:
    with pytest.raises(UsageError, match="unknown metric 'speedup'"):
        explain("talp.speedup")


def test_unknown_names_have_near_ones() -> None:
    with pytest.raises(UsageError) as caught:
        explain("paralel.trip")
    assert caught.value.message == "unknown name 'paralel.trip'"
    assert caught.value.hint is not None
    assert "parallel.trip" in caught.value.hint
