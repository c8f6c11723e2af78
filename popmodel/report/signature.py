"""A checked signature: its mistakes and remarks, or what it says in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from popmodel.report.export import Record, markdown_table
from popmodel.report.render import Document, Views
from popmodel.report.terminal import Style, clean, pairs, paragraph
from popmodel.units import count, format_size, format_time, plural

Entry: TypeAlias = Mapping[str, Any]

CHANGING = "work and messages that change"


def screen(document: Document, style: Style) -> list[str]:
    """The check on a terminal: mistakes if there are any, else what the signature says."""
    lines = pairs(_facts(document), style)
    for finding in _findings(document):
        lines += ["", *_finding(document["path"], finding, style)]
    explained = document["explained"]
    if explained is None:
        return lines
    for title, entries in _sections(explained):
        lines += ["", title]
        for entry in entries:
            lines += paragraph(entry, style, first=" ", rest="   ")
    lines += ["", "program"]
    for depth, text in _tree(explained["program"]):
        blank = " " * (depth + 1)
        lines += paragraph(text, style, first=blank, rest=blank + "  ")
    lines += ["", CHANGING]
    for entry in _dependence(explained):
        lines += paragraph(entry, style, first=" ", rest="   ")
    return lines


def records(document: Document) -> list[Record]:
    """One line per mistake, remark, name and formula of the program."""
    head = {"application": document["application"]}
    rows: list[Record] = [
        {**head, "section": kind, "name": "", "key": "", **_bare(finding)}
        for kind, findings in (("mistake", document["mistakes"]), ("remark", document["remarks"]))
        for finding in findings
    ]
    explained = document["explained"] or {"params": [], "let": [], "program": []}
    for section in ("params", "let"):
        rows += [
            {
                **head,
                "section": section,
                "name": entry["name"],
                **{key: entry.get(key) for key in ("formula", "value", "unit")},
            }
            for entry in explained[section]
        ]
    rows += [
        {**head, "section": kind, "name": name, "key": key, **formula}
        for kind, name, key, formula in _formulas(explained["program"])
    ]
    return rows


def markdown(document: Document) -> list[str]:
    """The same as the screen, as Markdown."""
    facts = _facts(document)
    lines = markdown_table(list(facts[0]), facts[1:])
    for finding in _findings(document):
        hint = f" ({finding['hint']})" if finding["hint"] else ""
        lines += ["", f"- {_place(document['path'], finding)} {finding['message']}{hint}"]
    explained = document["explained"]
    if explained is not None:
        for title, entries in _sections(explained):
            lines += ["", f"**{title}**", "", *(f"- {entry}" for entry in entries)]
        lines += ["", "**program**", ""]
        lines += [f"{'  ' * depth}- {text}" for depth, text in _tree(explained["program"])]
        lines += ["", f"**{CHANGING}**", "", *(f"- {text}" for text in _dependence(explained))]
    return [clean(line) for line in lines]


def _facts(document: Document) -> list[tuple[str, str]]:
    mistakes, remarks = (len(document[key]) for key in ("mistakes", "remarks"))
    verdict = plural(mistakes, "mistake") if mistakes else "no mistakes"
    if remarks:
        verdict += f", {plural(remarks, 'remark')}"
    facts = [
        ("signature", document["application"] or "cannot be read"),
        ("file", document["path"]),
        ("check", verdict),
    ]
    explained = document["explained"]
    if explained and explained["description"]:
        facts.insert(1, ("about", explained["description"]))
    return facts


# -- mistakes and remarks


def _findings(document: Document) -> list[Entry]:
    """Mistakes, then remarks, which are told apart by a word as compilers do it."""
    remarks = [{**one, "message": f"remark: {one['message']}"} for one in document["remarks"]]
    return [*document["mistakes"], *remarks]


def _finding(path: str, finding: Entry, style: Style) -> list[str]:
    """A finding in the form of compilers, that editors jump to."""
    place = clean(_place(path, finding))
    if len(place) > style.width // 2:
        lines = [place, *paragraph(finding["message"], style, first="  ")]
    else:
        lines = paragraph(finding["message"], style, first=f"{place} ", rest="  ")
    if finding["hint"]:
        lines += paragraph(f"hint: {finding['hint']}", style, first="  ", rest="  ")
    return lines


def _place(path: str, finding: Entry) -> str:
    numbers = [finding["line"], finding["column"]]
    return ":".join([path, *(str(number) for number in numbers if number is not None)]) + ":"


def _bare(finding: Entry) -> Record:
    return {key: finding[key] for key in ("line", "column", "message", "hint")}


# -- the parts before the program


def _sections(explained: Entry) -> Iterator[tuple[str, list[str]]]:
    """Titles and lines of what stands before the program; none of what is not there."""
    for title, entries in (
        ("parameters", [_parameter(entry) for entry in explained["params"]]),
        ("derived", [f"{entry['name']} = {_equation(entry)}" for entry in explained["let"]]),
        ("decomposition", _decomposition(explained["decomposition"])),
        ("limits", _limits(explained["limits"])),
        ("imbalance", _imbalance(explained["imbalance"])),
    ):
        if entries:
            yield title, entries


def _parameter(entry: Entry) -> str:
    text = f"{entry['name']} = {_value(entry)}"
    if "low" in entry:
        ends = (_value({**entry, "value": entry[end]}) for end in ("low", "high"))
        text += f", 90 %: {' .. '.join(ends)}"
    return text if entry["origin"] == "user" else f"{text} (from {entry['origin']})"


def _decomposition(grid: Entry | None) -> list[str]:
    if grid is None:
        return []
    lines = []
    if grid["global"] is not None:
        lines.append(f"cells: {_product(grid['global'])}")
    if grid["grid"] == "auto":
        lines.append("grid: of P processes, with the least surface between them")
    else:
        lines.append(f"grid: {_product(grid['grid'])} processes")
    wraps = grid["periodic"]
    if all(wraps) or not any(wraps):
        lines.append(f"neighbours wrap around: {'yes' if all(wraps) else 'no'}")
    else:
        around = ", ".join(str(dim) for dim, wrap in enumerate(wraps) if wrap)
        lines.append(f"neighbours wrap around: in dimension {around}")
    if grid["global"] is not None:
        local = ", ".join(f"n{dim}" for dim in range(len(wraps)))
        lines.append(f"a process has {local} of the cells along the dimensions")
    return lines


def _product(formulas: Sequence[Entry]) -> str:
    text = " x ".join(str(formula["formula"]) for formula in formulas)
    values = [_value({**formula, "unit": "1"}) for formula in formulas if formula["value"]]
    known = len(values) == len(formulas) and text != " x ".join(values)
    return f"{text} = {' x '.join(values)}" if known else text


def _limits(limits: Entry) -> list[str]:
    lines = [f"requires {condition}" for condition in limits["require"]]
    if limits["excludes"]:
        numbers = ", ".join(count(number) for number in limits["possible"])
        lines.append(f"possible P: {numbers}, ...")
    if limits["memory_per_rank"] is not None:
        lines.append(f"memory of a process: {_quantity(limits['memory_per_rank'])}")
    return lines


_IMBALANCE = {
    "persistent_cv": "work of processes differs by {0} (cv), the same in every step",
    "transient_cv": "work of processes differs by {0} (cv), new in every step",
    "reference_processes": "these are values for {0} processes",
    "growth_exponent": "they grow as P to the power of {0}",
}


def _imbalance(known: Entry) -> list[str]:
    return [
        words.format(f"{known[name]['value']:g}")
        for name, words in _IMBALANCE.items()
        if name in known
    ]


def _dependence(explained: Entry) -> list[str]:
    """Which items have formulas that depend on processes and threads."""
    # names may have commas in them
    items = {name: "; ".join(explained["depends"][name]) for name in "PT"}
    return [
        f"with P: {items['P'] or 'none, every process does the same'}",
        f"with T: {items['T'] or 'none, threads share what there is'}",
    ]


# -- the program in words


def _tree(program: Sequence[Entry], depth: int = 0) -> Iterator[tuple[int, str]]:
    for item in program:
        yield depth, sentence(item)
        yield from _tree(item.get("body", ()), depth + 1)


def sentence(item: Entry) -> str:
    """What an item does, in words with its formulas."""
    words = _WORDS[item["kind"]](item)
    if item["every"]["formula"] != "1":
        words = f"every {_ordinal(item['every'])} time: {words}"
    return f"{item['name']}: {words}"


def _loop(item: Entry) -> str:
    return f"repeat {_symbol(item['count'])} times:"


def _serial(item: Entry) -> str:
    return f"the master thread does {_many(item['trip'], 'iteration')}; {_costs(item)}"


def _parallel(item: Entry) -> str:
    words = f"the threads share {_many(item['trip'], 'iteration')}"
    if item["inner"]["formula"] != "1":
        words += f" with {_many(item['inner'], 'inner one')} each"
    words += f", {item['schedule']}"
    if item["chunk"] is not None:
        words += f" in chunks of {_symbol(item['chunk'])}"
    if item["iteration_cv"]["formula"] != "0":
        words += f", whose cost varies by {_symbol(item['iteration_cv'])} (cv)"
    words += f"; {_costs(item)}"
    paid = [
        name if number["formula"] == "1" else f"{_symbol(number)} times {name}"
        for name, number in item["constructs"].items()
    ]
    if paid:
        words += f"; overhead of {_and(paid)}"
    if item["critical"] is not None:
        entries, seconds = item["critical"]["entries"], item["critical"]["seconds"]
        words += (
            f"; every thread enters a critical section {_symbol(entries)} times, "
            f"for {_quantity(seconds)} each"
        )
    if item["shared_writes"] is not None:
        writes = item["shared_writes"]
        words += (
            f"; {_many(writes['count'], 'write')} to elements of {_quantity(writes['bytes'])} in "
            f"cache lines that threads share, {_symbol(writes['chunk'])} elements by the same "
            "thread next to each other"
        )
    return words


def _task(item: Entry) -> str:
    words = f"{_many(item['count'], 'task')} of {_quantity(item['seconds'])} each, "
    if item["span"] is None:
        return words + "independent of each other"
    return words + f"the longest chain of them {_quantity(item['span'])}"


_MODES = {
    "nonblocking": "all messages at once (nonblocking)",
    "blocking": "one message after the other (blocking)",
}
_PACKING = {
    "serial": "the master thread packs",
    "parallel": "all threads pack",
    "none": "nothing is packed",
}


def _halo(item: Entry) -> str:
    words = (
        f"exchange {_many(item['width'], 'layer')} of cells with the neighbours, "
        f"{_quantity(item['bytes_per_cell'])} per cell, {_MODES[item['mode']]}; "
        f"{_PACKING[item['pack']]}"
    )
    if item["overlap"]["formula"] != "0":
        words += f"; a part of {_symbol(item['overlap'])} is hidden behind computation"
    return words + _sending(item)


def _pipeline(item: Entry) -> str:
    dims = _and([str(dim) for dim in item["dims"]])
    noun = "dimension" if len(item["dims"]) == 1 else "dimensions"
    return (
        f"a wavefront through grid {noun} {dims}: a process has "
        f"{_many(item['blocks'], 'block')} that take the master thread "
        f"{_quantity(item['seconds'])} together, "
        f"and sends {_quantity(item['bytes'])} on after each"
    )


def _shift(item: Entry) -> str:
    return (
        f"send {_quantity(item['bytes'])} to the process {_symbol(item['by'])} steps "
        f"along grid dimension {item['dim']}, and receive as much{_sending(item)}"
    )


def _point_to_point(item: Entry) -> str:
    order = "before" if item["mode"] == "send" else "while"
    return (
        f"send {_quantity(item['bytes'])} to rank {_symbol(item['to'])}, {order} receiving "
        f"({item['mode']}){_sending(item)}"
    )


def _sending(item: Entry) -> str:
    """How many threads send, if not one."""
    if item["comm_threads"]["formula"] == "1":
        return ""
    return f"; {_symbol(item['comm_threads'])} threads of a process send at the same time"


_COMMUNICATORS = {
    "world": "by all processes",
    "node": "by the processes of each node",
    "leaders": "by one process of every node",
}
_ROOTS = {"bcast": "from", "scatter": "from", "reduce": "to", "gather": "to"}


def _collective(item: Entry) -> str:
    words = str(item["op"])
    if item["op"] != "barrier":
        words += f" of {_quantity(item['bytes'])} per process"
    if item["op"] in _ROOTS:
        words += f" {_ROOTS[item['op']]} rank {_symbol(item['root'])}"
    if isinstance(item["comm"], str):
        return f"{words}, {_COMMUNICATORS[item['comm']]}"
    dims = _and([str(dim) for dim in item["comm"]])
    return f"{words}, by the processes along grid dimension {dims}"


_WORDS: Mapping[str, Callable[[Entry], str]] = {
    "loop": _loop,
    "serial": _serial,
    "parallel": _parallel,
    "task": _task,
    "halo": _halo,
    "pipeline": _pipeline,
    "shift": _shift,
    "p2p": _point_to_point,
    "collective": _collective,
}


_OVERLAP = {
    "sum": "nothing of it overlaps (sum)",
    "ecm": "arithmetic and transfers overlap in part (ecm)",
    "roofline": "arithmetic and transfers overlap (roofline)",
}


def _costs(item: Entry) -> str:
    """What an innermost iteration does."""
    parts = [
        _many(item[key], noun)
        for key, noun in (("flops", "flop"), ("loads", "load"), ("stores", "store"))
        if item[key]["formula"] != "0"
    ]
    parts += [
        f"{_quantity(traffic)} {'of memory traffic' if level == 'MEM' else f'through {level}'}"
        for level, traffic in item["bytes"].items()
    ]
    if item["chain"]["formula"] != "0":
        parts.append(f"a chain of {_many(item['chain'], 'cycle')}")
    if item["instructions"] is not None:
        parts.append(_many(item["instructions"], "instruction"))
    if item["mode"] is not None:
        parts.append(_OVERLAP[item["mode"]])
    return f"in each {', '.join(parts)}" if parts else "nothing in each but loop control"


# -- formulas and their values


def _equation(formula: Entry) -> str:
    """A formula and its value, such as ``3*w = 24 B``; a number alone once."""
    if formula["value"] is None:
        return str(formula["formula"])
    value = _value(formula)
    return value if _is_number(formula["formula"]) else f"{formula['formula']} = {value}"


def _symbol(formula: Entry) -> str:
    """A formula that is a number of something, with its value."""
    return _equation({**formula, "unit": "1"})


def _quantity(formula: Entry) -> str:
    """A formula that has a unit, with its value."""
    if formula["value"] is None:
        noun = {"B": "bytes", "s": "seconds"}[formula["unit"]]
        return f"{formula['formula']} {noun}"
    return _equation(formula)


def _many(formula: Entry, noun: str) -> str:
    """How many of something: ``1 store``, ``n0 iterations``."""
    plural_noun = noun if noun == "flop" else f"{noun}s"
    return f"{_symbol(formula)} {noun if formula['formula'] == '1' else plural_noun}"


def _value(entry: Entry) -> str:
    value, unit = entry["value"], entry["unit"]
    if unit == "B":
        return format_size(value)
    if unit == "s":
        return format_time(value, trim=True)
    number = count(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
    return number if unit in (None, "1") else f"{number} {unit}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _ordinal(formula: Entry) -> str:
    if not _is_number(formula["formula"]):
        return f"({_symbol(formula)})th"
    text = _symbol(formula)
    teen = text[-2:] in ("11", "12", "13")
    ending = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(text[-1], "th")
    return f"{text}{ending}"


def _and(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _formulas(
    program: Sequence[Entry],
) -> Iterator[tuple[str, str, str, Entry]]:
    """Kind and name of every item with its formulas, by key."""
    for item in program:
        for key, entry in item.items():
            if key == "body":
                continue
            for path, formula in _below(key, entry):
                yield item["kind"], item["name"], path, formula
        yield from _formulas(item.get("body", ()))


def _below(key: str, entry: Any) -> Iterator[tuple[str, Entry]]:
    if isinstance(entry, Mapping):
        if "formula" in entry:
            yield key, entry
        else:
            for name, one in entry.items():
                yield from _below(f"{key}.{name}", one)


CHECKED = Views(screen, records, markdown)
