"""Sections of a page that are tables and notes: the blocks that a terminal shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from popmodel.efficiency.scaling import SCALING, STRANGER
from popmodel.reports import blocks
from popmodel.reports.compared_values import comparison_blocks
from popmodel.reports.efficiency_tables import VIEWS as METRICS
from popmodel.reports.efficiency_tables import beside_trees
from popmodel.reports.html.contents import Contents, Section, alone, verb_of
from popmodel.reports.registry import views_of
from popmodel.reports.renderers.html import html
from popmodel.reports.views import Document

TITLES: Mapping[str, tuple[str, str]] = {
    "metrics": ("places", "Where time is lost"),
    "whatif": ("dependence", "Regions, network and critical path"),
    "inspect": ("inspect", "Iterations, phases and messages"),
    "predict": ("predict", "Prediction"),
    "splits": ("splits", "Splits into processes and threads"),
    "signature": ("signature", "Signature"),
    "validate": ("validate", "Predicted and measured"),
    "machine": ("machine", "Machine profile"),
    "docs": ("docs", "Documentation"),
    "": ("others", "Further results"),
}
"""Kinds of documents, in the order on the page: id and title of the section; last of all others."""


def sections(contents: Contents) -> Iterator[Section]:
    """A section for each kind, one that compares measured runs, and first what changed."""
    if compared := [one for one in contents.of("metrics") if "history" in one]:
        from popmodel.reports.history_tables import history_sections

        changes = [{"body": html(history_sections(one), heading=3)} for one in compared]
        yield _section("history", "Change against earlier runs", changes)
    sized = [one for one in contents.documents if one.get("sizes")][-1:]  # one set of inputs
    for kind, (id, title) in TITLES.items():
        shown = [
            {"title": alone(one).title, "body": html(_sections(one), heading=3)}
            for one in contents.documents
            if (verb_of(one) if verb_of(one) in TITLES else "") == kind
        ]
        yield from (sizes_section(one) for one in sized if verb_of(one) == kind)
        if shown:
            yield _section(id, title, shown)
        if kind == "whatif":
            yield from _comparison(contents)


def sizes_section(document: Document) -> Section:
    """Inputs for the first parameter of a program, for processes and for threads."""
    sizes = document["sizes"]
    name = sizes["parameter"]
    settings = document["application"]["settings"]
    splits = {(row["processes"], row["threads"]) for row in sizes["rows"]}
    split = (
        document["best"][0] if "best" in document else (document["processes"], document["threads"])
    )
    data = {**sizes, "value": settings.get(name, 0.0), "split": split}
    context = {
        "name": name,
        "values": [f"{end(row['value'] for row in sizes['rows']):g}" for end in (min, max)],
        "processes": sorted({processes for processes, _ in splits}),
        "threads": sorted({threads for _, threads in splits}),
    }
    return Section("sizes", "Other sizes", context, data)


def _comparison(contents: Contents) -> Iterator[Section]:
    documents = [
        {**one, "runs": [run for run in one["runs"] if _is_comparable(run)]}
        for one in contents.of("metrics")
    ]
    if found := comparison_blocks([one for one in documents if one["runs"]]):
        yield _section("comparison", "Comparison", [{"body": html(found, heading=3)}])


def _is_comparable(run: Document) -> bool:
    """Whether a run is of the program of the others, and more than a report of TALP, of sums."""
    unscaled: str = run["absent"].get(SCALING, {}).get("speedup", "")
    return "useful" in run["observables"] and not unscaled.startswith(STRANGER)


def _section(id: str, title: str, shown: Sequence[Mapping[str, str]]) -> Section:
    return Section(id, title, {"shown": shown}, template="results")


def _sections(document: Document) -> Sequence[blocks.Section]:
    """A document as the terminal shows it, without the trees that another section shows."""
    views = views_of(document)
    whole = views is METRICS or "history" in document
    return beside_trees(document) if whole else views.blocks(document)
