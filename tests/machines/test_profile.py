"""Machine profiles: the bundled one, looking up, and the words of every refusal."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from popmodel.machines import profile
from popmodel.machines.profile import MissingQuantity
from popmodel.machines.profile_schema import ProfileError
from popmodel.machines.register import OPERATIONS, find

Document = dict[str, Any]


def q(value: float) -> Document:
    return {"value": value, "origin": "user"}


def minimal() -> Document:
    """The least that is a usable profile: one node."""
    return {
        "schema": "popmodel/machine/1",
        "topology": {
            "cores_per_node": 4,
            "caches": [{"level": "L2", "bytes": 1048576, "shared_by": 4}],
        },
        "core": {"freq": {"1": q(2e9)}, "flop_per_cycle": q(4)},
        "memory": {"b1": q(1e10), "bsat": q(2e10), "q": q(4)},
        "openmp": {"parallel_for": {"T": [1, 4], "seconds": [q(1e-7), q(1e-6)]}},
        "net": {"intra": {"classes": [{"alpha": q(1e-6), "beta": q(1e-10)}]}},
    }


def test_every_preset_is_a_profile_with_a_source_for_every_value() -> None:
    assert profile.DEFAULT_PRESET in profile.presets()
    for name in profile.presets():
        preset = profile.load(name)
        assert preset.is_preset
        assert preset.origin == "preset"
        assert preset.name == name
        for path, quantity in preset.quantities.items():
            assert quantity.source, path
            assert quantity.origin == "preset", path


def test_minimal_profile() -> None:
    loaded = profile.from_document(minimal())
    assert loaded.topology.nodes == 1
    assert loaded.get("memory.b1").value == 1e10
    assert loaded.get("net.intra.classes[0].alpha").value == 1e-6
    assert loaded.word("core.overlap") is None
    assert loaded.origin == "user"
    assert loaded.tiers() == ["intra"]
    assert loaded.constructs() == ["parallel_for"]


def test_save_and_load_give_the_same(tmp_path: Path) -> None:
    loaded = profile.from_document(minimal())
    loaded.save(tmp_path / "m.json")
    again = profile.load(tmp_path / "m.json")
    assert again.document == loaded.document
    assert again.quantities == loaded.quantities
    assert again.name == "m"
    assert not again.is_preset


def test_a_part_of_a_profile_is_a_profile() -> None:
    document = {key: minimal()[key] for key in ("schema", "topology")}
    loaded = profile.from_document(document, "lab.json")
    assert loaded.tiers() == loaded.constructs() == []
    assert loaded.word("core.overlap") is None
    for ask, part in (
        (lambda: loaded.get("memory.copy_bw"), "memory"),
        (loaded.active_counts, "core"),
        (loaded.bandwidth_counts, "memory"),
        (lambda: loaded.thread_counts("parallel_for"), "openmp"),
        (lambda: loaded.get("net.thread_factor"), "threads"),
    ):
        with pytest.raises(MissingQuantity) as caught:
            ask()
        assert caught.value.hint is not None
        assert caught.value.hint.endswith(
            f"popmodel machine measure --only {part} -o lab.json --force"
        )


def test_why_something_could_not_be_measured_is_told() -> None:
    document = minimal() | {"absent": {"net.inter": "one node", "openmp.*.fit": "too few threads"}}
    loaded = profile.from_document(document, "lab.json")
    with pytest.raises(MissingQuantity) as caught:
        loaded.get("net.inter.os")
    assert caught.value.message == "profile lab (lab.json) has no value for net.inter.os: one node"
    assert caught.value.hint == "add it to the profile, with its source"
    assert loaded.absent("openmp.parallel_for.fit.a") == "too few threads"
    assert loaded.absent("net.intra") is None
    assert loaded.absent("net.interior") is None


def test_classes_may_jump_up_where_the_protocol_changes() -> None:
    document = minimal()
    document["net"]["intra"] = {"classes": TWO_CLASSES, "eager_threshold": q(1000)}
    assert len(profile.from_document(document).class_bounds("intra")) == 2
    document["net"]["intra"]["eager_threshold"] = q(500)
    with pytest.raises(ProfileError, match="do not match at 1000 B") as caught:
        profile.from_document(document)
    assert caught.value.hint == (
        "from one class to the next the time may fall by a quarter or rise threefold, at the "
        "eager threshold by any factor"
    )


@pytest.mark.parametrize(
    ("factor", "accepted"), [(0.7, False), (0.8, True), (1.0, True), (2.9, True), (3.1, False)]
)
def test_where_classes_meet_the_time_may_fall_a_little_and_rise_more(
    factor: float, accepted: bool
) -> None:
    document = minimal()
    classes = [
        {"upto": 1000, "alpha": q(1e-6), "beta": q(1e-9)},
        {"alpha": q(factor * 1e-6), "beta": q(factor * 1e-9)},
    ]
    document["net"]["intra"] = {"classes": classes}
    if accepted:
        assert len(profile.from_document(document).class_bounds("intra")) == 2
    else:
        with pytest.raises(ProfileError, match="do not match at 1000 B"):
            profile.from_document(document)


def test_what_is_assumed_is_not_of_the_profile() -> None:
    loaded = profile.from_document(minimal())
    overlap = loaded.get("core.overlap")
    assert (overlap.value, overlap.low, overlap.high) == (0.5, 0.0, 1.0)
    assert overlap.origin == "assumed"
    assert "core.overlap" not in loaded.quantities
    back = "memory.write_back.any"  # of caches that nobody told
    lines = "memory.line_takeover.any"
    names = ["branch_miss", "predicted_trip", *(f"{name}_cycles" for name in OPERATIONS)]
    of_core = {f"core.{name}" for name in names}

    def optional(document: dict[str, Any]) -> set[str]:
        """What a prediction that takes it does not name."""
        assumed = profile.from_document(document).assumed
        return {path for path in assumed if not find(path).needed}

    assert optional(minimal()) == {"core.overlap", lines, back, *of_core}  # it knows memory.q
    for stated in ("ecm", q(0.25)):
        document = minimal()
        document["core"] = {"overlap": stated}
        assert optional(document) == {lines, back, *of_core}
    document["core"] |= {name: q(20.0) for name in names}
    document["memory"]["line_takeover"] = {"far": q(1e-8)}
    assert optional(document) == {back}
    del document["memory"]["line_takeover"]
    document["topology"]["cores_per_node"] = 1  # takes nothing from another
    assert optional(document) == {back}
    document["core"]["overlap"] = "ecm"
    exact = profile.from_document(document)
    assert exact.word("core.overlap") == "ecm"
    with pytest.raises(profile.MissingQuantity, match=r"has no value for core\.overlap"):
        exact.get("core.overlap")


def test_the_overlap_with_instructions_is_assumed_of_caches_beyond_the_first() -> None:
    document = minimal()
    sizes = {"L1": 1 << 15, "L2": 1 << 20}
    document["topology"]["caches"] = [
        {"level": level, "bytes": size, "shared_by": 1} for level, size in sizes.items()
    ]
    issue = "core.overlap_issue.any"
    loaded = profile.from_document(document)
    assert issue in loaded.assumed
    assert loaded.overlap("overlap_issue", "L2") == issue
    assert loaded.overlap("overlap_issue", "MEM") == "core.overlap"
    document["core"] = {"overlap": "ecm"}  # tells all of it
    assert issue not in profile.from_document(document).assumed
    document["core"] = {"overlap_issue": {"L2": q(0.5)}, "overlap_with": {"MEM": q(0.2)}}
    loaded = profile.from_document(document)
    assert issue not in loaded.assumed
    assert loaded.overlap("overlap_issue", "L2") == "core.overlap_issue.L2"
    assert loaded.overlap("overlap_issue", "MEM") == "core.overlap_with.MEM"


def test_what_is_absent_is_unknown() -> None:
    loaded = profile.from_document(minimal(), "lab.json")
    with pytest.raises(MissingQuantity) as caught:
        loaded.get("memory.copy_bw")
    assert caught.value.message == "profile lab (lab.json) has no value for memory.copy_bw"
    assert caught.value.hint is not None
    assert "popmodel machine measure --only memory" in caught.value.hint
    assert loaded.class_bounds("inter") == [None]  # assumed
    with pytest.raises(MissingQuantity, match=r"has no value for openmp\.reduction"):
        loaded.thread_counts("reduction")


def change(path: str, value: Any) -> Callable[[Document], None]:
    def apply(document: Document) -> None:
        *parents, last = path.split("/")
        for key in parents:
            document = document[int(key)] if isinstance(document, list) else document[key]
        if value is ...:
            del document[last]
        else:
            document[last] = value

    return apply


TWO_CLASSES = [
    {"upto": 1000, "alpha": q(1e-6), "beta": q(1e-9)},
    {"alpha": q(1e-5), "beta": q(1e-9)},
]
LEAST = {"alpha": q(1e-6), "beta": q(1e-9)}


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (change("schema", "x/1"), "schema is 'x/1', not 'popmodel/machine/1'"),
        (change("topology", ...), "topology is missing"),
        (change("topology/cores_per_node", ...), "topology.cores_per_node is missing"),
        (change("memory/b1", 1e10), "memory.b1 must be a table with value"),
        (change("memory/b1", q(-1)), "memory.b1.value must be a number above 0"),
        (change("memory/b1/unit", "GB/s"), "memory.b1 must be in B/s, not 'GB/s'"),
        (change("memory/bw1", q(1)), "memory.bw1 is not a known key"),
        (change("memori", {}), "memori is not a known key"),
        (change("memory/bsat", q(1e9)), "memory.bsat must not be below memory.b1"),
        (change("memory", []), "memory must be a table"),
        (change("openmp", 3), "openmp must be a table"),
        (change("topology/cores_per_node", 0), "cores_per_node must be a whole number, at"),
        (change("topology/cores_per_node", True), "cores_per_node must be a whole number, at"),
        (change("memory/by_cores", {}), "memory.by_cores must not be empty"),
        (change("memory/by_cores", {"x": q(1)}), "memory.by_cores.x: the key must be a number"),
        *(
            (change("memory/remote", {pair: {"bandwidth": q(0.6)}}), f"memory.remote.{pair}: the k")
            for pair in ("0-2", "0-0", "0", "near", "0-1-2")
        ),
        (change("memory/remote", {"0-1": {"ratio": q(1)}}), "memory.remote.0-1.ratio is not a kno"),
        (change("net/intra/table", [{"bytes": -1, "seconds": q(1)}]), "a number, at least 0"),
        (change("core/overlap", "some"), "core.overlap must be none, ecm, full or a table"),
        (change("core/overlap", q(1.5)), "core.overlap.value must be at most 1, not 1.5"),
        (change("core/overlap", q(-0.5)), "core.overlap.value must be a number, at least 0"),
        (change("name", 3), "name must be text, not 3"),
        (change("core/freq", {}), "core.freq must not be empty"),
        (change("core/freq", {"all": q(1)}), "core.freq.all: the key must be a number"),
        (change("openmp/parallel_for/T", [1]), "has 1 entries in T but 2 in seconds"),
        (change("openmp/parallel_for/T", [4, 1]), "openmp.parallel_for.T must increase"),
        (change("net/intra/classes", [{**LEAST, "upto": 5}]), "the last class must not have upto"),
        (change("net/intra/classes", [LEAST, LEAST]), "every class but the last must have upto"),
        (
            change("net/intra/classes", [{**LEAST, "upto": 5}, {**LEAST, "upto": 4}, LEAST]),
            r"net.intra.classes\[1\].upto must be above that of the class before",
        ),
        (
            change("net/intra/classes", TWO_CLASSES),
            r"classes\[0\] and \[1\] do not match at 1000 B",
        ),
        (
            change("net/intra/classes", [{**LEAST, "upto": "1k"}, LEAST]),
            "upto must be a number above 0, not '1k'",
        ),
    ],
)
def test_refused_with_file_and_key(edit: Callable[[Document], None], words: str) -> None:
    document = copy.deepcopy(minimal())
    edit(document)
    with pytest.raises(ProfileError, match=words) as caught:
        profile.from_document(document, "lab.json")
    assert caught.value.message.startswith("lab.json: ")
    assert "\n" not in caught.value.message


def test_what_cannot_be_used_is_told_with_the_next_step(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    with pytest.raises(ProfileError) as caught:
        profile.load(path)
    assert (
        caught.value.hint
        == "give a profile that popmodel machine measure wrote, or the name of a preset"
    )
    for text in ("{", "[1]", '{"schema": "popmodel/machine/1"}'):
        path.write_text(text)
        with pytest.raises(ProfileError) as caught:
            profile.load(path)
        assert caught.value.hint == "correct it, or measure again: popmodel machine measure"
