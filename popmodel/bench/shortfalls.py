"""In what a measurement differs from what was asked: jobs without a sample, ranks in other places.

Told from the samples alone, as they are when a profile is made of them: a batch system ends jobs
without asking, and gives fewer nodes than it seems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from popmodel.bench.jobs import from_params
from popmodel.bench.plan import Plan
from popmodel.bench.samples import Launch
from popmodel.host.system_files import parse_cpu_list
from popmodel.units import plural

Numbered = Mapping[int, Sequence[Launch]]


def shortfalls(plan: Plan | None, launches: Sequence[Launch]) -> list[str]:
    """Say in what samples fall short of their plan."""
    numbered: dict[int, list[Launch]] = {}
    for launch in launches:
        numbered.setdefault(int(launch.header.get("launch", 0)), []).append(launch)
    jobs = _unfinished(numbered) if plan is None else _missing(plan, numbered)
    places = () if plan is None else _fewer_nodes(plan, numbered)
    return [*jobs, *places, *_crowded(numbered)]


def _unfinished(numbered: Numbered) -> Iterator[str]:
    """Launches that say themselves that jobs of theirs are missing."""
    reasons: dict[str, list[int]] = {}
    for number, starts in numbered.items():
        if (reason := _end(starts)) is not None:
            reasons.setdefault(reason, []).append(number)
    if reasons:
        yield f"some jobs have no sample: {_listed(reasons)}"


def _missing(plan: Plan, numbered: Numbered) -> Iterator[str]:
    """Jobs without a sample, and what became of their launches."""
    left = 0
    reasons: dict[str, list[int]] = {}
    for launch in plan.launches:
        starts = numbered.get(launch.number, ())
        done = {from_params(one.job, one.params) for start in starts for one in start.results}
        if missing := len(set(launch.jobs) - done):
            left += missing
            reason = _end(starts) or "skipped jobs that had failed"
            reasons.setdefault(reason, []).append(launch.number)
    if left:
        total = sum(len(launch.jobs) for launch in plan.launches)
        yield f"{left} of {plural(total, 'job')} have no sample: {_listed(reasons)}"


def _end(starts: Sequence[Launch]) -> str | None:
    """What kept a launch from its last job; None if it came to its end."""
    if not starts:
        return "did not start"
    ends = {start.end for start in starts}
    if "complete" in ends:
        return None
    return "ran out of time" if "limit" in ends else "was interrupted"


def _fewer_nodes(plan: Plan, numbered: Numbered) -> Iterator[str]:
    """Launches whose ranks were on fewer nodes than the plan has for them."""
    found: dict[str, list[int]] = {}
    for launch in plan.launches:
        hosts = {host for start in numbered.get(launch.number, ()) for host in start.hosts}
        if launch.program == "mpi" and 0 < len(hosts) < launch.nodes:
            ran = f"ran on {len(hosts)} instead of {plural(launch.nodes, 'node')}"
            found.setdefault(ran, []).append(launch.number)
    if found:
        yield _listed(found)


def _crowded(numbered: Numbered) -> Iterator[str]:
    """Launches with more ranks on a node than CPUs for them: they measure how ranks take turns."""
    found: dict[str, list[int]] = {}
    for number, starts in numbered.items():
        for host, (ranks, cpus) in _places(starts).items():
            if 0 < cpus < ranks:
                crowd = f"had {ranks} ranks on {plural(cpus, 'CPU')} of {host}"
                found.setdefault(crowd, []).append(number)
    if found:
        yield f"oversubscribed cores: {_listed(found)}"


def _places(starts: Sequence[Launch]) -> dict[str, tuple[int, int]]:
    """Most ranks of a start on each node, and the CPUs that they could use; 0 where not told."""
    found: dict[str, tuple[int, int]] = {}
    for start in starts:
        cpus: dict[str, list[tuple[int, ...]]] = {}
        for place in start.header.get("ranks_at", ()):
            own = parse_cpu_list(str(place.get("cpus") or ""))
            cpus.setdefault(str(place["host"]), []).append(own)
        for host, sets in cpus.items():
            known = len(set().union(*sets)) if all(sets) else 0
            found[host] = max(found.get(host, (0, 0)), (len(sets), known))
    return found


def _listed(reasons: Mapping[str, Sequence[int]]) -> str:
    """``launches 2, 4 were cut short; launch 3 did not begin``."""
    said = []
    for reason, numbers in reasons.items():
        several = len(numbers) > 1
        verb = reason.replace("was ", "were ", 1) if several else reason
        said.append(f"launch{'es' * several} {', '.join(map(str, numbers))} {verb}")
    return "; ".join(said)
