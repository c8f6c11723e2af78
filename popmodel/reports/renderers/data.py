"""Documents as data: JSON at full precision, their tables as rows and CSV, signatures as TOML."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from popmodel.base.documents import csv_cell
from popmodel.base.values import plain
from popmodel.reports.renderers.text import clean

if TYPE_CHECKING:
    from popmodel.reports.renderers.text import Style
    from popmodel.reports.views import Document, Record, Views

_SHORT = 8
_STAMP = {
    "popmodel": "popmodel",
    "popmodel_time": "time",
    "popmodel_host": "host",
    "popmodel_command": "command",
}


def rows(document: Document, views: Views) -> list[Record]:
    """The rows of a document's tables; several tables are told apart by the column ``table``.

    A table is a path as ``docs/json.md`` has it: ``runs[].ranks[]`` has a row for each rank,
    ``metrics.FAMILY.METRIC`` one for each metric, with columns ``family`` and ``metric``, and
    ``ranks[RANK]`` numbers its rows from 0. Without a last ``[]`` it is one row; of lists below a
    name (``pairs[]``) a row takes one of each. What has a table of its own is no column of another.
    Of a report they are those of all its documents, each with the command that it is of.
    """
    if "documents" in document:
        from popmodel.reports.registry import views_of

        return [
            {"command": str(part["schema"]).split("/")[1], **row}
            for part in document["documents"]
            for row in rows(part, views_of(part))
        ]
    data = document if views.data is None else views.data(document)
    data = {key: value for key, value in data.items() if key not in ("schema", "provenance")}
    made: list[dict[str, object]] = []
    for path in views.tables:
        steps = re.findall(r"\w+|\[\w*\]", path)
        keys = [step for step in steps if step[0] != "[" and not step.isupper()]
        named = {"table": ".".join(keys)} if len(views.tables) > 1 else {}
        made += [named | row for row in _rows(data, steps, "", views, {})]
    columns = dict.fromkeys(name for row in made for name in row)
    return [{name: row.get(name) for name in columns} for row in made]


def _rows(
    node: Any, steps: list[str], place: str, views: Views, columns: dict[str, object]
) -> Iterator[dict[str, object]]:
    """The rows below a place of a document; columns are what the places above it are known by."""
    if not steps:
        yield columns | dict(_leaf(node, place, views))
        return
    for path in views.beside:
        holder, _, name = path.rpartition(".")
        if holder == place or (place == "" and "[]" not in path):
            value = _at(node, path.removeprefix(place).strip("."))
            label = holder.rpartition(".")[2] if name == "name" and holder != place else name
            columns = columns | dict(_cells({label: value}))
    step, *rest = steps
    if step[0] == "[":
        entries = node if isinstance(node, list | tuple) else _side_by_side(node)
        for number, entry in enumerate(entries):
            numbered = columns if step == "[]" else {**columns, step[1:-1].lower(): number}
            yield from _rows(entry, rest, f"{place}[]", views, numbered)
    elif step.isupper():
        for name, entry in node.items():
            named = {**columns, step.lower(): name}
            yield from _rows(entry, rest, f"{place}.{step}", views, named)
    elif isinstance(node, Mapping) and node.get(step) is not None:
        yield from _rows(node[step], rest, f"{place}.{step}".lstrip("."), views, columns)


def _leaf(node: Any, place: str, views: Views) -> Iterator[tuple[str, object]]:
    """The columns of what a table ends in; a text is known by what it tells: ``absent``."""
    if not isinstance(node, Mapping):
        name = re.findall(r"[a-z]\w*", place)[-1] if isinstance(node, str) else "value"
        yield name, node
        return
    below = [path.removeprefix(place) for path in views.tables if path.startswith(place)]
    own = {match[1] for path in below if (match := re.match(r"\.?(\w+)", path))}
    yield from _cells({key: value for key, value in node.items() if key not in own})


def _at(node: Any, path: str) -> Any:
    for key in path.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def _side_by_side(columns: Mapping[str, Any]) -> Iterator[dict[str, object]]:
    lists = {name: values for name, values in columns.items() if isinstance(values, list | tuple)}
    for values in zip_longest(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def _cells(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The columns of a record: names of what is within others are joined.

    Efficiencies are ``FAMILY.METRIC``, lists one text, or of more than eight numbers their
    range; lists of records are left to JSON.
    """
    for name, value in record.items():
        if name in ("metrics", "absent") and isinstance(value, Mapping):
            for family, values in value.items():
                group = values if isinstance(values, Mapping) else {"": values}
                named = {f"{prefix}{family}.{id}".rstrip("."): own for id, own in group.items()}
                if name == "absent":
                    yield from dict.fromkeys(named).items()
                    named = {f"absent.{id}": why for id, why in named.items()}
                yield from _cells(named)
        elif isinstance(value, Mapping):
            yield from _cells(value, f"{prefix}{name}_")
        elif isinstance(value, list | tuple):
            if all(isinstance(entry, str) for entry in value):
                yield prefix + name, "; ".join(value)
            elif all(isinstance(entry, int | float) for entry in value):
                short = len(value) <= _SHORT
                text = " ".join(map(str, value)) if short else f"{min(value)}..{max(value)}"
                yield prefix + name, text
        else:
            yield prefix + name, value


def render_csv(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (no lines)
    """One row per line; where all of them come from stands in the first, in the last columns."""
    records = rows(document, views)
    stamp = {name: document["provenance"][key] for name, key in _STAMP.items()}
    columns = dict.fromkeys(key for record in records for key in record)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(_value, [*columns, *stamp]))
    origin: list[object] = list(stamp.values())
    for record in records:
        writer.writerow(map(_value, [*map(record.get, columns), *origin]))
        origin = [None] * len(stamp)
    return text.getvalue()


def _value(value: object) -> object:
    value = encodable(value)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # Many readers of CSV take any control character for a line end. A command goes on in one
        # line, as shells join it; other lines are told apart by \n.
        return csv_cell(clean(value.replace("\\\n", "").replace("\n", r"\n")))
    # repr keeps a float's full precision.
    return repr(value) if isinstance(value, float) else value


def render_json(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (all of it)
    """A document as JSON."""
    return json.dumps(encodable(document), indent=1, allow_nan=False) + "\n"


def encodable(value: Any) -> Any:
    """Plain data whose texts UTF-8 can hold: file names may have bytes that readers refuse."""
    return plain(value, _encodable)


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def render_toml(document: Document, views: Views, style: Style) -> str:  # noqa: ARG001 (the text alone)
    """The signature in a document: it says itself where it comes from."""
    text: str = document["signature"]
    return text
