"""The machine profile: load, check, look up and save what is known about a machine.

The format is JSON, schema ``popmodel/machine/1``; `profile_schema` lists every key. What
a profile does not contain is unknown: asking for it is an error, never a silent default.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any

from popmodel.base import files, shell
from popmodel.base.documents import Bundled, parse_json, read_text
from popmodel.base.errors import PopmodelError
from popmodel.base.units import format_size, format_time, plural
from popmodel.base.values import cut, dataclass
from popmodel.machines.profile_schema import ProfileError, UnreadableProfile, check_document
from popmodel.machines.quantity import Cache, Quantity, Topology
from popmodel.machines.register import (
    BETWEEN_NODES,
    DISTANCES,
    NODE_PARTS,
    OWN,
    REGISTER,
    TIERS,
    find,
    part_of,
)

ANY = "any"
"""Stands for all pairs of memory domains, caches or distances, in paths of what is assumed."""

_ASSUMED = {
    re.sub("PAIR|LEVEL|DISTANCE|CORES|CONSTRUCT", ANY, path.removesuffix("[]")).replace(
        "[]", "[0]"
    ): one.bounded(one.assumed)
    for one in REGISTER
    if one.assumed is not None
    for path in dict.fromkeys(one.in_tier(tier) for tier in TIERS)
}

DEFAULT_PRESET = "sandybridge-fdr"


class MissingQuantity(PopmodelError):
    """A computation needs a value that the profile lacks."""

    def needed_by(self, what: str) -> MissingQuantity:
        """Make the same error with what needs it."""
        return MissingQuantity(f"{self.message} (needed by {what!r})", self.hint)


@dataclass(frozen=True)
class Profile:
    """A checked machine profile."""

    name: str  # Name in reports
    path: str  # File it was read from
    is_preset: bool  # Whether it ships with popmodel
    topology: Topology  # The hardware
    document: Mapping[str, Any] = field(repr=False)  # The profile as JSON types
    # Every parameter by its path, such as ``memory.b1`` or ``net.inter.classes[0].alpha``.
    quantities: Mapping[str, Quantity] = field(repr=False)

    def __repr__(self) -> str:
        nodes, cores = self.topology.nodes, self.topology.cores_per_node
        size = f"{plural(nodes, 'node')} of {plural(cores, 'core')}"
        return cut(
            f"<Profile {self.name}: {size}, {len(self.quantities)} parameters, {self.origin}>"
        )

    def get(self, path: str) -> Quantity:
        """Return a quantity by its path, or what is assumed of it."""
        if path in self.quantities:
            return self.quantities[path]
        if path in self.assumed:
            return self.assumed[path]
        if path in self.plain:
            return self.plain[path]
        raise self.missing(path)

    @cached_property
    def plain(self) -> Mapping[str, Quantity]:
        """Numbers that are written without interval and origin, such as ``memory.line``, exact."""
        found: dict[str, Quantity] = {}
        for one in REGISTER:
            section, _, name = one.path.partition(".")
            number = self.document.get(section, {}).get(name) if one.plain else None
            if number is not None:
                found[one.path] = Quantity(float(number), origin=self.origin)
        return found

    def missing(self, path: str) -> MissingQuantity:
        """Make the error for a quantity or table that the profile does not have."""
        problem = f"profile {self.name} ({self.path}) has no value for {path}"
        reason = self.absent(path)
        if reason is not None:
            return MissingQuantity(f"{problem}: {reason}", "add it to the profile, with its source")
        hint = "add it to the profile, with its source"
        if measure := measuring(self, path):
            hint += f", or measure it: {measure}"
        return MissingQuantity(problem, hint)

    def absent(self, path: str) -> str | None:
        """Return the reason why a quantity, or the table it is in, could not be measured."""
        reasons: Mapping[str, str] = self.document.get("absent", {})
        return next((why for key, why in reasons.items() if _begins(path, key)), None)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of hardware and numbers: the same for a copy under another name."""
        numbers = {path: (one.value, one.low, one.high) for path, one in self.quantities.items()}
        known = [self.document.get("topology"), sorted(numbers.items())]
        text = json.dumps(known, sort_keys=True, allow_nan=False)
        return sha256(text.encode()).hexdigest()

    @property
    def origin(self) -> str:
        """Where most of the quantities come from: ``measured``, ``preset`` or ``user``."""
        origins = Counter(quantity.origin for quantity in self.quantities.values())
        if origins:
            return origins.most_common(1)[0][0]
        # what measures a machine says so, even where nothing but noise came of it
        provenance = self.document.get("provenance")
        is_bench = isinstance(provenance, Mapping) and "measurements" in provenance
        return "measured" if is_bench else "user"

    @property
    def noisy(self) -> tuple[str, ...]:
        """Sections that were measured while something disturbed the machine."""
        qualities = self.document.get("quality", {}).items()
        return tuple(
            section
            for section, quality in qualities
            if isinstance(quality, Mapping) and quality.get("noisy")
        )

    @cached_property
    def assumed(self) -> Mapping[str, Quantity]:
        """Quantities that the profile lacks and the model takes within wide bounds, by path."""
        return {
            path: quantity
            for path, quantity in _ASSUMED.items()
            if path not in self.quantities
            and path not in self.plain
            and self.word(path) is None
            and self._is_asked(path)
        }

    def lacks(self, path: str, of: str | None = None) -> str:
        """Say what is assumed in place of what the profile lacks: ``of``, or the path itself."""
        parameter = find(path)
        meaning = path if parameter is None else parameter.meaning
        return (
            f"the profile lacks {of or lacking_part(path)}: {meaning} is assumed, "
            f"{self.bounds(path)}"
        )

    def bounds(self, path: str) -> str:
        """Return the ends of what is assumed, in words."""
        quantity, parameter = self.assumed[path], find(path)
        low, high = (
            quantity.value if end is None else end for end in (quantity.low, quantity.high)
        )
        if parameter is not None and parameter.unit not in ("s", "B"):
            return f"{low:g} to {in_unit(path, high)}"
        return f"{in_unit(path, low)} to {in_unit(path, high)}"

    def assumed_network(self, *, intra: bool, inter: bool) -> list[str]:
        """Return the paths of what is assumed of messages within and between nodes."""
        tiers = [f"net.{tier}." for tier, on in (("intra", intra), ("inter", inter)) if on]
        return [path for path in self.assumed if path.startswith(tuple(tiers))]

    def _is_asked(self, path: str) -> bool:
        """Whether the model may need what is assumed: of no pair of domains if it knows one.

        Nor of caches, if there is but one or something is known of them all; nor of lines that move
        between cores, if any distance is known; nor of overlap, if a word tells all of it; nor of
        the clock, if some numbers of cores tell, and bandwidth, if they tell all.
        """
        section, _, rest = path.partition(".")
        if section == "net" and (tier := rest.partition(".")[0]) in TIERS:
            if tier in self.tiers():
                return ".classes[" not in rest
            return tier in ("intra", "inter")
        if path in ("memory.b1", "memory.bsat"):
            counts = [int(key) for key in self.document.get("memory", {}).get("by_cores", ())]
            cores = self.topology.cores_per_domain if path == "memory.bsat" else 1
            return not counts or not min(counts) <= cores <= max(counts)
        if section == "openmp":
            return True  # of constructs or numbers of threads that nobody measured
        if path == "memory.cache_share":
            return not self.topology.caches
        if path.endswith(f".{ANY}"):
            stem = path.removesuffix(ANY)
            if stem == "core.freq.":
                return "freq" not in self.document.get("core", {})
            if stem in ("memory.line_takeover.", "memory.line_transfer."):
                known = any(stem + distance in self.quantities for distance in DISTANCES)
                return self.topology.cores_per_node > 1 and not known
            if stem == "memory.cache_bw.":
                return not self.topology.caches  # else left out
            if stem == "core.overlap_issue." and self.word("core.overlap") is not None:
                return False
            levels = self.topology.levels
            if stem == "memory.write_back.":
                levels = levels[1:] or levels
                if not levels:
                    return True
            else:
                levels = levels[1:] if stem == "core.overlap_issue." else levels[:-1]
            return any(stem + level not in self.quantities for level in levels)
        stem, is_of_pairs, key = path.partition(f".{ANY}.")
        return not is_of_pairs or (self.topology.domains > 1 and not self._pairs(stem, key))

    def of_lines(self, table: str, distance: str) -> str:
        """Return the path of what is known of lines that another core has, or is assumed."""
        paths = [f"memory.{table}.{one}" for one in (distance, *DISTANCES)]
        known = (path for path in paths if path in self.quantities)
        return next(known, f"memory.{table}.{ANY}")

    def overlap(self, table: str, level: str) -> str:
        """Return the path of what is known, or assumed, of the overlap with transfers of a level.

        Of transfers from memory beside instructions, where nobody measured them: that with
        arithmetic.
        """
        path = f"core.{table}.{level}"
        if path in self.quantities:
            return path
        if table == "overlap_with":
            return "core.overlap"
        is_outer = level in self.topology.levels[1:]
        return f"core.{table}.{ANY}" if is_outer else self.overlap("overlap_with", level)

    def of_level(self, table: str, level: str) -> str:
        """Return the path of a quantity of a cache, or of what is assumed of all caches."""
        path = f"{table}.{level}"
        return path if path in self.quantities else f"{table}.{ANY}"

    def _pairs(self, stem: str, key: str) -> dict[tuple[int, int], str]:
        """Paths of a quantity by the pairs of memory domains for which it is known."""
        beginning, ending = f"{stem}.", f".{key}"
        names = {
            path.removeprefix(beginning).removesuffix(ending): path
            for path in self.quantities
            if path.startswith(beginning) and path.endswith(ending)
        }
        return {
            (int(on), int(data)): path
            for name, path in names.items()
            for on, _, data in [name.partition("-")]
        }

    def remote(self, on: int, data: int, key: str) -> str:
        """Return the path of what is known of memory in another domain than the core.

        That of the pair, or of the pair the other way round; else the lowest of a pair that is as
        near (on one socket, or on two), of any pair, or what is assumed.
        """
        known = self._pairs("memory.remote", key)
        for pair in ((on, data), (data, on)):
            if pair in known:
                return known[pair]
        near = self.topology.share_socket(on, data)
        alike = {p for p in known if self.topology.share_socket(*p) == near} or set(known)
        paths = [known[pair] for pair in alike]
        if paths:
            return min(paths, key=lambda path: (self.quantities[path].value, path))
        return f"memory.remote.{ANY}.{key}"

    def word(self, path: str) -> str | None:
        """Return the word in the place of a quantity; None if there is none.

        ``core.overlap`` may be ``none``, ``ecm`` or ``full``.
        """
        section, _, key = path.partition(".")
        entry = self.document.get(section, {}).get(key)
        return entry if isinstance(entry, str) else None

    def tiers(self) -> list[str]:
        """Return the tiers of the network on which the time of messages is known."""
        net = self.document.get("net", {})
        return [tier for tier in TIERS if "classes" in net.get(tier, {})]

    def constructs(self) -> list[str]:
        """Return the OpenMP constructs whose overhead is known."""
        return sorted(self.document.get("openmp", {}))

    def thread_counts(self, construct: str) -> list[int]:
        """Return the thread counts for which the overhead of a construct is known."""
        if construct not in self.document.get("openmp", {}):
            raise self.missing(f"openmp.{construct}")
        return list(self.document["openmp"][construct]["T"])

    def active_counts(self) -> list[int]:
        """Return the numbers of active cores for which the clock is known, rising."""
        return self._counts("core", "freq")

    def bandwidth_counts(self) -> list[int]:
        """Return the numbers of active cores for which the memory bandwidth is known, rising."""
        return self._counts("memory", "by_cores")

    def _counts(self, section: str, table: str) -> list[int]:
        known = self.document.get(section, {}).get(table)
        if known is None:
            raise self.missing(f"{section}.{table}")
        return sorted(int(key) for key in known)

    def class_bounds(self, tier: str) -> list[float | None]:
        """Return the largest message of each size class of a tier, None of the last.

        One class where the profile does not know the tier: what it costs is assumed.
        """
        known = self.document["net"][tier]["classes"] if tier in self.tiers() else [{}]
        return [entry.get("upto") for entry in known]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the profile as JSON; errors as of `popmodel.base.files.written`."""
        text = json.dumps(self.document, indent=1, allow_nan=False)
        files.write_text(path, f"{text}\n", read=load)


def in_unit(path: str, value: float) -> str:
    """Return a value of a quantity with its unit."""
    parameter = find(path)
    unit = "1" if parameter is None else parameter.unit
    if unit == "s":
        return format_time(value, trim=True)
    if unit == "B":
        return format_size(value, digits=3)
    return f"{value:g}" if unit == "1" else f"{value:g} {unit}"


def lacking_part(path: str) -> str:
    """Return the part of a profile that is missing where something is assumed."""
    if path == "memory.cache_share":
        return "topology.caches"
    return re.sub(rf"\.classes\[.*|\.{ANY}(?=\.|$)", "", path)


def _begins(path: str, prefix: str) -> bool:
    """Tell whether a path is ``prefix`` or lies below it; ``*`` stands for any one name."""
    pattern = re.escape(prefix).replace(r"\*", r"[^.]+")
    return re.match(rf"{pattern}(?![\w])", path) is not None


_BUNDLED = Bundled(
    Path(__file__).parent / "presets",
    ".json",
    "machine",
    "neither a file nor a preset",
)


def presets() -> list[str]:
    """Return the names of the bundled profiles."""
    return _BUNDLED.names()


def load(source: str | os.PathLike[str]) -> Profile:
    """Read a machine profile from a file, or a bundled one by its name.

    Parameters
    ----------
    source : path or str
        A file, or the name of a preset (`presets`).

    Raises
    ------
    ProfileError
        If the file cannot be read or is not a valid profile; the message names the key.
    UsageError
        If neither a file nor a preset has that name.

    Examples
    --------
    >>> import popmodel
    >>> machine = popmodel.load_machine("sandybridge-fdr")
    >>> machine
    <Profile sandybridge-fdr: 64 nodes of 16 cores, 47 parameters, preset>
    >>> machine.get("memory.bsat").value  # B/s
    39400000000.0
    """
    path, is_preset = _BUNDLED.find(source)
    document = parse_json(read_text(path, UnreadableProfile), path, ProfileError)
    return from_document(document, os.fspath(path), is_preset=is_preset)


def from_document(
    document: Mapping[str, Any], path: str = "profile", *, is_preset: bool = False
) -> Profile:
    """Check a profile given as JSON types and give it as a `Profile`."""
    quantities = check_document(document, path)
    topology = topology_of(document["topology"])
    name = str(document.get("name", Path(path).stem))
    return Profile(name, path, is_preset, topology, document, quantities)


def topology_of(table: Mapping[str, Any]) -> Topology:
    """Return the hardware that the table ``topology`` of a profile describes."""
    return Topology(
        nodes=table.get("nodes", 1),
        cores_per_node=table["cores_per_node"],
        sockets=table.get("sockets", 1),
        domains=table.get("domains", table.get("sockets", 1)),
        caches=tuple(
            Cache(entry["level"], entry["bytes"], entry["shared_by"])
            for entry in table.get("caches", ())
        ),
        memory_per_node=table.get("memory_per_node"),
    )


# The command that measures a quantity of a profile again, ready to be pasted.
#
# In a profile that is a file, the command replaces the part with the quantity; it is to be run on
# that machine. A preset stays as it is: the command measures a machine of the user's own. The
# network between nodes needs a job on two nodes.


def measuring(profile: Profile, path: str) -> str | None:
    """Return the command that measures a quantity."""
    part = part_of(path)
    if part is None:
        return None
    beginning = re.compile(re.escape(path.partition(".classes")[0]) + r"(?!\w)")
    origins = {one.origin for name, one in profile.quantities.items() if beginning.match(name)}
    longer = ["--full"] if "measured" in origins else []  # quicker has been done
    between_nodes = part not in NODE_PARTS and (
        path.startswith(BETWEEN_NODES) or "inter" in profile.tiers()
    )
    nodes = ["--script", "slurm", "--nodes", "2"] if between_nodes else []
    file = PurePath(profile.path)
    if profile.is_preset or file.suffix.lower() != ".json":
        return shell.join(["popmodel", "machine", "measure", *longer, *nodes, "-o", OWN])
    if between_nodes:  # a part of the profile only: the other nodes' would be lost
        new = file.with_name(f"{file.stem}-new.json")
        return shell.join(["popmodel", "machine", "measure", *longer, *nodes, "-o", _argument(new)])
    words = [
        "popmodel",
        "machine",
        "measure",
        *longer,
        "--only",
        part,
        "-o",
        _argument(file),
        "--force",
    ]
    return shell.join(words)


def measuring_first(profile: Profile, paths: Iterable[str]) -> str | None:
    """Return the command for the first quantity that a benchmark measures, or None."""
    found = (measuring(profile, path) for path in paths)
    return next((one for one in found if one is not None), None)


def measured_file(command: str) -> str:
    """Return the file, as a word of a shell, that such a command writes."""
    return command.partition(" -o ")[2].removesuffix(" --force")


def _argument(path: PurePath) -> str:
    """The path in a form that is not read as an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


