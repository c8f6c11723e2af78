"""From the samples of run directories to a profile, and what was asked for and is missing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from popmodel.base.errors import FileError, PopmodelError, UsageError
from popmodel.base.units import plural
from popmodel.machines.bench import bench_plan, run_directory, sample_files, suite
from popmodel.machines.bench.bench_plan import BenchPlan, MeasurementRequest
from popmodel.machines.bench.estimate.profile_document import calibrate, moment_of
from popmodel.machines.bench.jobs import PATHS, from_params
from popmodel.machines.bench.run_directory import StoredMeasurement
from popmodel.machines.bench.sample_files import Launch
from popmodel.machines.bench.suite import Failure
from popmodel.machines.host import hardware
from popmodel.machines.host.hardware import parse_cpu_list
from popmodel.machines.register import NODE_PARTS

# In what a measurement differs from what was asked: jobs without a sample, ranks in other places.
#
# Told from the samples alone, as they are when a profile is made of them: a batch system ends jobs
# without asking, and gives fewer nodes than it seems.


Numbered = Mapping[int, Sequence[Launch]]


def shortfalls(plan: BenchPlan | None, launches: Sequence[Launch]) -> list[str]:
    """Say in what samples fall short of their plan."""
    numbered: dict[int, list[Launch]] = {}
    for launch in launches:
        numbered.setdefault(int(launch.header.get("launch", 0)), []).append(launch)
    said: list[str] = []
    unfinished: dict[str, list[int]] = {}
    elsewhere: dict[str, list[int]] = {}
    if plan is None:  # launches that say themselves that jobs of theirs are missing
        for number, starts in numbered.items():
            if (reason := _end(starts)) is not None:
                unfinished.setdefault(reason, []).append(number)
        if unfinished:
            said.append(f"some jobs have no sample: {_listed(unfinished)}")
    else:
        left = 0
        for planned in plan.launches:
            starts = numbered.get(planned.number, [])
            done = {from_params(one.job, one.params) for start in starts for one in start.results}
            if missing := len(set(planned.jobs) - done):
                left += missing
                reason = _end(starts) or "skipped jobs that had failed"
                unfinished.setdefault(reason, []).append(planned.number)
            hosts = {host for start in starts for host in start.hosts}
            if planned.program == "mpi" and 0 < len(hosts) < planned.nodes:
                ran = f"ran on {len(hosts)} instead of {plural(planned.nodes, 'node')}"
                elsewhere.setdefault(ran, []).append(planned.number)
        if left:
            total = plural(sum(len(planned.jobs) for planned in plan.launches), "job")
            said.append(f"{left} of {total} have no sample: {_listed(unfinished)}")
        if elsewhere:
            said.append(_listed(elsewhere))
    return [*said, *_crowded(numbered)]


def _end(starts: Sequence[Launch]) -> str | None:
    """What kept a launch from its last job; None if it came to its end."""
    if not starts:
        return "did not start"
    ends = {start.end for start in starts}
    if "complete" in ends:
        return None
    return "ran out of time" if "limit" in ends else "was interrupted"


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


# From the samples of one or several run directories to a machine profile.


Document = dict[str, Any]


def collect(
    folders: Sequence[Path], failures: Iterable[Failure] = ()
) -> tuple[Document, list[Path]]:
    """Make a profile of all samples in some directories."""
    paths: list[Path] = []
    for folder in folders:
        here = run_directory.all_samples(folder)
        if not here:
            what = "contains no samples (*.jsonl)" if folder.is_dir() else "is not a directory"
            raise FileError(
                folder, what, hint="give the directory of the samples, such as machine.samples"
            )
        # A launch that was given up before its first sample leaves an empty file.
        paths += [path for path in here if path.stat().st_size]
    launches = sample_files.read(paths)
    _check_same_machine(launches)
    document = calibrate(launches)
    measurements = [_measurement(folder, launches) for folder in folders]
    given_up = list(failures)
    if given_up:
        measurements[-1]["failures"] = [failure.text for failure in given_up]
    document["provenance"] = {"measurements": measurements}
    for folder in folders:
        run, _ = _plan_of(folder)
        if run is not None:
            _add_absent(document, run.plan, given_up)
    return document, paths


def _plan_of(folder: Path) -> tuple[StoredMeasurement | None, str | None]:
    """What was to be measured in a directory, if that is known, and why not if it should be."""
    try:
        return run_directory.find(folder), None
    except FileError as error:  # samples say themselves what they are
        return None, f"{error.message}: missing jobs cannot be counted"


def _check_same_machine(launches: Sequence[Launch]) -> None:
    """Refuse samples whose processor, MPI or OpenMP runtime differ."""
    seen: dict[str, tuple[str, str]] = {}
    for launch in launches:
        header = launch.header
        files = header.get("files")
        facts = {
            "processor": hardware.read(files).model if files else None,
            "MPI": header.get("mpi", {}).get("library"),
            "OpenMP runtime": header.get("openmp", {}).get("runtime"),
        }
        for what, value in facts.items():
            if value is None:
                continue
            before, path = seen.setdefault(what, (str(value), launch.path))
            if before != str(value):
                raise FileError(
                    launch.path,
                    f"{what} is {value}, but it is {before} in {path}",
                    hint="collect the samples of each machine into a separate profile",
                )


def _measurement(folder: Path, launches: Sequence[Launch]) -> dict[str, Any]:
    run, damage = _plan_of(folder)
    about: dict[str, Any] = {"samples": str(folder)}
    here = [launch for launch in launches if Path(launch.path).parent == folder]
    starts = [
        launch.header["started"] for launch in here if launch.header.get("started") is not None
    ]
    if starts:  # when it was measured: samples may be collected long after
        about["started"] = moment_of(min(starts))
    if run is not None:
        made = run.plan
        about |= {"mode": made.mode, "parts": list(made.parts), "ranks": made.ranks}
        about |= {"nodes": made.nodes, "seed": made.seed, "launches": len(made.launches)}
        about |= {"jobs": sum(len(launch.jobs) for launch in made.launches)}
        about |= {"without_sample": run_directory.without_sample(run), "with": dict(run.made_with)}
    lacking = shortfalls(None if run is None else run.plan, here)
    if damage is not None:
        lacking = [damage, *lacking]
    return about | ({"shortfalls": lacking} if lacking else {})


def _add_absent(document: Document, made: BenchPlan, failures: Sequence[Failure]) -> None:
    """Say why what was asked for is not there, where the samples alone do not tell."""
    absent: dict[str, str] = document.setdefault("absent", {})
    absent |= {path: why for path, why in made.left_out.items() if not _has(document, path)}
    for part in made.parts:
        if any(_has(document, path) for path in PATHS[part]):
            continue
        program = "node" if part in NODE_PARTS else "mpi"
        failed = [failure.text for failure in failures if failure.program == program]
        absent.setdefault(PATHS[part][0], failed[0] if failed else "not measured")


def measure(
    request: MeasurementRequest,
    folder: Path,
    *,
    force: bool,
    keep: bool,
    progress: Callable[[suite.Progress], None] = lambda _: None,
    watch: Callable[[StoredMeasurement], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> tuple[Document, list[Path], list[Failure]]:
    """Measure this machine into a directory, or go on with that: as `collect`, and failures.

    What is completed is kept if `keep`, else measured anew; another measurement that is there is
    refused, unless `force`. `watch` is entered while programs run.
    """
    machine = hardware.here()
    plan = bench_plan.make_plan(request, machine)
    using = bench_plan.tools(request, machine.usable_cores)
    with run_directory.held(folder):
        run = run_directory.open_run(folder, plan, using.identity, force=force, keep=keep)
        failures: list[Failure] = []
        with watch(run):
            if not run.is_completed:
                failures = suite.measure(run, suite.starter(using.programs, using.mpi), progress)
        done = any(run_directory.done_in(path)[0] for path in run_directory.all_samples(folder))
        if failures and not done:
            raise suite.nothing_measured(failures)
        document, paths = collect([folder], failures)
        if not has_any(document, request.parts):
            raise nothing_of(request.parts, document, failures)
        run_directory.complete(run)
    return document, paths, failures


def has_any(document: Mapping[str, Any], parts: Iterable[str]) -> bool:
    """Whether a profile has anything of some parts of the suite."""
    return any(_has(document, path) for part in parts for path in PATHS[part])


def nothing_of(
    parts: Sequence[str], document: Mapping[str, Any], failures: Sequence[Failure]
) -> PopmodelError:
    """The error for a measurement that has nothing of the parts that were asked for."""
    what = f"{', '.join(parts)}: nothing could be measured"
    hint = "popmodel machine check shows what works on this machine"
    if failures:
        return PopmodelError(f"{what}: {failures[0].text}", failures[0].error.hint or hint)
    above = [path for part in parts for path in PATHS[part]]
    absent = document.get("absent", {})
    reasons = [why for path, why in absent.items() if _is_below(path, above)]
    return PopmodelError(f"{what}: {reasons[0] if reasons else 'there are no samples'}", hint)


def _has(document: Mapping[str, Any], path: str) -> bool:
    table: Any = document
    for key in path.split("."):
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    return True


def replace_parts(kept: Mapping[str, Any], fresh: Document, parts: Sequence[str]) -> Document:
    """Put newly measured parts into a profile in the place of its own; the rest is kept."""
    for name, values in _identities(kept, fresh).items():
        before, now = values
        if before is not None and now is not None and before != now:
            raise UsageError(
                f"--only: {name} is {now}, but was {before} when the profile was measured",
                "measure everything again, or write this part to another file with -o",
            )
    inside = [path for part in parts for path in PATHS[part]]
    merged = copy.deepcopy(dict(kept))
    for path in inside:
        _drop(merged, path.split("."))
    kept_in = set(merged)  # sections of which something stays
    for path in inside:
        _copy(merged, fresh, path.split("."))
    sections = {path.split(".")[0] for path in inside}
    absent = {
        path: why for path, why in kept.get("absent", {}).items() if not _is_below(path, inside)
    } | {path: why for path, why in fresh.get("absent", {}).items() if _is_below(path, inside)}
    quality = dict(kept.get("quality", {}))
    for name, one in fresh.get("quality", {}).items():
        if name in sections:
            mixed = name in quality and name in kept_in
            quality[name] = _lesser(quality[name], one) if mixed else one
    provenance = _both(kept.get("provenance"), fresh["provenance"])
    tables = {
        "host": _host(kept.get("host", {}), fresh.get("host", {}), provenance["measurements"]),
        "topology": fresh["topology"],
        "absent": absent,
        "quality": quality,
        "provenance": provenance,
    }
    return merged | {name: table for name, table in tables.items() if table}


_OF_ALL = ("launches", "jobs", "converged", "noisy", "why")
"""What the quality of a section says of all that was measured of it."""


def _lesser(kept: Mapping[str, Any], fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Quality of a section of which a part was measured anew: no better than that of either.

    The number of jobs is left out: those of the old measurement that were replaced are not known.
    What only one of them tells, such as the fit of a quantity, is taken over, the later first.
    """
    merged: dict[str, Any] = {
        key: min(one[key] for one in (kept, fresh) if key in one)
        for key in ("launches", "converged")
        if key in kept or key in fresh
    }
    told = {key: value for key, value in {**kept, **fresh}.items() if key not in _OF_ALL}
    merged |= told
    merged["noisy"] = bool(kept.get("noisy") or fresh.get("noisy"))
    why = [reason for one in (kept, fresh) for reason in _reasons(one)]
    return merged | ({"why": list(dict.fromkeys(why))} if why else {})


