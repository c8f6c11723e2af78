"""What a node does with loops: arithmetic beside transfers, and memory of another domain."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from microbench.node_program import (
    Line,
    build,
    check_result,
    compile_beside,
    median,
    two_cpus,
)
from patience import GENEROUS, measuring

from popmodel.machines import profile
from popmodel.machines.bench import jobs as memory_jobs
from popmodel.machines.bench import sample_files as samples
from popmodel.machines.bench.estimate.profile_document import calibrate
from popmodel.machines.quantity import Topology

MIB = 1024 * 1024
CHUNK = 512  # elements of a thread in one operation
TWO = sorted(os.sched_getaffinity(0))[:2]
LIMITS = ("--budget", "0.1", "--least", "5", "--most", "50")


@pytest.fixture(scope="module")
def divided(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program that takes two processors for two memory domains."""
    domains = tmp_path_factory.mktemp("domains")
    for number, cpu in enumerate(TWO):
        (domains / f"node{number}").mkdir()
        (domains / f"node{number}" / "cpulist").write_text(f"{cpu}\n", encoding="ascii")
    where = f"-DDOMAINS='\"{domains}\"'"
    return build(tmp_path_factory.mktemp("divided"), f"CFLAGS=-O2 -Werror {where}")


def divided_lines(program: Path, *jobs: str) -> list[Line]:
    done = subprocess.run(
        [program, *LIMITS, *jobs], capture_output=True, text=True, check=True, timeout=GENEROUS
    )
    return [json.loads(line) for line in done.stdout.splitlines()][1:-1]


@pytest.mark.long
@measuring()
def test_arithmetic_transfers_and_both(measure: Callable[..., list[Line]]) -> None:
    (line,) = measure(f"mixed threads=1 bytes={MIB} arithmetic=100")
    check_result(line)
    assert all(seconds > 0 for seconds in line["arithmetic"])
    assert line["moved"] == 3 * 8 * CHUNK
    of_an_element = line["work"] / 2 / CHUNK
    assert of_an_element % 4 == 1  # that of the triad, and fours
    transfer, arithmetic = (statistics.median(line[key]) for key in ("reference", "arithmetic"))
    # neither is left out, nor done one after the other with time to spare
    assert max(transfer, arithmetic) / 1.5 < median(line) < 1.5 * (transfer + arithmetic)


@pytest.mark.long
@measuring()
def test_arithmetic_runs_at_the_rate_of_a_core(measure: Callable[..., list[Line]]) -> None:
    fma, mixed = measure("fma threads=1", f"mixed threads=1 bytes={MIB} arithmetic=1000")
    peak = fma["work"] / min(fma["seconds"])
    rate = mixed["work"] / min(mixed["arithmetic"])
    assert 0.4 * peak < rate < 1.2 * peak


@two_cpus
@measuring()
def test_arithmetic_beside_transfers_of_two_threads(measure: Callable[..., list[Line]]) -> None:
    one, two = measure(*(f"mixed threads={n} bytes={n * MIB} arithmetic=100" for n in (1, 2)))
    check_result(two)
    assert two["moved"] == 2 * one["moved"]


@pytest.mark.long
@two_cpus
@measuring()
def test_memory_of_a_domain_is_used_from_another(divided: Path) -> None:
    pairs = ("on=0 data=0", "on=0 data=1", "on=1 data=0")
    size = f"bytes={8 * MIB}"
    triads = divided_lines(divided, *(f"remote_triad threads=1 {size} {pair}" for pair in pairs))
    chases = divided_lines(divided, *(f"remote_chase {size} {pair}" for pair in pairs))
    for line in triads:
        assert line["moved"] == 3 * 8 * MIB
        # the same memory, whatever it is called, but for what else the machine does
        assert 0.2 < min(line["seconds"]) / min(triads[0]["seconds"]) < 5
    for line in chases:
        assert 0.2 < min(line["seconds"]) / min(chases[0]["seconds"]) < 5


def test_absent_says_why(measure: Callable[..., list[Line]]) -> None:
    job = "mixed threads=1 bytes=4096 arithmetic=100"
    (line,) = measure(job)
    assert line["absent"] == "4096 bytes are too few for 1 threads of at least 24576 bytes each"


@pytest.mark.long
@two_cpus
def test_a_domain_that_is_not_there_is_absent(divided: Path) -> None:
    third, crowd = divided_lines(
        divided,
        f"remote_chase bytes={MIB} on=0 data=2",
        f"remote_triad threads=2 bytes={MIB} on=1 data=0",
    )
    assert third["absent"] == "this process may use no processor of a memory domain 2"
    assert crowd["absent"] == "2 threads, but memory domain 1 has 1 core that this process may use"


@pytest.mark.long
@two_cpus
def test_data_is_touched_from_one_domain_and_used_from_the_other(
    divided: Path, tmp_path: Path
) -> None:
    noting = compile_beside(["cc", "-shared", "-fPIC"], "bindings.c", tmp_path / "bindings.so")
    notes = tmp_path / "notes"
    subprocess.run(
        [divided, *LIMITS, f"remote_chase bytes={MIB} on=1 data=0"],
        env={**os.environ, "LD_PRELOAD": str(noting), "BINDINGS": str(notes)},
        stdout=subprocess.DEVNULL,
        check=True,
        timeout=GENEROUS,
    )
    bound = [part for part in notes.read_text().split() if part.isdigit()]  # to one processor
    first, second = map(str, TWO)
    assert bound[0] == first
    assert set(bound[1:]) == {second}


@two_cpus
@measuring()
def test_remote_memory_of_a_divided_machine_is_in_its_profile(
    divided: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_jobs, "LARGEST_ARRAY", 4 * MIB)
    node = Topology(nodes=1, cores_per_node=2, sockets=1, domains=2, caches=())
    _, jobs = memory_jobs.memory_jobs(node, full=False)
    remote = [job.line for job in jobs if job.name.startswith("remote_")]
    nodes = {f"/sys/devices/system/node/node{i}/cpulist": f"{cpu}" for i, cpu in enumerate(TWO)}
    paths = [tmp_path / f"{launch}.jsonl" for launch in (1, 2)]
    for launch, path in enumerate(paths, 1):
        command = [divided, *LIMITS, "-n", f"{launch}", "-o", path, *remote]
        subprocess.run(command, check=True, timeout=GENEROUS)
        header, *lines = path.read_text().splitlines()
        told = json.loads(header)
        told["files"] |= nodes
        path.write_text("\n".join([json.dumps(told), *lines, ""]))
    document = calibrate(samples.read(paths), "divided")
    loaded = profile.from_document(document)
    assert loaded.topology.domains == 2
    for pair in ("0-1", "1-0"):
        # one and the same memory, but for what else the machine does
        assert 0.2 < loaded.quantities[f"memory.remote.{pair}.bandwidth"].value < 5
        assert 1e-9 < loaded.quantities[f"memory.remote.{pair}.latency"].value < 1e-5
    assert document["quality"]["memory"]["launches"] == 2
