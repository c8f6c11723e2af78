"""The walk of the region tree: hand-computed programs, symbols against numbers, limits."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, program

from popmodel.machines.profile import MissingQuantity, Profile, from_document
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import place
from popmodel.model.run.work import RunWork
from popmodel.model.signature.application import Signature
from popmodel.model.tree import prepare


def walk(
    signature: Signature, profile: Profile, processes: int, threads: int, **params: float
) -> RunWork:
    placement = place(processes, threads, profile.topology)
    values = {name: quantity.value for name, quantity in signature.inputs.items()} | params
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    return prepare(signature, placement, parameters, values).work().total


SERIAL = """
[[program]]
serial = { trip = 1e6, flops = 4, loads = 6, stores = 1, bytes = { L3 = 24, MEM = 16 } }
"""


def test_serial_loop_adds_up_as_in_ac06() -> None:
    work = walk(program(SERIAL), machine(), 1, 1)
    # 3 cycles for 6 loads (2 per cycle) hide 2 for the flops; 1 cycle of loop control
    cycles = 1e6 * (3 + 1) / 2e9
    transfers = 1e6 * 8 / 4e10 + 1e6 * 16 / 1e10
    assert work.serial == pytest.approx(cycles + transfers)
    assert work.serial_cycles == pytest.approx(work.serial * 2e9)
    assert work.flops == 4e6
    assert work.memory_bytes == 16e6
    assert work.share == 0


PARALLEL = """
[[program]]
parallel = { trip = 10, inner = 1000, flops = 4, constructs = { parallel_for = 2, barrier = 1 } }
"""


def test_parallel_loop() -> None:
    work = walk(program(PARALLEL), machine(), 1, 8)
    cycles = 2 + 1  # flops, loop control
    assert work.share == pytest.approx(10 * 1000 / 8 * cycles / 2e9)
    assert work.stretched == pytest.approx(2 * 1000 * cycles / 2e9)  # a thread has 2 of 10
    assert work.overhead == pytest.approx(2 * 4e-7 + 2e-7)
    assert work.synchronising == pytest.approx(2e-7)
    assert work.single_thread == pytest.approx(10 * 1000 * cycles / 2e9)
    assert work.parallel == pytest.approx(work.stretched + work.overhead)


def test_loops_multiply_and_every_divides() -> None:
    body = """
