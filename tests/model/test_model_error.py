"""Factors of the laws: which parts they act on, what splits share, how they grow, noise."""

import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, program
from model.strategies import machines, programs

from popmodel.machines.profile import Profile, from_document
from popmodel.machines.quantity import Quantity
from popmodel.model import model_error
from popmodel.model.model_error import ModelForm, Reach, contrast, disturbed, laws_of_split
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import RunWork
from popmodel.model.signature.application import Signature
from popmodel.model.symbols import (
    LAWS,
    LOOPS,
    MESSAGES,
    OPENMP,
    SERIAL,
    SOURCE,
    WAITING,
    ModelLaw,
)
from popmodel.model.uncertainty import FIRST, Draws, drawn_only, estimate

DRAWS = 400
WORK = RunWork(
    serial=1.0,
    share=2.0,
    stretched=3.0,
    overhead=0.5,
    synchronising=0.25,
    awaiting=0.5,
    single_thread=4.0,
    waiting=0.125,
    transfer=0.75,
    measured=0.0,
    steps=10.0,
    serial_cycles=1e9,
    region_cycles=2e9,
    flops=1e9,
    memory_bytes=1e8,
    instructions=1e9,
)
PARTS = {
    LOOPS: ("share", "stretched", "awaiting", "region_cycles"),
    SERIAL: ("serial", "serial_cycles"),
    OPENMP: ("overhead", "synchronising"),
    WAITING: ("waiting",),
    MESSAGES: ("transfer",),
}
AMOUNTS = ("steps", "flops", "memory_bytes", "instructions")


def drawn(count: int = DRAWS, seed: int = 0) -> Draws:
    return Draws({}, count, seed)


def of(
    split: str,
    reach: tuple[Reach, ...] = (),
    work: RunWork = WORK,
    count: int = DRAWS,
    *,
    from_source: bool = False,
) -> ModelForm:
    return laws_of_split(split, work, (), reach, drawn(count), from_source=from_source)


def deviation(values: Any) -> float:
    return float(np.std(np.log(drawn_only(values))))


@pytest.mark.parametrize("law", PARTS, ids=lambda law: law.path)
def test_a_law_multiplies_its_part_of_the_work(law: ModelLaw) -> None:
    one = of("4 x 2")
    for name in PARTS[law]:
        factor = getattr(one.applied(WORK), name) / getattr(WORK, name)
        np.testing.assert_allclose(factor, one.factor(law.path))
        assert list(factor[:FIRST]) == [1.0] * FIRST
        assert deviation(factor) == pytest.approx(law.spread, rel=0.1)


def test_a_stated_time_of_the_master_has_the_error_of_loops() -> None:
    one = of("4 x 2", work=WORK._replace(stated=0.25))
    loops, serial = one.factor(LOOPS.path), one.factor(SERIAL.path)
    applied = one.applied(WORK._replace(stated=0.25))
    np.testing.assert_allclose(applied.serial, 0.25 * loops + 0.75 * serial)
    np.testing.assert_allclose(applied.stated, 0.25 * loops)
    np.testing.assert_allclose(applied.serial_cycles, 1e9 * applied.serial)


def test_a_measured_collective_has_no_error_of_the_law_of_messages() -> None:
    work = WORK._replace(measured=0.5)
    one = of("4 x 2", work=work)
    factor = one.factor(MESSAGES.path)
    np.testing.assert_allclose(one.applied(work).transfer, 0.5 + 0.25 * factor)
    measured_only = WORK._replace(measured=0.75)
    assert MESSAGES.path not in of("4 x 2", work=measured_only).quantities


def test_without_draws_nothing_is_changed() -> None:
    one = of("4 x 2", count=0, from_source=True)
    assert one.applied(WORK) == WORK
    assert one.factor(LOOPS.path) == 1.0
    assert set(one.quantities) == set(LAWS)


def test_splits_share_the_larger_part_of_an_error() -> None:
    one, other, same = (of(split, from_source=True) for split in ("4 x 2", "2 x 4", "4 x 2"))
    for path, law in LAWS.items():
        scores = [drawn_only(each.scores[path]) for each in (one, other)]
        assert np.corrcoef(*scores)[0, 1] == pytest.approx(1 - law.own, abs=0.1)
        np.testing.assert_array_equal(one.scores[path], same.scores[path])


def test_what_is_counted_in_source_multiplies_all_computing_but_stated_times() -> None:
    one = of("4 x 2", from_source=True)
    loops, serial, source = (one.factor(law.path) for law in (LOOPS, SERIAL, SOURCE))
    work = WORK._replace(serial=3.0, stated=1.0)
    np.testing.assert_allclose(one.applied(work).stretched, work.stretched * loops * source)
    np.testing.assert_allclose(one.applied(work).serial, 2 * serial * source + loops)
    np.testing.assert_allclose(one.applied(work).stated, loops)


def test_one_thread_shares_with_a_loop_what_splits_share() -> None:
    """Else a law that is the same for all threads would blur their efficiency."""
    one = of("4 x 2")
    alone = one.applied(WORK).single_thread / WORK.single_thread
    assert deviation(alone) == pytest.approx(LOOPS.spread * math.sqrt(1 - LOOPS.own), rel=0.1)
    together = np.corrcoef(np.log(drawn_only(alone)), np.log(drawn_only(one.factor(LOOPS.path))))
    assert together[0, 1] == pytest.approx(math.sqrt(1 - LOOPS.own), abs=0.1)