# rows of lists by what they are about: two measurements need not have the same ones
_ROW = re.compile(r"^(coll\.\w+|net\.\w+\.(?:table|pairs))\[(\d+)\](.*)$")
_OVERHEAD = re.compile(r"^openmp\.(\w+)\.seconds\[(\d+)\]$")


def named_quantities(profile: Profile) -> dict[str, Quantity]:
    """Quantities by paths that name rows by their size rather than by their number."""
    return {_name(path, profile): quantity for path, quantity in profile.quantities.items()}


def _name(path: str, profile: Profile) -> str:
    document = profile.document
    if match := _OVERHEAD.match(path):
        construct, index = match.groups()
        threads = document["openmp"][construct]["T"][int(index)]
        return f"openmp.{construct}.seconds[T={threads}]"
    if match := _ROW.match(path):
        table, index, rest = match.groups()
        rows: Any = document
        for key in table.split("."):
            rows = rows[key]
        return f"{table}[{_about(rows[int(index)])}]{rest}"
    return path


def _about(row: Mapping[str, Any]) -> str:
    """What a row is about: ranks, ranks per node, pairs, bytes."""
    parts = [f"{row['bytes']} B"]
    if "pairs" in row:
        parts.insert(0, f"{row['pairs']} pairs")
    if "P" in row:
        ranks = f"{row['P']} ranks"
        parts.insert(0, ranks if row["ppn"] == row["P"] else f"{ranks}, {row['ppn']} per node")
    return ", ".join(parts)
