"""Formulas: what is printed gives what is predicted, for every metric and kind of item."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from model.demo import exact, machine, program

from popmodel.base.errors import UsageError
from popmodel.base.expressions import Takes, parse
from popmodel.efficiency.hierarchy import load_families
from popmodel.machines import profile
from popmodel.machines.profile import Profile
from popmodel.model import signatures as signature
from popmodel.model.predictor import Study
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import Change, Correction
from popmodel.model.signature.application import Signature
from popmodel.prediction import derivation
from popmodel.prediction.derivation import (
    FUNCTIONS,
    KINDS,
    Formula,
    FormulaError,
    choose,
    derive,
)
from popmodel.prediction.prediction import MAIN_FAMILY, predict

ROOT = Path(__file__).parent.parent.parent
PRESET = profile.load(profile.DEFAULT_PRESET)
MEASURED = profile.load(ROOT / "examples" / "profiles" / "two-core-epyc.json")
FAMILIES = load_families()
ARGUMENTS = {"q": Takes(1), "mva": Takes(3)}
BUNDLED = {name: signature.load(name) for name in ("stencil3d", "cannon")}


def formula(one: Signature, on: Profile, split: tuple[int, int], asked: str = "runtime") -> Formula:
    return derivation.formula(one, on, *split, asked)


@cache
def of_stencil(asked: str = "runtime") -> Formula:
    return formula(BUNDLED["stencil3d"], PRESET, (16, 4), asked)


def evaluate(document: Mapping[str, object]) -> float:
    """Compute the asked value from the printed texts and the values of the symbols alone."""
    texts = {one["name"]: one["text"] for one in document["parts"]}  # type: ignore[attr-defined]
    known = {one["name"]: one["value"] for one in document["symbols"]}  # type: ignore[attr-defined]

    def value(name: str) -> float:
        if name not in known:
            expression = parse(texts[name], ARGUMENTS)
            inputs = {used: value(used) for used in expression.names}
            known[name] = expression.evaluate(inputs, FUNCTIONS)
        return float(known[name])

    return value(document["parts"][0]["name"])  # type: ignore[index]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "split"),
    [("stencil3d", (16, 4)), ("cannon", (1, 16))],
)
def test_the_text_gives_the_value_of_every_metric(name: str, split: tuple[int, int]) -> None:
    study = Study(BUNDLED[name], PRESET, {}, 0, 0)
    where = place(*split, PRESET.topology)
    modelled = study.run(where, study.sources(draws=0)).modelled
    found = derive(study, where, None)
    assert evaluate(found.to_dict()) == pytest.approx(float(modelled.runtime), rel=1e-9)
    for family in FAMILIES.values():
        sampled = family.evaluate_samples(modelled.aggregates, modelled.absent)
        for metric, expected in sampled.values.items():
            document = derive(study, where, family, metric).to_dict()
            assert document["value"] == pytest.approx(float(expected), rel=1e-9)
            assert evaluate(document) == pytest.approx(float(expected), rel=1e-9), metric


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("name", "rows", "split"),
    [("stencil3d", 32, (2, 1)), ("stencil3d", 128, (1, 2)), ("cannon", 256, (1, 2))],
)
def test_the_text_stays_short_where_caches_hold_a_part(
    name: str, rows: int, split: tuple[int, int]
) -> None:
    sized = BUNDLED[name].with_settings({"N": rows})
    found = formula(sized, MEASURED, split)
    lost = {each.name: each for each in found.equations if each.name.startswith("lost_L")}
    assert any(0 < each.value < 1 for each in lost.values())
    assert evaluate(found.to_dict()) == pytest.approx(found.equations[0].value, rel=1e-9)


EVERY_KIND = """
[[program]]
loop = { count = "steps", body = [
  { parallel = { name = "even", trip = "N", inner = "N/2", flops = 2, loads = 1, bytes.MEM = 8 } },
  { parallel = { name = "chunks", trip = "N", flops = 2e3, schedule = "dynamic", chunk = 3 } },
  { parallel = { name = "guided", trip = "N", flops = 2e3, schedule = "guided" } },
  { parallel = { name = "locked", trip = "N", critical = { entries = 3, seconds = 2e-7 } } },
  { parallel = { name = "barred", trip = "N", flops = 9, constructs = { barrier = 1 } } },
  { parallel = { name = "chained", trip = "N", chain = 4, iteration_cv = 0.2, mode = "ecm" } },
  { parallel = { name = "shared", trip = 9, shared_writes = { count = 9, bytes = 8, chunk = 1 } } },
  { halo = { name = "sent by two", width = 1, bytes_per_cell = 8, comm_threads = "min(2, T)" } },
  { collective = { name = "rows", op = "allreduce", bytes = 8, comm = "dim1" } },
  { serial = { name = "fits", trip = "N", bytes = { L3 = 8, MEM = "if_fits(8*N**2, 0, 16)" } } },
  { task = { name = "tasks", count = 50, seconds = 1e-5, span = 3e-5 } },
  { halo = { name = "faces", width = 1, bytes_per_cell = 8, pack = "parallel" } },
  { pipeline = { name = "wave", dims = [0, 1], blocks = "n1", seconds = 1e-3, bytes = "8*n0" } },
  { shift = { name = "turn", dim = 0, by = 1, bytes = "8*n0" } },
  { p2p = { name = "ring", to = "(rank + 1) % P", bytes = "64*N" } },
  { p2p = { name = "to the last", to = "P - 1", bytes = 8, mode = "sendrecv", every = 4 } },
  { collective = { name = "sum", op = "allreduce", bytes = "8*N", every = 5 } },
  { collective = { op = "bcast", bytes = 8, comm = "node" } },
  { collective = { op = "alltoall", bytes = 8 } },
  { collective = { op = "barrier" } },
] }
"""
SECTIONS = {
    "params": "N = 1000\nsteps = 7",
    "let": 'half = "N/2"\nspare = "half - 2*N"\nroot = "sqrt(P)"',
    "decomp": 'global = ["N", "half"]\nperiodic = [true, false]',
    "imbalance": "persistent_cv = 0.05\ntransient_cv = 0.1\ngrowth_exponent = 0.3\n",
}


def complete() -> Profile:
    document = {**machine().document}
    document["openmp"] = {
        construct: {"T": [1, 2, 8], "seconds": [exact(seconds * n) for n in (1, 2, 5)]}
        for construct, seconds in {
            "parallel_for": 1e-7,
            "parallel": 1e-7,
            "barrier": 5e-8,
            "critical": 3e-8,
            "task": 4e-8,
            "dynamic_chunk": 2e-8,
            "guided_chunk": 3e-8,
        }.items()
    }
    document["memory"] = {
        **document["memory"],
        "copy_bw": exact(5e9),
        "line": 64,
        "line_transfer": {"near": exact(5e-8), "far": exact(1e-7)},
        "kappa_fs": exact(0.5),
    }
    more = {"thread_factor": exact(0.3), "multiple_overhead": exact(1e-7)}
    tiers = {tier: document["net"][tier] | {"os": exact(2e-7)} for tier in ("intra", "inter")}
    document["net"] = {**document["net"], **more, **tiers}
    return profile.from_document(document)


@pytest.mark.long(after=1)
@pytest.mark.parametrize(
    ("split", "overlap"),
    [
        ((1, 1), "none"),
        ((1, 8), "none"),
        ((4, 2), "full"),
        ((6, 3), "ecm"),
        ((16, 4), "none"),
        ((64, 1), "ecm"),
    ],
)
def test_every_kind_of_item_has_a_formula(split: tuple[int, int], overlap: str) -> None:
    document = {**complete().document}
    document["core"] = {**document["core"], "overlap": overlap}
    on = profile.from_document(document)
    demo = program(EVERY_KIND, **SECTIONS)
    for asked in ("runtime", "hybrid-additive.parallel_efficiency", "talp.mpi_load_balance_in"):
        try:
            found = formula(demo, on, split, asked)
        except UsageError as absent:
            assert "has no value" in absent.message
            continue
        assert evaluate(found.to_dict()) == pytest.approx(found.equations[0].value, rel=1e-9)


def test_a_formula_reads_as_a_person_writes_it() -> None:
    found = of_stencil()
    texts = {one.name: one.text for one in found.equations}
    assert texts["runtime"] == (
        "delay_unequal + delay_waiting*rho_waiting + rho_transfer*t_transfer"
        " + t_busiest + t_overhead + t_serial"
    )
    assert texts["delay_unequal"] == (
        "sqrt(sigma_p**2 + sigma_t**2/steps)*(t_busiest + t_serial)*q(P)"
    )
    assert texts["n0"] == "N/2"
    assert texts["sigma_p"] == "cv_p*(P/P_ref)**H"
    kinds = [one.kind for one in found.equations]
    assert kinds == sorted(kinds, key=KINDS.index)
    assert "expected maximum" in "\n".join(found.notes)


def test_every_name_is_defined_once_and_needed() -> None:
    cannon = formula(BUNDLED["cannon"], PRESET, (4, 2), "parallel_efficiency")
    for found in (of_stencil("parallel_efficiency"), cannon):
        defined = [one.name for one in found.equations]
        given = [one.name for one in found.symbols]
        assert len({*defined, *given}) == len(defined) + len(given)
        used = {word for one in found.equations for word in parse(one.text, ARGUMENTS).names}
        assert used == {*defined[1:], *given}
        assert all(one.meaning for one in (*found.equations, *found.symbols))


def test_symbols_have_values_intervals_and_origins() -> None:
    found = {one.name: one for one in of_stencil().symbols}
    bandwidth = found["b_sat"]
    assert bandwidth.path == "memory.bsat"
    assert bandwidth.quantity == PRESET.get("memory.bsat")
    assert bandwidth.unit == "B/s"
    assert found["P"].quantity.origin == "request"
    assert found["N"].quantity.value == 512
    assert found["O_for_4"].meaning == "overhead of for at 4 threads"
    assert found["alpha_inter_1"].meaning.endswith(", between nodes, up to 8 KiB")
    assert found["alpha_inter_2"].meaning.endswith(", between nodes, above 8 KiB")


def test_parameters_have_the_unit_that_the_signature_states() -> None:
    one = program(
        "[[program]]\ntask = { count = 'n', seconds = 'once' }\n",
        params="n = 3\nonce = { value = 2e-8, low = 1e-8, high = 3e-8, unit = 's' }",
    )
    found = formula(one, complete(), (1, 1)).symbols
    units = {symbol.name: symbol.unit for symbol in found}
    assert (units["n"], units["once"]) == ("", "s")


def test_elasticities_are_those_of_the_metric() -> None:
    run = predict(BUNDLED["stencil3d"], PRESET, 16, 4, draws=0)
    assert of_stencil().elasticities == run.elasticities
    transfer = of_stencil("process_transfer_efficiency").elasticities
    adapter = next(one for one in transfer if one.name == "adapter")
    assert adapter.value > 0


def test_a_metric_that_is_not_positive_has_no_elasticities() -> None:
    text = "[[program]]\np2p = { to = 'rank + 1', bytes = 1e9, mode = 'sendrecv' }\n"
    found = formula(program(text), machine(), (2, 1), "mpi.parallel_efficiency")
    assert found.equations[0].value == 0
    assert found.elasticities == ()
    assert "a result of 0 has no elasticity" in found.notes


@pytest.mark.parametrize("asked", ["runtime", "serialisation_efficiency", "load_balance"])
def test_the_formula_of_a_replayed_run_gives_what_predict_shows(asked: str) -> None:
    both = [
        "{ shift = { dim = 0, by = 1, bytes = 8 } }",
        "{ shift = { dim = 0, by = -1, bytes = 8 } }",
    ]
    steps = ["{ parallel = { trip = 64, inner = 1000, flops = 2 } }", *both]
    text = f"[[program]]\nloop = {{ count = 100, body = [{', '.join(steps)}] }}\n"
    one = program(text, decomp="grid = ['P']\nperiodic = true", imbalance="transient_cv = 0.1")
    found = formula(one, machine(), (64, 1), asked)
    run = predict(one, machine(), 64, 1)
    shown = run.runtime if asked == "runtime" else run.metrics["mpi"][asked]
    assert found.equations[0].value == pytest.approx(shown.value, rel=1e-9)
    assert evaluate(found.to_dict()) == pytest.approx(shown.value, rel=1e-9)
    factors = {one.name: one.quantity for one in found.symbols if one.path.startswith("replay.")}
    if asked == "load_balance":  # which waiting does not enter
        assert not factors
        return
    assert {one.origin for one in factors.values()} == {"replay"}
    assert factors["rho_waiting"].value < 0.9
    assert any("without them the runtime is " in note for note in found.notes)


def test_a_delay_that_only_the_replay_has_is_added_in_the_formula() -> None:
    study = Study(BUNDLED["cannon"], PRESET, {}, 0, 0)
    where = place(16, 4, PRESET.topology)
    waits = replace(study.replay(where), correction=Correction(waiting=Change(seconds=0.25)))
    found = derive(study, where, None, agreement=waits)
    closed = study.run(where, study.sources()).modelled.runtime
    assert {one.name: one.quantity.value for one in found.symbols}["extra_waiting"] == 0.25
    assert evaluate(found.to_dict()) == pytest.approx(float(closed) + 0.25, rel=1e-9)


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ("runtime", (None, "runtime")),
        ("parallel_efficiency", ("hybrid-additive", "parallel_efficiency")),
        ("Load balance", ("mpi", "load_balance")),
        ("talp.mpi_load_balance", ("talp", "mpi_load_balance")),
    ],
)
def test_what_may_be_asked_for(asked: str, chosen: tuple[str | None, str]) -> None:
    family, metric = choose(asked, FAMILIES, MAIN_FAMILY)
    assert (None if family is None else family.id, metric) == chosen


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        ("runtim", "--formula: unknown metric 'runtim'", "did you mean runtime?"),
        ("mpi.lod_balance", "--formula: unknown metric 'lod_balance'", "did you mean load"),
        ("tulp.x", "--formula: unknown family 'tulp'", "families: mpi, "),
    ],
)
def test_unknown_names_have_a_suggestion(asked: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose(asked, FAMILIES, MAIN_FAMILY)
    assert caught.value.message == message
    assert (caught.value.hint or "").startswith(hint)


def test_a_metric_without_a_value_says_why() -> None:
    alone = program("[[program]]\nparallel = { trip = 100, flops = 2 }\n")
    with pytest.raises(UsageError) as caught:
        formula(alone, machine(), (1, 4), "mpi.transfer_efficiency")
    assert caught.value.message == "--formula: mpi.transfer_efficiency has no value: no MPI calls"


def test_a_run_that_is_not_possible_is_refused() -> None:
    with pytest.raises(UsageError, match="cannon cannot run with 15 processes"):
        formula(BUNDLED["cannon"], PRESET, (15, 1))


def test_a_formula_that_is_wrong_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = derivation.text
    monkeypatch.setattr(derivation, "text", lambda formula: re.sub("N/2", "N/3", printed(formula)))
    with pytest.raises(FormulaError, match=r"n0 is 256, but its formula gives 170\.6"):
        formula(BUNDLED["stencil3d"], PRESET, (16, 4))


# -- notation


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("N", "N"),
        ("n0", "n_{0}"),
        ("b_sat", r"b_{\mathrm{sat}}"),
        ("alpha_inter_1", r"\alpha_{\mathrm{inter},1}"),
        ("sigma_p", r"\sigma_{p}"),
        ("cv_p", r"\mathrm{cv}_{p}"),
        ("steps", r"\text{steps}"),
        ("load_balance", r"\text{load balance}"),
        ("in_openmp_mean", r"\text{in openmp mean}"),
        ("t_share_shift_A", r"t_{\mathrm{share},\mathrm{shift},A}"),
    ],
)
def test_names_in_latex(name: str, latex: str) -> None:
    assert derivation.latex_name(name) == latex
