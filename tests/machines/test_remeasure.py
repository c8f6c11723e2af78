"""Commands that measure a quantity: each is one that popmodel machine measure takes as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from pasted import parsed

from popmodel.machines import profile as profiles
from popmodel.machines.bench.bench_plan import parts
from popmodel.machines.profile import Profile, measured_file, measuring
from popmodel.machines.register import measuring_anew
from popmodel.model.uncertainty import group

PRESET = profiles.load(profiles.DEFAULT_PRESET)
NODE = Path(__file__).parents[2] / "examples" / "profiles" / "two-core-vm.json"


def in_file(path: str, source: Profile) -> Profile:
    return profiles.from_document(dict(source.document), path)


@pytest.mark.parametrize(
    "path", ["", "m.json", "a b.json", "-x.json", "it's.json", "dir/m.JSON", "m.txt", "m"]
)
@pytest.mark.parametrize("source", [PRESET, profiles.load(NODE)], ids=lambda one: one.name)
def test_every_command_is_one_that_bench_takes(path: str, source: Profile) -> None:
    profile = in_file(path, source) if path else source
    asked = {*source.quantities, *map(group, source.quantities), "net.inter", "memory.bsat (x)"}
    lines = {measuring(profile, name) for name in asked}
    assert None not in lines
    for line in filter(None, lines):
        verb, options = parsed(line)
        assert verb == "machine measure"
        output = str(options["output"])
        assert output.lower().endswith(".json")
        assert not output.startswith("-")
        assert [output] == shlex.split(measured_file(line))
        if options["only"] is None:
            assert not options["force"]
            assert Path(output) != Path(profile.path)
        else:  # bench keeps the other parts of the file that it replaces
            assert options["force"]
            assert Path(output) == Path(profile.path)
            assert parts(options["only"])
        assert (options["nodes"] is None) == (options["script"] is None)


def test_a_preset_is_replaced_by_a_machine_of_ones_own() -> None:
    assert measuring(PRESET, "memory.bsat") == "popmodel machine measure -o machine.json"
    assert measuring(PRESET, "net.inter.classes.beta") == (
        "popmodel machine measure --script slurm --nodes 2 -o machine.json"
    )


def test_a_part_of_a_file_is_measured_anew() -> None:
    node = in_file("my machine.json", profiles.load(NODE))
    assert measuring(node, "memory.copy_bw") == (
        "popmodel machine measure --full --only memory -o 'my machine.json' --force"
    )
    unknown = measuring(node, "memory.bsat")  # not measured yet: the quick way first
    assert unknown == "popmodel machine measure --only memory -o 'my machine.json' --force"


def test_the_network_between_nodes_needs_a_job_and_replaces_nothing() -> None:
    cluster = in_file("lab/cluster.json", PRESET)
    for name in ("net.inter.classes.alpha", "net.intra.classes.alpha", "net.reduce_gamma"):
        assert measuring(cluster, name) == (
            "popmodel machine measure --script slurm --nodes 2 -o lab/cluster-new.json"
        )
    assert measuring(cluster, "openmp.parallel_for.seconds") == (
        "popmodel machine measure --only openmp -o lab/cluster.json --force"
    )


@pytest.mark.parametrize("name", ["imbalance.transient_cv", "params.N"])
def test_no_benchmark_measures_the_application(name: str) -> None:
    assert measuring(PRESET, name) is None


def test_a_first_measurement_has_all_parts() -> None:
    assert measuring_anew("memory.bsat") == "popmodel machine measure -o machine.json"
    between = "popmodel machine measure --script slurm --nodes 2 -o machine.json"
    assert measuring_anew("net.inter.alpha") == between
    assert measuring_anew("persistent_cv") is None
