"""Values of the machine for the terms: numbers, draws, or traced numbers, by the same calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np

from popmodel.base.expressions.elementary import Value, choose, maximum, minimum
from popmodel.base.values import NamedTuple, dataclass
from popmodel.machines.profile import Profile, lacking_part
from popmodel.machines.register import find
from popmodel.model.terms import compute, openmp
from popmodel.network.point_to_point import SizeClass


class ParameterUse(NamedTuple):
    """A table or a law of the machine, and what it was asked for."""

    # Path of the table, such as ``openmp.parallel_for`` or ``net.inter``; words behind it say which
    # of its entries are meant.
    subject: str
    # ``threads``, ``cores``, ``bytes``, ``pairs`` (messages at once), ``processes`` or ``nodes``.
    argument: str
    value: float  # Its value; the best estimate where draws differ

    @property
    def table(self) -> str:
        """Path of the table."""
        return self.subject.partition(" ")[0]


def _unnamed(name: str, value: Value, unit: str, meaning: str) -> Value:  # noqa: ARG001
    return value


@dataclass(frozen=True)
class Parameters:
    """A machine profile together with values for its quantities."""

    profile: Profile  # Which quantities there are, and the topology
    values: Callable[[str], Value]  # Path of a quantity -> its value
    across_sockets: bool = False  # Whether the threads of a process are on several sockets
    # Quantities that a term would use but the profile does not know, where the model can do
    # without: the effect is then not in the prediction, and reports say so.
    left_out: set[str] = field(default_factory=set)
    remarks: set[str] = field(default_factory=set)  # What the terms found that a reader should know
    # What predictions need, the profile does not know, and is assumed within wide bounds.
    lacking: set[str] = field(default_factory=set)
    assumptions: set[str] = field(default_factory=set)  # What is assumed of it, in words
    remarked: set[tuple[str, str | None]] = field(default_factory=set)  # Whose lack was looked at
    # What was asked of the machine, to be compared with what was measured.
    used: set[ParameterUse] = field(default_factory=set)
    # As `values`, without what-if factors; None where there are none.
    unchanged: Callable[[str], Value] | None = None
    # Gives what a law of the machine finds a name in formulas: (name, value, unit, meaning) ->
    # value.
    named: Callable[[str, Value, str, str], Value] = _unnamed
    # Whether arrays of values are draws of uncertain inputs, the best estimate first.
    are_drawn: bool = False
    from_source: bool = False  # Whether the work was counted in source code, no time measured

    def use(self, subject: str, argument: str, value: Value) -> None:
        """Note what a table or law is asked for."""
        typical = float(np.ravel(np.asarray(value, dtype=np.float64))[0])
        self.used.add(ParameterUse(subject, argument, typical))

    def as_profiled(self) -> Parameters:
        """Return the machine without what-if factors; what is asked of it is not noted."""
        return Parameters(self.profile, self.unchanged or self.values, self.across_sockets)

    def get(self, path: str) -> Value:
        """Return a quantity that is needed; an error if the profile does not know it."""
        if path in self.profile.assumed:
            self._remark_assumed(path)
        elif path not in self.profile.quantities:
            self.profile.get(path)
        return self.values(path)

    def _remark_assumed(self, path: str, of: str | None = None) -> None:
        """Name what predictions need and the profile lacks."""
        if (path, of) in self.remarked:
            return
        self.remarked.add((path, of))
        parameter = find(path)
        if parameter is not None and parameter.needed:
            self.lacking.add(of or lacking_part(path))
            self.assumptions.add(self.profile.lacks(path, of))

    def optional(self, path: str) -> Value | None:
        """Return a quantity, or None and a note that its effect is left out."""
        if path in self.profile.quantities:
            return self.values(path)
        self.left_out.add(path)
        return None

    def frequency(self, active: int) -> Value:
        """Return the clock with some active cores of a node, Hz; linear between known counts."""
        self.use("core.freq", "cores", active)
        if "core.freq.any" in self.profile.assumed:
            clock = self.get("core.freq.any")
        else:
            clock = self._by_count("core.freq", self.profile.active_counts(), active)
        meaning = f"clock with {active} active cores of a node"
        return self.named(f"f_{active}", clock, "Hz", meaning)

    def overlap(self, transfers: Mapping[str, Value], table: str = "overlap_with") -> str | Value:
        """Return how a core overlaps arithmetic and transfers: a word for it, or the share.

        Where it is known level by level, the mean by the time of the transfers.
        """
        word = self.profile.word("core.overlap")
        if word is not None:
            return word
        paths = {level: self.profile.overlap(table, level) for level in transfers}
        first, *others = set(paths.values())
        if not others:
            return minimum(self.get(first), 1.0)
        shares = [minimum(self.get(paths[level]), 1.0) * time for level, time in transfers.items()]
        total = sum(transfers.values())
        mean: Value = sum(shares) / choose(total > 0, total, 1.0)  # in some draws nothing may move
        return mean

    def bandwidth(self, active: float) -> Value:
        """Return the bandwidth of a memory domain with some active cores, B/s.

        By the law of saturation if the machine shows one, else linear between measured counts.
        Beyond these it rises with the cores, at most to what is known or assumed of all of them.
        """
        self.use("memory.by_cores", "cores", active)
        if self._has_saturation:
            one, full, q = (self.get(f"memory.{key}") for key in ("b1", "bsat", "q"))
            if "memory.b1" in self.profile.assumed:
                one = minimum(one, full)
            found = compute.bandwidth(active, one, full, q)
        else:
            counts = self.profile.bandwidth_counts()
            found = self._by_count("memory.by_cores", counts, active)
            if active > counts[-1]:
                most = maximum(found, self.get("memory.bsat"))
                found = minimum(found * (active / counts[-1]), most)
            elif active < counts[0]:
                least = maximum(found * (active / counts[0]), self.get("memory.b1") * active)
                found = minimum(found, least)
        meaning = f"memory bandwidth of {active:g} active cores of a domain"
        return self.named(f"b_{active:g}", found, "B/s", meaning)

    @property
    def _has_saturation(self) -> bool:
        """Whether a law of saturation is known; assumed, if no number of cores was measured."""
        known = {"memory.b1", "memory.bsat"} <= self.profile.quantities.keys()
        return known or "by_cores" not in self.profile.document.get("memory", {})

    def usable(self, level: str) -> Value:
        """Return the working set of which half stays in a cache, over its size."""
        last = self.profile.topology.last_level_cache
        if last is not None and level == last.level:
            return self.get("memory.kappa")
        return self.get(self.profile.of_level("memory.inner_kappa", level))

    def write_back(self, level: str) -> Value:
        """Return the time of writing a line back to a cache over that of reading one from it."""
        return self.get(self.profile.of_level("memory.write_back", level))

    def domain_bandwidth(self) -> Value:
        """Return the bandwidth of a memory domain with as many active cores as are known, B/s."""
        cores = self.profile.topology.cores_per_domain
        if self._has_saturation:
            return self.bandwidth(cores)
        return self.bandwidth(min(cores, self.profile.bandwidth_counts()[-1]))

    def remote(self, on: int, data: int, key: str) -> Value:
        """Return the bandwidth for data of another memory domain over that for local data."""
        path = self.profile.remote(on, data, key)
        if path not in self.profile.quantities:
            self.remarks.add(
                "the profile does not know the memory of other domains: assumed to give one core "
                "0.35 to 0.9 of the local bandwidth"
            )
        return minimum(self.get(path), 1.0)

    def _by_count(self, table: str, counts: list[int], active: float) -> Value:
        nearest = min(max(active, counts[0]), counts[-1])
        upper = next(count for count in counts if count >= nearest)
        at_upper = self.get(f"{table}.{upper}")
        if upper == nearest:
            return at_upper
        lower = max(count for count in counts if count < nearest)
        at_lower = self.get(f"{table}.{lower}")
        return at_lower + (at_upper - at_lower) * ((nearest - lower) / (upper - lower))

    def overhead(self, construct: str, threads: int) -> Value:
        """Return the overhead of entering an OpenMP construct once with T threads, s."""
        self.use(f"openmp.{construct}", "threads", threads)
        meaning = f"overhead of {construct} at {threads} threads"
        return self.named(f"O_{construct}", self._overhead(construct, threads), "s", meaning)

    def _overhead(self, construct: str, threads: int) -> Value:
        path = f"openmp.{construct}"
        if construct not in self.profile.constructs():
            return self._assumed_overhead(path)
        counts = self.profile.thread_counts(construct)
        terms = [key for key in "abds" if f"{path}.fit.{key}" in self.profile.quantities]
        if threads > 1 and threads not in counts and terms:
            # a term that the fit does not have takes no part in the law
            law = dict.fromkeys("abds", 0.0) | {key: self.get(f"{path}.fit.{key}") for key in terms}
            return openmp.overhead_law(threads, **law, across_sockets=self.across_sockets)
        seconds = [self.get(f"{path}.seconds[{index}]") for index in range(len(counts))]
        if threads < counts[0] or (len(counts) < 2 and threads not in counts):
            return self._assumed_overhead(f"{path} at {threads} threads")
        return openmp.interpolate_overhead(threads, counts, seconds)

    def _assumed_overhead(self, of: str) -> Value:
        path = "openmp.any.seconds"
        self._remark_assumed(path, of)
        return self.values(path)

    def size_classes(self, tier: str) -> list[SizeClass]:
        """Return the message parameters of a tier of the network, of a message alone."""
        return [
            SizeClass(
                upto,
                self.get(f"net.{tier}.classes[{index}].alpha"),
                self.get(f"net.{tier}.classes[{index}].beta"),
            )
            for index, upto in enumerate(self.profile.class_bounds(tier))
        ]
