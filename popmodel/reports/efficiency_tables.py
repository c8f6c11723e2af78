"""Efficiencies of measured runs: what to work on, the trees, where the time is lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from popmodel.base.units import count, format_bandwidth, format_size, format_time, plural
from popmodel.efficiency.evidence import site_name
from popmodel.efficiency.hierarchy import load_families
from popmodel.efficiency.scaling import SCALING, STRANGER
from popmodel.efficiency.verdict import verdict
from popmodel.reports.blocks import (
    SCREEN,
    Brief,
    FitBlock,
    Listing,
    NoteBlock,
    Role,
    Section,
    TableBlock,
    TableCell,
    TableRow,
    heads,
    height,
    lines_of,
    notes,
    texts,
    titled,
)
from popmodel.reports.figures import (
    describe_team,
    efficiency,
    lifted,
    percent,
    run_names,
    tree_rows,
)
from popmodel.reports.notes import (
    Reasons,
    joint_caveats,
    joint_notes,
    joint_warnings,
    verdict_section,
    warned,
)
from popmodel.reports.views import Document, Views

if TYPE_CHECKING:
    from popmodel.efficiency.family import Family, FamilyLine

_OUTSIDE_MPI = {"outside_mpi_mean", "outside_mpi_max"}  # aggregates that have two readings
_COMPARING = ("global_efficiency", "device_computation_scaling")  # with a reference run
_IN_LINE = "metrics"  # all tables of the runs stand in line

Run = Mapping[str, Any]


def blocks(document: Document) -> list[Section]:
    """What to work on, the runs side by side with one tree per family, where time is lost."""
    return [(Brief(tuple(_whole(document)), tuple(_brief(document))),)]


def _whole(document: Document) -> list[Section]:
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    several = len(runs) > 1
    reasons = Reasons()
    families = _families(runs)
    sections = _first(document, names, reasons)
    columns = heads(names if several else ["%"])
    if own := _own_families(runs):
        sections.append(_own_table(runs, own, columns, reasons))
        if len(families) == len(own):  # others than these were not asked for
            families, runs = [], [_of_own_family(run) for run in runs]
    for family in families:
        sections += [(tree,) for tree in _trees(family, runs, columns, reasons)]
        sections[-1] += (*_legend(family), *_moved(family, runs, names))
    if several or not families:
        rows = _scaling_rows(runs, reasons)
        scaling = TableBlock(columns, rows, first="Scaling, ratios", group=_IN_LINE)
        compared = [document["scaling"]["why"], *document["scaling"]["notes"]]
        sections.append((scaling, *notes(compared, Role.REMARK)))
    last = _last({**document, "runs": runs}, names)
    return [*sections, reasons.section(), *last, _other_families(runs)]


def beside_trees(document: Document) -> list[Section]:
    """What `blocks` has beside verdict and efficiencies, for where these are shown already.

    Of runs of different kinds the table in which each has the rows of its own family as well.
    """
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    reasons = Reasons()
    _, *first = _first(document, names, reasons)  # not the verdict
    own = (
        [_own_table(runs, families, heads(names), reasons)]
        if (families := _own_families(runs))
        else []
    )
    return [*first, *own, reasons.section(), *_last(document, names)]


def _first(document: Document, names: Sequence[str], reasons: Reasons) -> list[Section]:
    """What to work on, caveats, and the size of each run."""
    runs = document["runs"]
    sizes = TableBlock(heads(names), _sizes(runs, reasons), group=_IN_LINE, is_key=True)
    return [
        verdict_section(verdict([document])),
        notes(joint_caveats(runs, names)),
        (sizes, *_reading(runs)),
    ]


def _last(document: Document, names: Sequence[str]) -> list[Section]:
    """Regions and calls, notes and warnings."""
    runs = document["runs"]
    return [
        *_places(runs, names),
        titled("notes", joint_notes(runs, names)),
        warned(joint_warnings(runs, names)),
    ]


_USUAL = ("MPI_Init", "the whole run")  # what is analysed where nothing is asked for
_FEW = 2  # families that somebody chose one by one
_ROOM, _ROOM_OF_SERIES = 14, 11  # lines of trees
_ONE = 1.0005  # an efficiency above it is printed as more than 100.0 %
_OF_CROWDS = ("more threads than CPUs", "threads waited for a CPU")


def _brief(document: Document) -> list[Section]:
    """What to work on, then one table: size and tree of the runs, and how they scale."""
    runs = document["runs"]
    names = run_names([run["trace"] for run in runs])
    advice = document["advice"]
    doubted, several = bool(advice["doubts"]), len(runs) > 1
    said = (  # below, and by the verdict; the doubt is about crowds wherever there is one
        *("analysed ", "the analysed part "),
        *(_OF_CROWDS if doubted and not several else ()),
    )
    caveats = [
        one
        for one in joint_caveats(runs, names)
        if not (one.startswith(said) or STRANGER in one or f"Doubtful: {one}." in advice["doubts"])
    ]
    sections = [
        verdict_section(verdict([document]), brief=2 - several),
        notes(caveats[: max(2 - doubted - several, 0)]),
    ]
    if not several:
        causes = [cause["family"] for cause in advice["causes"]]
        return [*sections, *_of_one_run(runs[0], names[0], causes[:1])]
    chosen = dict.fromkeys([_few(document, names, number) for number in (len(runs), 4, 3, 2)])
    lines = SCREEN - 3 - height(sections)
    forms = tuple(tuple(_side_by_side(document, names, places, lines)) for places in chosen)
    return [*sections, (FitBlock(forms),)]


def _of_one_run(run: Run, name: str, advised: Sequence[str]) -> list[Section]:
    """Its size in a line, and its trees: as asked for, of many the one that is advised by first."""
    facts = [
        f"{name}: {count(run['processes'])} x {describe_team(run['threads'])}",
        f"runtime {format_time(run['runtime'])}",
    ]
    if run["ideal_runtime"] is not None:
        facts.append(f"ideal network {format_time(run['ideal_runtime'])}")
    if share := _analysed(run):
        why = run["window"]["why"]
        facts.append(f"{share} % of trace" + ("" if why.startswith(_USUAL) else f" ({why})"))
    reasons = Reasons()
    families = [load_families()[id] for id in run["metrics"] if id != SCALING]
    families.sort(key=lambda family: family.requires != "devices")
    if len(families) > _FEW:
        families.sort(key=lambda family: family.id not in advised)
    sections: list[Section] = [(NoteBlock(", ".join(facts)), *_reading([run]))]
    trees = [next(_trees(family, [run], heads(["%"]), reasons, views=False)) for family in families]
    if sum(len(tree.rows) + 2 for tree in trees) <= _ROOM:
        shown = zip(families, trees, strict=True)
        all_trees = [
            (tree, *_above(family, run), *_moved(family, [run], [name])) for family, tree in shown
        ]
        return [*sections, *all_trees, reasons.section()]
    rest = ", ".join(family.id for family in families[1:])
    more = (NoteBlock(f"also, with --all: {rest}"),) if rest else ()
    reasons = Reasons()  # of this tree alone
    tree = next(_trees(families[0], [run], heads(["%"]), reasons, views=False))
    first = (tree, *_above(families[0], run), *_moved(families[0], [run], [name]))
    return [*sections, first, reasons.section(), more]


def _few(document: Document, names: Sequence[str], number: int) -> tuple[int, ...]:
    """Runs to show where there is no room for all: reference, advised, first, last, others."""
    runs, causes = document["runs"], document["advice"]["causes"]
    reference = [run["trace"] for run in runs].index(document["scaling"]["reference"])
    advised_on = [names.index(causes[0]["run"])] if causes else []
    order = dict.fromkeys([reference, *advised_on, len(runs) - 1, *range(len(runs))])
    return tuple(sorted(list(order)[:number]))


def _side_by_side(
    document: Document, names: Sequence[str], places: Sequence[int], lines: int
) -> Iterator[Section]:
    """Some runs as columns: their sizes, the tree, how they scale."""
    every = document["runs"]
    runs = [every[place] for place in places]
    reasons = Reasons()
    family = next(iter(_families(runs)), None)
    columns = heads(names[place] for place in places)
    ratios = [run["metrics"][SCALING] for run in runs]
    compared = sum("speedup" in one for one in ratios) > 1
    rows = list(_sizes(runs, Reasons()))[:2]
    if compared:
        speedups = (f"{one['speedup']:.2f} x" if "speedup" in one else "-" for one in ratios)
        rows.append(TableRow("speed-up", texts(speedups)))
    shares = [_analysed(run) for run in runs]
    if any(shares):
        whole = ("100" if run["window"] else "-" for run in runs)
        cells = (share or other for share, other in zip(shares, whole, strict=True))
        rows.append(TableRow("analysed, % of trace", texts(cells)))
    told = document["scaling"]
    reference = names[[run["trace"] for run in every].index(told["reference"])]
    words = [f"{told['mode']} scaling against {reference}"] if compared else []
    strangers = [
        f"{names[place]}: {caveat}"
        for run, place in zip(runs, places, strict=True)
        for caveat in run["caveats"]
        if caveat.startswith(STRANGER)
    ]
    brief = [f"{caveat.partition(', so ')[0]} (--all)" for caveat in strangers]
    if len(brief) > 2:
        brief[1:] = [f"{plural(len(brief) - 1, 'more run')} as well (--all)"]
    words += [*strangers[:1], *brief[1:]]
    if left_out := len(names) - len(places):
        words = [f"{'; '.join([*words[:1], plural(left_out, 'more run')])}: --all", *words[1:]]
    parts = {run["window"]["why"] for run in runs if run["window"]}
    words += [f"analysed: {one}" for one in parts if len(parts) == 1 and not one.startswith(_USUAL)]
    words += told["notes"][:1]
    reported = [names[place] for place in places if every[place].get("family") == _REPORTED]
    if 0 < len(reported) < len(places):
        words.append(f"{', '.join(reported)}: as TALP writes them, nothing replayed")
    if own := _own_families(runs):
        shorter = ["; ".join([*(text for text in words if text not in strangers), *brief[:1]])]
        for depth, said, above in (
            *((deep, words, rows) for deep in (4, 3, 2, 1)),
            (1, shorter, rows),
            (1, shorter, rows[:2]),
        ):
            reasons = Reasons()
            tree = _own_rows(runs, own, reasons, depth)
            table = TableBlock(columns, (*above, *tree), first="Efficiencies, %", is_key=True)
            form = (table, *_reading(runs), *notes(said, Role.REMARK), *reasons.section())
            if height([form]) <= lines:
                break
        yield form
        return
    room = _ROOM_OF_SERIES - (2 if told["notes"] else lines_of(words, 1) - 1 if strangers else 0)
    tree = _tree_beside_scaling(runs, family, room, reasons, compared=compared)
    first = f"{family.title}, %" if family else "Scaling, %"
    table = TableBlock(columns, (*rows, *tree), first=first, is_key=True)
    yield (table, *_reading(runs), *notes(words, Role.REMARK), *reasons.section())


def _tree_beside_scaling(
    runs: Sequence[Run], family: Family | None, room: int, reasons: Reasons, *, compared: bool
) -> tuple[TableRow, ...]:
    """The tree of a family and how the runs scale, without the deepest where there is no room."""
    ratios = [run["metrics"][SCALING] for run in runs]
    tree: tuple[TableRow, ...] = ()
    if family is not None:
        tree = next(_trees(family, runs, (), reasons, views=False)).rows
    of_threads = family is None or not family.requires
    scaling = tuple(_scaling_tree(ratios)) if compared and of_threads else ()
    if scaling and scaling[0].depth:  # no global efficiency
        scaling = lifted(scaling)
    elif scaling and tree:
        if tree[0].label != scaling[0].label:
            tree = (scaling[0], *(replace(row, depth=row.depth + 1) for row in tree))
        scaling = scaling[1:]
    deepest = max((row.depth for row in tree), default=0)
    if len(tree) + len(scaling) > room:
        scaling = tuple(row for row in scaling if row.depth < 2)
    if len(tree) + len(scaling) > room:
        tree = tuple(row for row in tree if row.depth < deepest)
    return (*tree, *scaling)


_DEEPEST = 9  # of any family
_REPORTED = "talp"  # suits no trace: the efficiencies are those of a report
_OWN = "each run has the rows of its own family; - where a row is of another one"


def _own_families(runs: Sequence[Run]) -> list[str]:
    """The families that suit the runs, if these differ and are all there; else none."""
    own = {run.get("family", "") for run in runs}
    families = [family.id for family in _families(runs) if family.id in own]
    return families if 1 < len(own) == len(families) else []


def _own_table(
    runs: Sequence[Run],
    families: Sequence[str],
    columns: tuple[tuple[str], ...],
    reasons: Reasons,
) -> Section:
    """All rows of runs with families of their own."""
    rows = _own_rows(runs, families, reasons, _DEEPEST)
    table = TableBlock(columns, rows, title="Efficiencies, %", group=_IN_LINE)
    return (table, *notes([_OWN], Role.REMARK))


def _of_own_family(run: Run) -> Run:
    """A run without the notes of other families than its own."""
    notes_of = run["family_notes"]
    return {**run, "family_notes": {id: notes_of[id] for id in notes_of if id == run["family"]}}


def _own_rows(
    runs: Sequence[Run], families: Sequence[str], reasons: Reasons, deepest: int
) -> tuple[TableRow, ...]:
    """Common rows of runs with families of their own, then rows of each family to a depth."""
    ratios = [run["metrics"][SCALING] for run in runs]
    compared = sum("speedup" in one for one in ratios) > 1
    above = [row for row in _scaling_tree(ratios) if row.depth <= deepest]
    tops = [_cell(run, run["family"], _of_host(run["family"]), reasons) for run in runs]
    top = TableRow("Parallel efficiency", tuple(tops), int(compared))
    rows = [*above[:1], top, *above[1:]] if compared else [top]
    for family in (load_families()[id] for id in families):
        lines = [
            line
            for line in family.tree()[0].rows
            if line.metric not in ("global_efficiency", _of_host(family.id))
            and not (line.view or _has_no_value(runs, family.id, line.metric))
        ]
        least = min((line.depth for line in lines), default=0)
        rows.append(TableRow(family.title, texts("" for _ in runs)))
        for line in lines:
            depth = line.depth - least + 1
            known = any(line.metric in run["metrics"][family.id] for run in runs)
            if depth <= deepest and (known or deepest == _DEEPEST):
                cells = (
                    _cell(run, family.id, line.metric, reasons)
                    if run["family"] == family.id
                    else TableCell("-")
                    for run in runs
                )
                rows.append(TableRow(family.metrics[line.metric].name, tuple(cells), depth))
    return tuple(rows)


def _of_host(family: str) -> str:
    """The metric of a family that says how well the threads of a run are used."""
    known = load_families()[family]
    return "host_parallel_efficiency" if known.requires else known.top


def _scaling_tree(ratios: Sequence[Mapping[str, float]]) -> Iterator[TableRow]:
    """Global efficiency, and what it is made of beside parallel efficiency."""
    for metric, depth in _PARTS_OF_SCALING.items():
        if any(metric in one for one in ratios):
            cells = tuple(
                efficiency(one[metric]) if metric in one else TableCell("-") for one in ratios
            )
            yield TableRow(load_families()[SCALING].metrics[metric].name, cells, depth)


_PARTS_OF_SCALING = {
    "global_efficiency": 0,
    "computation_scaling": 1,
    "instruction_scaling": 2,
    "ipc_scaling": 2,
    "frequency_scaling": 2,
}
"""With their depths."""


def _analysed(run: Run) -> str:
    """The part of the trace that is analysed in per cent, where that is not all."""
    window = run["window"]
    if window is None:
        return ""
    left_out = sum(window["left_out"].values())
    share = percent(window["duration"] / (window["duration"] + left_out), 0) if left_out else "100"
    return "" if share == "100" else share


def _families(runs: Sequence[Run]) -> list[Family]:
    """The families of the runs in the order of the definition, scaling (drawn apart) left out.

    Those of devices, which only some runs have, come first.
    """
    families = [
        family
        for name, family in load_families().items()
        if name != SCALING and name in runs[0]["metrics"]
    ]
    return sorted(families, key=lambda family: family.requires != "devices")


def _sizes(runs: Sequence[Run], reasons: Reasons) -> tuple[TableRow, ...]:
    def ideal(run: Run) -> str:
        if run["ideal_runtime"] is not None:
            return format_time(run["ideal_runtime"])
        why = run["observables"]["absent"].get("ideal_runtime", "not replayed")
        return reasons.mark(why)

    teams = [f"{count(run['processes'])} x {describe_team(run['threads'])}" for run in runs]
    return (
        TableRow("processes x threads", texts(teams)),
        TableRow("runtime", texts(format_time(run["runtime"]) for run in runs)),
        TableRow("ideal runtime", texts(map(ideal, runs))),
    )


def _reading(runs: Sequence[Run]) -> Section:
    """What was taken for time outside MPI, if not the usual, and where that matters."""
    if runs[0]["outside_mpi"] == "everywhere":
        return ()
    families = [
        name
        for name, family in load_families().items()
        if any(
            not _OUTSIDE_MPI.isdisjoint(metric.formula.names) for metric in family.metrics.values()
        )
    ]
    text = "time outside MPI: all time outside MPI calls (not-in-mpi); affects"
    return (NoteBlock(f"{text} {', '.join(families)} only"),)


def _cell(run: Run, family: str, metric: str, reasons: Reasons) -> TableCell:
    value = run["metrics"][family].get(metric)
    if value is None:
        return TableCell(reasons.mark(run["absent"][family][metric]))
    return efficiency(value, ratio=family == SCALING)


def _trees(
    family: Family,
    runs: Sequence[Run],
    columns: tuple[tuple[str], ...],
    reasons: Reasons,
    *,
    views: bool = True,
) -> Iterator[TableBlock]:
    """Each tree of a family: its own, its second readings, and its views if they are wanted."""
    several = len(runs) > 1

    def cells(line: FamilyLine) -> list[TableCell] | None:
        if line.metric in _COMPARING and not several:
            return None
        lacking = line.metric != family.top and _has_no_value(runs, family.id, line.metric)
        if not views and (line.view or lacking):
            return None
        return [_cell(run, family.id, line.metric, reasons) for run in runs]

    for walk in family.tree():
        heading = walk.heading or family.title
        title = f"{heading}, %" if several else heading
        rows = lifted(tree_rows(family, walk.rows, cells))
        yield TableBlock(columns, rows, title=title, group=_IN_LINE)


def _has_no_value(runs: Sequence[Run], family: str, metric: str) -> bool:
    """Whether a metric is of MPI, which no run uses."""
    return not any(
        metric in run["metrics"][family] or run["observables"]["has_mpi"] for run in runs
    )


def _legend(family: Family) -> Section:
    if not any(metric.view_of for metric in family.metrics.values()):
        return ()
    text = "in parentheses: other views of the same loss; they overlap and do not add up"
    return (NoteBlock(text, Role.REMARK),)


def _above(family: Family, run: Run) -> Section:
    """Why a value of a family is above 100 %, where one is."""
    largest = max(run["metrics"][family.id].values(), default=0.0)
    told = run["family_notes"].get(family.id, [])
    return notes(told[-1:] if largest > _ONE else [], Role.REMARK)


def _moved(family: Family, runs: Sequence[Run], names: Sequence[str]) -> Section:
    """Bytes to and from files below the family of I/O, and the bandwidth that they come to."""
    lines = []
    for run, name in zip(runs, names, strict=True):
        if family.id == "io" and "io_bandwidth" in (told := run["observables"]):
            read, written = (format_size(sum(told[f"bytes_{way}"])) for way in ("read", "written"))
            rate = format_bandwidth(told["io_bandwidth"])
            text = f"{read} read, {written} written: {rate} over the longest I/O of a process"
            lines.append(text if len(runs) == 1 else f"{name}: {text}")
    return notes(lines, Role.REMARK)


def _scaling_rows(runs: Sequence[Run], reasons: Reasons) -> tuple[TableRow, ...]:
    family = load_families()[SCALING]
    shown = [line.metric for walk in family.tree() for line in walk.rows]
    return tuple(
        TableRow(
            family.metrics[metric].name,
            tuple(_cell(run, SCALING, metric, reasons) for run in runs),
        )
        for metric in dict.fromkeys(shown)
    )


def _has(run: Run, family: Family) -> bool:
    """Whether a run has what a family requires that only some have."""
    measured = {"flops": "vector_counts", "io_sum": "mpi_io", "devices": "in_device_calls"}
    return measured[family.requires] in run["observables"]


def _other_families(runs: Sequence[Run]) -> Section:
    others = [
        name
        for name, family in load_families().items()
        if name not in runs[0]["metrics"]
        and (not family.requires or any(_has(run, family) for run in runs))
    ]
    return (NoteBlock(f"other families: {', '.join(others)} (--family)"),) if others else ()


SHOWN = 10
"""Rows of a table of regions or calls."""
_LEAST = 1e-3  # share of the core time below which a call is not shown
_REGION_HEADS = ("times", "PE %", "LB %", "lost")
_SITE_LEGEND = "time %: of core time; wait %: of that spent waiting, the rest is transfer"


def _places(runs: Sequence[Run], names: Sequence[str]) -> Iterator[Section]:
    """The regions and the calls of runs that cost most."""
    for run, name in zip(runs, names, strict=True):
        of = f" of {name}" if len(runs) > 1 else ""
        yield _regions(f"parallel regions{of}", run["observables"]["regions"])
        yield _sites(f"MPI calls{of}", run["call_sites"])


def _sites(title: str, sites: Sequence[Run]) -> Section:
    """The calls of MPI that take most time."""
    if not sites:
        return ()
    costly = [site for site in sites if site["share"] >= _LEAST]
    if not costly:
        least = f"{100 * _LEAST:g} % of the core time each (--format json lists all)"
        return (NoteBlock(f"{title}: less than {least}"),)
    rows = [
        TableRow(
            site_name(site["call"], site["function"], site["place"]),
            (
                TableCell(count(site["count"])),
                TableCell(percent(site["share"]), 1 - site["share"]),
                TableCell(_waiting(site)),
            ),
        )
        for site in sorted(costly, key=lambda site: -site["time"])[:SHOWN]
    ]
    more = _more(len(sites) - len(rows))
    table = Listing(title, ("times", "time %", "wait %"), tuple(rows))
    return (table, *more, NoteBlock(_SITE_LEGEND, Role.REMARK))


def _regions(title: str, regions: Sequence[Run]) -> Section:
    """The regions that lose most thread time."""
    if not regions:
        return ()
    # Waiting for locks is worth a column from 1 % of what any region loses.
    locks = any(region["locks"] >= 0.01 * region["cost"] > 0 for region in regions)
    rows = [
        TableRow(
            region["name"],
            (
                TableCell(count(region["count"])),
                TableCell(percent(region["parallel_efficiency"]), region["parallel_efficiency"]),
                TableCell(percent(region["load_balance"]), region["load_balance"]),
                TableCell(format_time(region["cost"])),
                *([TableCell(format_time(region["locks"]))] if locks else []),
            ),
        )
        for region in sorted(regions, key=lambda region: -region["cost"])[:SHOWN]
    ]
    columns = (*_REGION_HEADS, *(["to locks"] if locks else []))
    return (Listing(title, columns, tuple(rows)), *_more(len(regions) - len(rows)))


def _waiting(site: Run) -> str:
    if site["waiting"] is None or not site["time"]:
        return "-"
    return percent(min(site["waiting"] / site["time"], 1.0))


def _more(left_out: int) -> Section:
    if not left_out:
        return ()
    return (NoteBlock(f"and {count(left_out)} more (--format json lists all)", Role.REMARK),)


VIEWS = Views(blocks, ("runs[]",), picture="efficiency_tree")