def test_the_contrast_of_splits_has_no_common_part() -> None:
    one, other = of("4 x 2"), of("2 x 4")
    found = contrast(one.scores, other.scores)[LOOPS.path]
    own = math.sqrt(LOOPS.own)
    names = (f"{LOOPS.path} of {split}" for split in ("2 x 4", "4 x 2"))
    first, second = (own * drawn().scores(name) for name in names)
    np.testing.assert_allclose(found, first - second)
    alone = contrast({}, other.scores)
    np.testing.assert_array_equal(alone[LOOPS.path], other.scores[LOOPS.path])
    assert contrast({}, {}) == {}


@pytest.mark.parametrize(
    ("subject", "argument", "law"),
    [
        ("openmp.for", "threads", OPENMP),
        ("core.freq", "cores", LOOPS),
        ("memory.by_cores", "cores", SERIAL),
        ("net.inter", "bytes", MESSAGES),
        ("messages of coll.bcast", "processes", MESSAGES),
        ("topology", "nodes", MESSAGES),
    ],
)
def test_a_law_is_the_less_sure_the_farther_it_is_extrapolated(
    subject: str, argument: str, law: ModelLaw
) -> None:
    def ends(factor: float) -> tuple[float, float]:
        found = of("4 x 2", (Reach(subject, argument, factor, "beyond"),))
        others = {path: one for path, one in found.quantities.items() if LAWS[path] != law}
        shared = set(law.sections)
        assert all(
            one == LAWS[path].at(0)
            for path, one in others.items()
            if not shared & set(LAWS[path].sections)
        )
        one = found.quantities[law.path]
        assert one.low is not None and one.high is not None
        return math.log(one.low), math.log(one.high)

    limit = {"bytes": 256.0}.get(argument, 16.0)
    inside = ends(1.0)
    assert inside == pytest.approx((-1.6448536 * law.spread, 1.6448536 * law.spread))
    half, whole = ends(math.sqrt(limit)), ends(limit)
    assert half == pytest.approx([math.sqrt(2) * end for end in inside])
    assert whole == pytest.approx([math.sqrt(5) * end for end in inside])


# -- overlap


def open_overlap(profile: Profile) -> Profile:
    """The same machine, of which nobody knows how arithmetic and transfers overlap."""
    document = copy.deepcopy(dict(profile.document))
    del document["core"]["overlap"]
    return from_document(document)


@given(programs(), machines(), st.integers(1, 16), st.integers(1, 8), st.integers(0, 3))
def test_no_interval_is_narrower_than_the_spread_between_the_forms_that_are_open(
    signature: Signature, machine: Profile, processes: int, threads: int, seed: int
) -> None:
    study = Study(signature, open_overlap(machine), {}, 20, seed)
    placement = place(processes, threads, machine.topology)
    runtime = estimate(study.run(placement, study.sources()).modelled.runtime)
    full, none = study.model_form(placement)
    assert runtime.low is not None and runtime.high is not None
    assert runtime.low <= full * (1 + 1e-9)
    assert runtime.high >= none * (1 - 1e-9)


# -- noise


def test_noise_widens_what_was_measured_in_its_section() -> None:
    narrow = Quantity(2.0, 1.9, 2.1, "measured", source="a benchmark")
    quantities = {
        "core.a": narrow,
        "core.b": Quantity(2.0, 1.9, 2.1, "preset"),
        "net.a": narrow,
    }
    found = disturbed(quantities, ("core",))
    assert {path: found[path] for path in ("core.b", "net.a")} == {
        "core.b": quantities["core.b"],
        "net.a": narrow,
    }
    wider = found["core.a"]
    assert wider.low is not None and wider.high is not None
    assert wider.low < 2 * math.exp(-1.6448 * model_error.DISTURBED) < 1.9
    assert wider.high > 2 * math.exp(1.6448 * model_error.DISTURBED) > 2.1
    assert wider.source == "a benchmark; wider: measured beside noise"
    assert disturbed(quantities, ()) == quantities


BANDWIDTHS = {"b1": 1e10, "bsat": 2e10}


def noisy(*sections: str) -> Profile:
    document = dict(machine().document)
    document["quality"] = {name: {"noisy": True} for name in sections}
    measured = {key: exact(value) | {"origin": "measured"} for key, value in BANDWIDTHS.items()}
    document["memory"] = {**document["memory"], **measured}
    return from_document(document)


def test_a_study_of_a_noisy_profile_says_so_and_has_wider_intervals() -> None:
    demo = program("[[program]]\nparallel = { trip = 6400, inner = 1e4, bytes = { MEM = 8 } }\n")
    spreads = []
    for profile in (noisy(), noisy("memory")):
        study = Study(demo, profile, {}, DRAWS, 0)
        assert ("noise" in study.included) == bool(profile.noisy)
        run = study.run(place(1, 2, profile.topology), study.sources())
        spreads.append(deviation(run.modelled.runtime))
    assert spreads[0] == pytest.approx(LOOPS.spread, rel=0.1)
    assert 1.2 * spreads[0] < spreads[1] < math.hypot(LOOPS.spread, model_error.DISTURBED)