[[program]]
loop = { count = 6, body = [
  { serial = { trip = 100, flops = 2, every = 3 } },
  { p2p = { to = "rank + 1", bytes = 0, mode = "sendrecv" } },
] }
"""
    work = walk(program(body), machine(), 2, 1)
    assert work.serial == pytest.approx(6 / 3 * 100 * 2 / 2e9)
    assert work.transfer == pytest.approx(6 * 5e-7)
    assert work.steps == 6


def test_blocking_ring_beyond_the_eager_threshold_serialises() -> None:
    def ring(size: int, mode: str) -> float:
        text = f'[[program]]\np2p = {{ to = "(rank + 1) % P", bytes = {size}, mode = "{mode}" }}\n'
        return float(walk(program(text), machine(), 16, 1).transfer)

    assert ring(100, "send") == ring(100, "sendrecv") == pytest.approx(2e-6 + 100 * 2e-10)
    assert ring(10**6, "send") == pytest.approx(16 * ring(10**6, "sendrecv"))


def test_shift_shares_the_adapter_of_the_node() -> None:
    text = "[[program]]\nshift = { dim = 0, by = 1, bytes = 1e6 }\n"
    grid = program(text, decomp="grid = [2, 'P/2']\nperiodic = true")
    # 16 ranks, 8 per node: the first dimension crosses nodes, all 8 at once
    assert walk(grid, machine(), 16, 1).transfer == pytest.approx(2e-6 + 8 * 1.5e-10 * 1e6)
    inside = walk(grid, machine(), 8, 1).transfer
    assert inside == pytest.approx(5e-7 + 2 * 1e-10 * 1e6)  # 8 flows, 4 of them undisturbed
    assert walk(grid, machine(), 2, 1).transfer == pytest.approx(5e-7 + 1e-10 * 1e6)


def test_collectives_over_nodes() -> None:
    text = "[[program]]\ncollective = { op = 'allreduce', bytes = 1000 }\n"
    work = walk(program(text), machine(), 16, 1)
    within = 5e-7 + 2e-10 * 1000  # 8 at once, 4 of them undisturbed
    between = 2e-6 + 8 * 1.5e-10 * 1000
    assert work.transfer == pytest.approx(3 * within + between + 4 * 1e-10 * 1000)
    assert walk(program(text), machine(), 1, 1).transfer == 0
    barrier = program("[[program]]\ncollective = { op = 'barrier' }\n")
    assert walk(barrier, machine(), 8, 1).transfer == pytest.approx(3 * 5e-7)
    one_per_node = walk(barrier, machine(), 4, 8)
    assert one_per_node.transfer == pytest.approx(2 * 2e-6)


def test_what_the_machine_does_not_know_is_named() -> None:
    reduction = PARALLEL.replace("barrier", "reduction")
    profile = machine()
    placement = place(1, 1, profile.topology)
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    prepare(program(reduction), placement, parameters, {}).work()
    assert parameters.lacking == {"openmp.reduction"}  # and assumed
    level = SERIAL.replace("L3", "LLC")
    with pytest.raises(MissingQuantity, match=r"has no value for memory\.cache_bw\.LLC"):
        walk(program(level), machine(), 1, 1)


def test_caches_are_asked_for_only_by_what_depends_on_them() -> None:
    document = copy.deepcopy(dict(machine().document))
    del document["topology"]["caches"]
    blind = from_document(document)
    assert walk(program(SERIAL), blind, 1, 1) == walk(program(SERIAL), machine(), 1, 1)
    fits = SERIAL.replace("MEM = 16", "MEM = 'if_fits(1e6, 0, 16)'")
    parameters = Parameters(blind, lambda path: blind.get(path).value)
    placement = place(1, 1, blind.topology)
    prepare(program(fits), placement, parameters, {}).work()
    assert parameters.lacking == {"topology.caches"}  # and assumed


def test_overhead_by_its_law_between_measured_counts() -> None:
    profile = machine()
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    assert parameters.overhead("parallel_for", 4) == pytest.approx(1e-7 + 2 / 3 * 3e-7)
    law = {"a": exact(1e-6), "b": exact(2e-6), "d": exact(0.0), "s": exact(1e-5)}
    document = copy.deepcopy(dict(profile.document))
    document["openmp"]["parallel_for"]["fit"] = law
    fitted = from_document(document)
    parameters = Parameters(fitted, lambda path: fitted.get(path).value)
    assert parameters.overhead("parallel_for", 4) == pytest.approx(5e-6)
    assert parameters.overhead("parallel_for", 8) == 4e-7
    document["openmp"]["parallel_for"] = {"T": [2], "seconds": [exact(1e-6)]}
    single = from_document(document)
    parameters = Parameters(single, lambda path: single.get(path).value)
    for threads in (4, 1):
        assert (
            parameters.overhead("parallel_for", threads)
            == single.assumed["openmp.any.seconds"].value
        )
        assert f"openmp.parallel_for at {threads} threads" in parameters.lacking


@given(st.sampled_from(["memory__b1", "memory__bsat", "core__flop_per_cycle"]), st.floats(1, 10))
def test_a_better_machine_is_never_slower(path: str, factor: float) -> None:
    both = program(SERIAL + PARALLEL)
    base = {"memory__b1": 1e10, "memory__bsat": 2e11, "core__flop_per_cycle": 2.0}
    better = machine(**base | {path: base[path] * factor})
    before, after = (walk(both, profile, 1, 4) for profile in (machine(**base), better))
    assert after.serial <= before.serial * (1 + 1e-9)
    assert after.share <= before.share * (1 + 1e-9)


def test_loops_have_steps_of_their_own() -> None:
    loop = """
[[program]]
loop = { count = 30 }
[[program.body]]
collective = { op = "barrier" }
[[program.body]]
collective = { op = "barrier", every = 2 }
"""
    barrier = '[[program]]\ncollective = { op = "barrier" }\n'
    assert walk(program(barrier + loop), machine(), 4, 1).steps == 30
    assert walk(program(loop + barrier + 2 * loop), machine(), 4, 1).steps == 90