def _reasons(quality: Mapping[str, Any]) -> list[str]:
    why = quality.get("why") or []
    return [why] if isinstance(why, str) else list(why)


def _identities(
    kept: Mapping[str, Any], fresh: Mapping[str, Any]
) -> dict[str, tuple[object, object]]:
    """What has to be the same in both profiles; None where one does not tell."""
    hosts = kept.get("host", {}), fresh.get("host", {})
    named = {"processor": "cpu", "MPI": "mpi", "OpenMP": "openmp", "compiler": "compiler"}
    found = {name: (hosts[0].get(key), hosts[1].get(key)) for name, key in named.items()}
    before, now = (table["topology"]["cores_per_node"] for table in (kept, fresh))
    return found | {"number of cores": (before, now)}


def _host(
    kept: Mapping[str, Any], fresh: Mapping[str, Any], measurements: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Facts of the later measurement; the first start and the highest load of all."""
    both = {**kept, **fresh}
    starts = [one["started"] for one in measurements if "started" in one]
    if starts:
        both["measured"] = min(starts)
    loads = [host["load"] for host in (kept, fresh) if "load" in host]
    if loads:
        both["load"] = max(loads)
    return both


def _both(kept: object, fresh: Mapping[str, Any]) -> dict[str, Any]:
    """Provenance of the later measurement, with the list of all of which something is left."""
    before = kept.get("measurements", []) if isinstance(kept, Mapping) else []
    left: list[Mapping[str, Any]] = []
    later: set[str] = set()
    for one in reversed([*before, *fresh.get("measurements", [])]):
        parts = set(one.get("parts", ()))
        if not parts or parts - later:  # samples without a plan do not say what they are of
            left.insert(0, one)
        later |= parts
    return {**fresh, "measurements": left}


def _copy(target: Document, source: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Take over an entry of a tree, if it is there."""
    first, *rest = keys
    if first not in source:
        return
    if not rest:
        target[first] = copy.deepcopy(source[first])
    elif _has(source, ".".join(keys)):
        _copy(target.setdefault(first, {}), source[first], rest)


def _drop(table: Document, keys: Sequence[str]) -> None:
    """Remove an entry of a tree, and the tables that are empty then."""
    first, *rest = keys
    if first not in table:
        return
    if rest:
        _drop(table[first], rest)
    if not rest or not table[first]:
        del table[first]


def _is_below(path: str, above: Iterable[str]) -> bool:
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in above)
