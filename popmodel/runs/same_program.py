"""Whether two measured runs are of one program: by the places that hold their computing.

Places are calls of MPI and parallel regions, known by their functions: lines and addresses differ
from build to build. Only what both runs tell is compared: a trace without callers names no
functions of calls, a program without OpenMP has no regions, and a run on one process need not
communicate as several do. Calls that any program makes tell nothing without a function.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from popmodel.simulator.mpi_calls import ANYWHERE

if TYPE_CHECKING:
    import pandas

    from popmodel.efficiency.measure import MeasuredRun
    from popmodel.traces import Trace

_COMMON = 0.5
"""Share of the computing at shared places, below which runs are of different programs."""
_SHOWN = 3
_UNNAMED = r"\+0x[0-9a-fA-F]+$|^0x[0-9a-fA-F]+$|^(?:function|region) \d+$"
_TELLS_NOTHING = re.compile(
    r"MPI_(?:Test|Iprobe|Probe|Mprobe|Improbe|Init|Finalize|Comm|Cart|Group|Type|Wtime)"
)
_LAST_NAME = re.compile(r"::|_mp_|_MOD_")


class ProgramDifference(NamedTuple):
    """By what two runs are of different programs."""

    text: str  # With the places of either one
    # Whether functions tell it, or kinds of calls of which none matters to both.
    sure: bool


def difference(first: Trace, other: Trace) -> ProgramDifference | None:
    """Say by what two traced runs are of different programs; None if they may be of one.

    They are where the places that they share hold less than half of the computing of both: a run on
    one process makes no halo exchange, a larger one does more. Where no functions can be compared
    there are kinds of calls, which are few: what is computed before each of them, and how often it
    is called, have to differ in more than half; they do where one of two runs on several processes
    has none but those that any program makes.
    """
    wholes = [trace.whole or trace for trace in (first, other)]
    regions, named, kinds = (
        [table.loc[table["of"] == of, ["computing", "executions"]] for table in tables]
        for tables in [[trace.derived("telling_places", _telling) for trace in wholes]]
        for of in (_REGIONS, _NAMED, _KINDS)
    )
    compared = [
        pair for pair in (regions, named) if all(run["computing"].sum() > 0 for run in pair)
    ]
    if compared:
        import pandas

        runs = [pandas.concat(tables)["computing"] for tables in zip(*compared, strict=True)]
        shared = runs[0].index.intersection(runs[1].index)
        share = least = max(run[shared].sum() / run.sum() for run in runs)
        told_by_both = True
        mine, theirs = (run.drop(shared) for run in runs)
    elif any(len(run) for run in kinds) and all(
        trace.processes > 1 and len(trace.calls()) for trace in wholes
    ):
        told_by_both = all(len(run) for run in kinds)
        one, two = (run / run.sum() if len(run) else run for run in kinds)
        one, two = one.align(two, fill_value=0.0)
        share = float(one.where(one < two, two).sum().max())
        shared = (one["computing"] > 0) & (two["computing"] > 0)
        least = max(run["computing"][shared].sum() for run in (one, two))
        mine, theirs = (one - two)["computing"], (two - one)["computing"]
    else:
        return None
    if share >= _COMMON:
        return None
    text = (
        f"the sites that they share hold {100 * share:.2g} % of the computing ({_listed(theirs)} "
        f"instead of {_listed(mine)})"
    )
    return ProgramDifference(text, bool(least < _COMMON) and told_by_both)


_REGIONS, _NAMED, _KINDS = "regions", "named calls", "kinds of calls"


def _telling(trace: Trace) -> pandas.DataFrame:
    """Computing, s, and executions of the places by which a program is known.

    Those of regions and of calls by kind and function, where that is named, and of kinds of calls.
    """
    import pandas

    # not needed, and so not loaded, where names leave no doubt
    from popmodel.runs.sites import BEFORE, END, OUTSIDE, REGION, sites_of

    sites = sites_of(trace).astype({"kind": str, "function": str})
    sites = sites[~sites["kind"].isin([END, OUTSIDE])].replace({"kind": {BEFORE: REGION}})
    is_region = sites["kind"] == REGION
    is_named = sites["function"].ne("") & ~sites["function"].str.contains(_UNNAMED)
    is_kind = ~is_region & ~sites["kind"].isin(ANYWHERE) & ~sites["kind"].str.match(_TELLS_NOTHING)
    parts = {
        _REGIONS: sites[is_region & is_named],
        _NAMED: sites[~is_region & is_named],
        _KINDS: sites[is_kind].assign(function=""),
    }
    return pandas.concat(
        part.groupby(["kind", "function"])[["computing", "executions"]].sum().assign(of=of)
        for of, part in parts.items()
    )


def _listed(computing: pandas.Series) -> str:
    places = computing[computing > 0].sort_values(ascending=False).index
    shown = [f"{kind} in {function}" if function else kind for kind, function in places[:_SHOWN]]
    more = len(places) - len(shown)
    return ", ".join(shown or ["none"]) + (f" and {more} more" if more > 0 else "")


def may_differ(first: MeasuredRun, other: MeasuredRun) -> bool:
    """Whether two runs need a look by `difference`, which takes one more pass over their traces.

    They do where less than half of the functions of the run that has fewer are in the other one;
    without functions, where less than half of their calls are of the same kinds.
    """
    told = program_names(first), program_names(other)
    unnamed = not all(functions for functions, _ in told)
    one_lacks_calls = bool(told[0][1]) != bool(told[1][1]) and first.call_sites and other.call_sites
    return names_differ(*told) or bool(unnamed and one_lacks_calls)


def names_differ(
    first: tuple[Collection[str], Mapping[str, int]],
    other: tuple[Collection[str], Mapping[str, int]],
) -> bool:
    """As `may_differ`, of what `program_names` gives."""
    (functions, calls), (other_functions, other_calls) = first, other
    if fewer := min(len(functions), len(other_functions)):
        return len(set(functions) & set(other_functions)) < _COMMON * fewer
    total, other_total = sum(calls.values()), sum(other_calls.values())
    if not total or not other_total:
        return False
    shares = (
        min(number / total, other_calls.get(kind, 0) / other_total)
        for kind, number in calls.items()
    )
    return sum(shares) < _COMMON


def program_names(run: MeasuredRun) -> tuple[set[str], Counter[str]]:
    """Functions, as other compilers name them as well, and how often each kind of call is made."""
    regions = run.observables.regions
    names = [*(site.function for site in run.call_sites), *(region.name for region in regions)]
    plain = (
        _LAST_NAME.split(re.sub(r"[ (<].*", "", name))[-1].strip("_").lower() for name in names
    )
    calls: Counter[str] = Counter()
    for site in run.call_sites:
        if site.call not in ANYWHERE and not _TELLS_NOTHING.match(site.call):
            calls[site.call] += site.count
    return set(plain) - {"", "main"}, calls
