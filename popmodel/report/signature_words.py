"""The program of a signature in words: a sentence for each item, with its formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from popmodel.units import count, format_size, format_time

Entry: TypeAlias = Mapping[str, Any]


def tree(program: Sequence[Entry], depth: int = 0) -> Iterator[tuple[int, str]]:
    """Every item of a program in words, with its depth."""
    for item in program:
        yield depth, sentence(item)
        yield from tree(item.get("body", ()), depth + 1)


def sentence(item: Entry) -> str:
    """What an item does, in words with its formulas."""
    words = _WORDS[item["kind"]](item)
    if item["every"]["formula"] != "1":
        words = f"in every {_ordinal(item['every'])} iteration: {words}"
    return f"{item['name']}: {words}"


def _loop(item: Entry) -> str:
    return "once:" if item["count"]["formula"] == "1" else f"repeat {_symbol(item['count'])} times:"


def _serial(item: Entry) -> str:
    return f"the master thread executes {_many(item['trip'], 'iteration')}; {_costs(item)}"


def _parallel(item: Entry) -> str:
    words = f"the threads share {_many(item['trip'], 'iteration')}"
    if item["inner"]["formula"] != "1":
        words += f" of {_many(item['inner'], 'inner iteration')}"
    words += f", {item['schedule']}"
    if item["chunk"] is not None:
        words += f" in chunks of {_symbol(item['chunk'])}"
    if item["iteration_cv"]["formula"] != "0":
        words += f", the cost of an iteration varies by {_symbol(item['iteration_cv'])} (cv)"
    words += f"; {_costs(item)}"
    paid = [
        name if number["formula"] == "1" else f"{_symbol(number)} times {name}"
        for name, number in item["constructs"].items()
    ]
    if paid:
        words += f"; plus the overhead of {_and(paid)}"
    if item["critical"] is not None:
        entries, seconds = item["critical"]["entries"], item["critical"]["seconds"]
        words += (
            f"; every thread enters a critical section {_symbol(entries)} times, "
            f"{quantity(seconds)} each"
        )
    if item["shared_writes"] is not None:
        writes = item["shared_writes"]
        words += (
            f"; {_many(writes['count'], 'write')} to elements of {quantity(writes['bytes'])} in "
            f"cache lines shared by threads, {_symbol(writes['chunk'])} adjacent elements by the "
            "same thread"
        )
    return words


def _task(item: Entry) -> str:
    words = f"{_many(item['count'], 'task')} of {quantity(item['seconds'])} each, "
    if item["span"] is None:
        return words + "independent"
    return words + f"longest chain of dependent tasks {quantity(item['span'])}"


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
        f"{quantity(item['bytes_per_cell'])} per cell, {_MODES[item['mode']]}; "
        f"{_PACKING[item['pack']]}"
    )
    if item["overlap"]["formula"] != "0":
        words += f"; a share of {_symbol(item['overlap'])} is hidden behind computation"
    return words + _sending(item)


def _pipeline(item: Entry) -> str:
    dims = _and([str(dim) for dim in item["dims"]])
    noun = "dimension" if len(item["dims"]) == 1 else "dimensions"
    return (
        f"a wavefront through grid {noun} {dims}: {_many(item['blocks'], 'block')} per process, "
        f"which take the master thread {quantity(item['seconds'])} in total; "
        f"{quantity(item['bytes'])} to the next process after each"
    )


def _shift(item: Entry) -> str:
    noun = "step" if item["by"]["formula"] in ("1", "-1") else "steps"
    return (
        f"send {quantity(item['bytes'])} to the process {_symbol(item['by'])} {noun} "
        f"along grid dimension {item['dim']}, and receive as much{_sending(item)}"
    )


def _point_to_point(item: Entry) -> str:
    order = "before" if item["mode"] == "send" else "while"
    return (
        f"send {quantity(item['bytes'])} to rank {_symbol(item['to'])}, {order} receiving "
        f"({item['mode']}){_sending(item)}"
    )


def _sending(item: Entry) -> str:
    """How many threads send, if not one."""
    if item["comm_threads"]["formula"] == "1":
        return ""
    return f"; {_symbol(item['comm_threads'])} threads per process send at the same time"


_COMMUNICATORS = {
    "world": "among all processes",
    "node": "among the processes of each node",
    "leaders": "among one process per node",
}
_ROOTS = {"bcast": "from", "scatter": "from", "reduce": "to", "gather": "to"}


def _collective(item: Entry) -> str:
    words = str(item["op"])
    if item["op"] != "barrier":
        words += f" of {quantity(item['bytes'])} per process"
    if item["op"] in _ROOTS:
        words += f" {_ROOTS[item['op']]} rank {_symbol(item['root'])}"
    if isinstance(item["comm"], str):
        return f"{words}, {_COMMUNICATORS[item['comm']]}"
    dims = _and([str(dim) for dim in item["comm"]])
    return f"{words}, among the processes along grid dimension {dims}"


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
    "sum": "no overlap (sum)",
    "ecm": "arithmetic and transfers overlap partly (ecm)",
    "roofline": "arithmetic and transfers overlap (roofline)",
}


def _costs(item: Entry) -> str:
    """What an innermost iteration does, or how long it takes."""
    if item["seconds"] is not None:
        counted = item["instructions"]
        more = "" if counted is None else f", {_many(counted, 'instruction')}"
        return f"each takes {quantity(item['seconds'])}, as measured{more}"
    parts = [
        _many(item[key], noun)
        for key, noun in (("flops", "flop"), ("loads", "load"), ("stores", "store"))
        if item[key]["formula"] != "0"
    ]
    parts += [
        f"{quantity(traffic)} {'of memory traffic' if level == 'MEM' else f'through {level}'}"
        for level, traffic in item["bytes"].items()
    ]
    if item["chain"]["formula"] != "0":
        parts.append(f"a dependency chain of {_many(item['chain'], 'cycle')}")
    if item["instructions"] is not None:
        parts.append(_many(item["instructions"], "instruction"))
    if item["mode"] is not None:
        parts.append(_OVERLAP[item["mode"]])
    return f"each: {', '.join(parts)}" if parts else "loop control only"


# -- formulas and their values


def equation(formula: Entry) -> str:
    """A formula and its value, such as ``3*w = 24 B``; a number alone once."""
    if formula["value"] is None:
        return str(formula["formula"])
    value = value_text(formula)
    return value if _is_number(formula["formula"]) else f"{formula['formula']} = {value}"


def _symbol(formula: Entry) -> str:
    """A formula that is a number of something, with its value."""
    return equation({**formula, "unit": "1"})


def quantity(formula: Entry) -> str:
    """A formula that has a unit, with its value."""
    if formula["value"] is None:
        noun = {"B": "bytes", "s": "seconds"}[formula["unit"]]
        return f"{formula['formula']} {noun}"
    return equation(formula)


def _many(formula: Entry, noun: str) -> str:
    """How many of something: ``1 store``, ``n0 iterations``."""
    plural_noun = noun if noun == "flop" else f"{noun}s"
    return f"{_symbol(formula)} {noun if formula['formula'] == '1' else plural_noun}"


def value_text(entry: Entry) -> str:
    """A number with its unit."""
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
