"""Which cache a working set stays in, and what traffic through caches costs."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model.demo import exact, machine, program

from popmodel.machines.profile import Profile, from_document
from popmodel.model.run.parameters import Parameters
from popmodel.model.run.process_placement import Allocation, place
from popmodel.model.run.work import RunWork
from popmodel.model.tree import prepare

KIB = 1024


def levels(*caches: tuple[str, int, int], **rates: float) -> Profile:
    """The round machine with caches (level, KiB, cores that share it) and their rates."""
    document: dict[str, Any] = copy.deepcopy(dict(machine().document))
    document["topology"]["caches"] = [
        {"level": level, "bytes": size * KIB, "shared_by": shared} for level, size, shared in caches
    ]
    document["memory"]["cache_bw"] = {level: exact(rate) for level, rate in rates.items()}
    return from_document(document)


def walk(
    text: str, profile: Profile, threads: int = 1, processes: int = 1, bind: str = "close"
) -> tuple[RunWork, Parameters]:
    placement = place(processes, threads, profile.topology, Allocation(bind=bind))
    parameters = Parameters(profile, lambda path: profile.get(path).value)
    signature = program(f"[[program]]\n{text}\n")
    return prepare(signature, placement, parameters, {}).work().total, parameters


def traffic(formula: str, profile: Profile, threads: int = 1) -> float:
    """What a formula of bytes gives."""
    text = f'serial = {{ trip = 1, bytes.MEM = "{formula}" }}'
    return float(walk(text, profile, threads)[0].memory_bytes)


PRIVATE = (("L1", 32, 1), ("L2", 256, 1), ("L3", 4096, 4))


@pytest.mark.parametrize(
    ("level", "half"),  # of the last one half is of use
    [("L1", 32), ("L2", 256), ("L3", 2048), ("last", 2048), ("L4", 2048)],
)
def test_a_thread_alone_has_a_cache_for_itself(level: str, half: int) -> None:
    there = levels(*PRIVATE)
    assert traffic(f"if_fits({half * KIB // 2}, 1, 8, '{level}')", there) == 1
    assert traffic(f"if_fits({half * KIB}, 1, 8, '{level}')", there) == 4.5
    assert traffic(f"if_fits({2 * half * KIB}, 1, 8, '{level}')", there) == 8


def test_threads_share_what_is_shared_only() -> None:
    there = levels(*PRIVATE)
    for level, half in (("L2", 256), ("L3", 512)):  # 4 cores share L3
        assert traffic(f"if_fits({half * KIB}, 1, 8, '{level}')", there, threads=4) == 4.5
    assert traffic(f"if_fits({2048 * KIB}, 1, 8)", there, threads=4) == 4.5  # of the process


def node(cores: int, size: int, shared_by: int, domains: int) -> Profile:
    """A node whose last caches are shared by some cores."""
    document: dict[str, Any] = copy.deepcopy(dict(levels(("L3", size, shared_by)).document))
    document["topology"] |= {"cores_per_node": cores, "sockets": 1, "domains": domains}
    return from_document(document)


def kept(text: str, item: str, there: Profile, split: tuple[int, int], bind: str) -> float:
    """What a loop over data of a formula moves in one process, 1 to 8 bytes."""
    moved = f'trip = 1, bytes.MEM = "if_fits({text}, 1, 8)"'
    found = walk(f"{item} = {{ {moved} }}", there, split[1], split[0], bind)[0]
    return float(found.memory_bytes)


@pytest.mark.parametrize("bind", ["close", "spread", "none"])
@given(
    instances=st.integers(1, 6),
    shared_by=st.sampled_from([1, 2, 3, 4, 8]),
    rest=st.integers(0, 3),
    data=st.data(),
)
def test_divided_data_of_a_full_node_fit_whatever_the_split(
    bind: str, instances: int, shared_by: int, rest: int, data: st.DataObject
) -> None:
    cores = instances * shared_by + rest % shared_by  # the last cache may serve fewer cores
    processes = data.draw(st.sampled_from([n for n in range(1, cores + 1) if cores % n == 0]))
    there = node(cores, 4096, shared_by, 1)
    half = cores * 4096 * KIB / 2 / shared_by  # of the node's data; of the last one half is of use
    split = processes, cores // processes
    for part, moved in ((0.5, 1), (1, 4.5), (2, 8)):
        assert kept(f"{part * half}/P", "parallel", there, split, bind) == pytest.approx(moved)


@pytest.mark.parametrize(
    ("split", "bind", "caches"),
    [
        ((1, 8), "close", 2),  # four threads in each of two caches
        ((1, 6), "close", 1.5),  # four share the first: what they lose they wait for
        ((1, 3), "close", 1),  # one cache, for one team only
        ((1, 2), "spread", 2),  # one each
        ((3, 5), "close", 1.25),
        ((8, 2), "close", 0.5),
    ],
)
def test_a_team_has_as_many_caches_as_its_threads_are_on(
    split: tuple[int, int], bind: str, caches: float
) -> None:
    there = node(16, 4096, 4, 1)
    half = caches * 2048 * KIB
    assert kept(f"{half}", "parallel", there, split, bind) == pytest.approx(4.5)


def loop(counts: str, profile: Profile) -> tuple[float, Parameters]:
    """Time of an iteration beside that of its control, and what was asked for."""
    work, asked = walk(f"serial = {{ trip = 1, bytes = {{ {counts} }} }}", profile)
    return float(work.serial) - 1 / 2e9, asked


def test_a_level_is_charged_for_what_no_level_behind_it_serves() -> None:
    there = levels(*PRIVATE, L2=1e11, L3=4e10)
    assert loop("L2 = 80, L3 = 80, MEM = 80", there)[0] == pytest.approx(80 / 1e10)
    assert loop("L2 = 80, L3 = 80", there)[0] == pytest.approx(80 / 4e10)
    mixed = loop("MEM = 10, L3 = 30, L2 = 80", there)[0]
    assert mixed == pytest.approx(50 / 1e11 + 20 / 4e10 + 10 / 1e10)
    # written to memory past the caches
    assert loop("L2 = 8, MEM = 24", there)[0] == pytest.approx(24 / 1e10)


def test_a_cache_without_a_rate_is_left_out_and_named() -> None:
    seconds, asked = loop("L2 = 80, L3 = 60, MEM = 10", levels(*PRIVATE, L3=4e10))
    assert seconds == pytest.approx(50 / 4e10 + 10 / 1e10)
    assert asked.left_out == {"memory.cache_bw.L2"}


def knowing(**memory: Any) -> Profile:
    """Private caches with rates, and more that is known of them."""
    document: dict[str, Any] = copy.deepcopy(dict(levels(*PRIVATE, L2=1e11, L3=4e10).document))
    document["memory"] |= memory
    return from_document(document)


def test_every_cache_loses_half_of_a_set_of_its_own() -> None:
    there = knowing(kappa=exact(0.125), inner_kappa={"L2": exact(1.5)})
    assert traffic(f"if_fits({384 * KIB}, 1, 8, 'L2')", there) == 4.5
    assert traffic(f"if_fits({512 * KIB}, 1, 8, 'L3')", there) == 4.5
    assert traffic(f"if_fits({32 * KIB}, 1, 8, 'L1')", there) == 4.5  # assumed: its size


def back(counts: str, written: str, profile: Profile) -> float:
    """Time of an iteration that writes beside that of its control."""
    text = f"serial = {{ trip = 1, bytes = {{ {counts} }}, written = {{ {written} }} }}"
    return float(walk(text, profile)[0].serial) - 1 / 2e9


def test_what_is_written_back_has_a_rate_of_its_own() -> None:
    there = knowing(write_back={"L2": exact(2.0), "L3": exact(0)})
    assert back("L2 = 24", "L2 = 8", there) == pytest.approx(32 / 1e11)
    assert back("L2 = 24, L3 = 24", "L2 = 8, L3 = 8", there) == pytest.approx(16 / 4e10)
    mixed = back("L2 = 24, L3 = 12", "L2 = 8, L3 = 4", there)
    assert mixed == pytest.approx(16 / 1e11 + 8 / 4e10)
    # all traffic of memory shares its bandwidth
    in_memory = back("L2 = 24, L3 = 24, MEM = 24", "L2 = 8, L3 = 8, MEM = 8", there)
    assert in_memory == pytest.approx(24 / 1e10)


def test_what_is_known_of_all_caches_is_not_assumed() -> None:
    some = knowing(write_back={"L2": exact(2.0)}, inner_kappa={"L1": exact(1), "L2": exact(1)})
    assert "memory.write_back.any" in some.assumed
    assert "memory.inner_kappa.any" not in some.assumed
    every = knowing(write_back={"L2": exact(2.0), "L3": exact(0.0)})
    assert "memory.write_back.any" not in every.assumed
