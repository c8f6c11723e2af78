"""Loops whose data a cache keeps in part: pages that stay, and pages that are lost."""

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, program
from scipy.optimize import brentq

from popmodel.machines.profile import Profile, from_document
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.terms.compute import lost_share
from popmodel.model.tree import prepare
from popmodel.model.uncertainty import Draws

MIB = 1 << 20
CLOCK = 2e9


def profile(core: dict[str, Any], **memory: Any) -> Profile:
    """The round machine with a second cache of 1 MiB and a last one of 16."""
    document: dict[str, Any] = copy.deepcopy(dict(machine().document))
    document["topology"]["caches"] = [
        {"level": "L1", "bytes": MIB // 32, "shared_by": 1},
        {"level": "L2", "bytes": MIB, "shared_by": 1},
        {"level": "L3", "bytes": 16 * MIB, "shared_by": 4},
    ]
    document["core"] |= core
    document["memory"] |= {"kappa": exact(1.0)} | memory
    return from_document(document)


def rates(**levels: float) -> dict[str, Any]:
    return {level: exact(rate) for level, rate in levels.items()}


def seconds(text: str, there: Profile) -> float:
    """Time of a program of one process and one thread, s."""
    placement = place(1, 1, there.topology)
    parameters = Parameters(there, lambda path: there.get(path).value)
    signature = program(f"[[program]]\n{text}\n")
    return float(prepare(signature, placement, parameters, {}).work().total.serial)


def set_of(lost: float, cache: int) -> float:
    """Bytes of which a cache loses a part."""
    return float(brentq(lambda size: lost_share(size, cache) - lost, cache / 2, 2 * cache))


# -- against a processor

# Rows of 8 KiB of a matrix of so many MiB, each added to one in the first cache, and the matrix
# read alone with wide vectors, on a Xeon with second caches of 2 MiB: ps per 16 bytes (the job
# `issue` of microbench/rows.c)
ROWS = {1.5: (375, 115), 1.75: (394, 163), 2.0: (414, 206), 2.25: (439, 275), 2.5: (464, 360)}
ROWS |= {3.0: (504, 477), 3.5: (525, 515)}
KEPT, LOST, ALONE = (366, 88), (535, 532), 298  # of 0.5 and 4.5 MiB, and all in the first cache


@pytest.mark.parametrize("size", ROWS)
def test_rows_of_a_matrix_take_what_they_do_from_either_cache_by_the_part_that_is_lost(
    size: float,
) -> None:
    clock, rate = CLOCK, 4
    overlap = {
        level: exact((ALONE + reading - both) / min(ALONE, reading))
        for level, (both, reading) in (("L2", KEPT), ("L3", LOST))
    }
    there = profile(
        {"instructions_per_cycle": exact(rate), "overlap": exact(0.5), "overlap_issue": overlap},
        cache_bw=rates(L2=16e12 / KEPT[1], L3=16e12 / LOST[1]),
    )
    both, reading = ROWS[size]
    lost = (reading - KEPT[1]) / (LOST[1] - KEPT[1])

    def predicted(beyond: object) -> float:
        text = (
            f'serial = {{ trip = 1, mode = "issue", instructions = {ALONE * 1e-12 * clock * rate}, '
            f"bytes = {{ L2 = 16, L3 = {beyond} }} }}"
        )
        return 1e12 * seconds(text, there)

    assert predicted(f"\"if_fits({set_of(lost, MIB)}, 0, 16, 'L2')\"") == pytest.approx(
        both, rel=0.02
    )
    if 0.2 < lost < 0.7:  # the mean of the traffic would hide behind the instructions
        assert predicted(16 * lost) < 0.9 * both


# -- in general


def test_two_sets_that_stay_in_part_are_told_apart() -> None:
    full = profile({"overlap": "full", "loop_cycles": exact(0)}, cache_bw=rates(L2=8e10, L3=2e10))
    found = seconds(
        f"serial = {{ trip = 1, chain = 2, bytes.L2 = 80, "
        f"bytes.L3 = \"if_fits({set_of(0.7, MIB)}, 0, 40, 'L2')\", "
        f'bytes.MEM = "if_fits({set_of(0.4, 16 * MIB)}, 0, 20)" }}',
        full,
    )
    busy = 2 / CLOCK
    stays = max(busy, 80 / 8e10)
    beyond_second = max(busy, 40 / 8e10 + 40 / 2e10)
    beyond_both = max(busy, 40 / 8e10 + 20 / 2e10, 20 / 1e10)  # the memory beside the caches
    # what the last cache has lost of its set, the second one has lost of its own
    assert found == pytest.approx(0.3 * stays + 0.3 * beyond_second + 0.4 * beyond_both)


SWEEP = """
[[program]]
[program.serial]
trip = "N**3"
chain = 2
bytes.L2 = "if_fits(16*N**3, 0, if_fits(32*N**2, 24, if_fits(48*N, 40, 56, 'L1'), 'L1'), 'L1')"
bytes.L3 = "if_fits(16*N**3, 0, if_fits(32*N**2, 24, if_fits(48*N, 40, 56, 'L2'), 'L2'), 'L2')"
bytes.MEM = "if_fits(16*N**3, 0, if_fits(32*N**2, 24, 40, 'last'), 'last')"
"""


@given(
    st.floats(10, 300),
    st.floats(0.3, 2.0),
    st.floats(0.3, 2.0),
    st.floats(1.0, 1.5),
    st.sampled_from(["full", "none", "ecm"]),
)
def test_a_smaller_cache_never_makes_a_program_faster(
    cells: float, second: float, last: float, larger: float, overlap: str
) -> None:
    stencil = program(SWEEP, params="N = 8", decomp='global = ["N", "N", "N"]\ngrid = "auto"')

    def time(second: float, last: float) -> float:
        there = profile(
            {"overlap": overlap},
            kappa=exact(last),
            inner_kappa=rates(L2=second),
            cache_bw=rates(L2=8e10, L3=3e10),
        )
        parameters = Parameters(there, lambda path: there.get(path).value)
        values = {"N": float(round(cells))}
        return float(
            prepare(stencil, place(1, 1, there.topology), parameters, values).work().total.serial
        )

    least = time(second * larger, last * larger) * (1 - 1e-9)
    assert time(second, last * larger) >= least
    assert time(second * larger, last) >= least


def test_draws_in_which_nothing_moves_have_a_time() -> None:
    there = profile(
        {"overlap": exact(0.5), "overlap_with": {"L2": exact(0.9), "L3": exact(0.4)}},
        inner_kappa={"L1": {"value": 1.0, "low": 0.3, "high": 3.0}, "L2": exact(1.0)},
        cache_bw=rates(L2=8e10, L3=2e10),
    )
    drawn = Draws(there.quantities, count=100)
    parameters = Parameters(there, drawn.__getitem__)
    text = (
        f"serial = {{ trip = 1, flops = 2, bytes.L2 = \"if_fits({MIB // 32}, 0, 40, 'L1')\", "
        f"bytes.L3 = \"if_fits({MIB // 32}, 0, 20, 'L1')\" }}"
    )
    signature = program(f"[[program]]\n{text}\n")
    work = prepare(signature, place(1, 1, there.topology), parameters, {}).work().total
    times = np.asarray(work.serial)
    assert np.isfinite(times).all()
    assert times.min() == pytest.approx(2 / CLOCK)  # an operation and the control of the loop
