"""Fortran: programs, modules and procedures of files, and what their names stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from popmodel.base.errors import PopmodelError
from popmodel.source.fortran_text import FortranText
from popmodel.source.intermediate_form import INTEGER, SourcePlace, SourceType
from popmodel.source.user_compiler import compile_command


@dataclass
class DeclaredName:
    """What a name stands for in a unit."""

    type: SourceType  # Of an element
    bounds: list[tuple[Any, Any]] = field(default_factory=list)  # Nodes, None where not said
    value: Any = None  # Node of the first value
    is_dummy: bool = False
    is_input: bool = False
    key: str = ""  # In place of the unit's: in a common block


@dataclass
class FortranUnit:
    """A program, a module or a procedure."""

    key: str
    name: str
    node: Any
    host: FortranUnit | None
    names: dict[str, DeclaredName] = field(default_factory=dict)
    uses: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # With renamed names
    dummies: list[str] = field(default_factory=list)
    result: str = ""
    is_shared: bool = False  # Others see its variables
    lists: dict[str, list[str]] = field(default_factory=dict)  # Namelists
    changed: set[str] = field(default_factory=set)  # Scalars that it may change
    text: FortranText | None = None  # Its file


def _parser() -> Any:
    try:
        import tree_sitter_fortran
        from tree_sitter import Language, Parser
    except ImportError as error:
        raise PopmodelError(
            "reading Fortran needs tree-sitter", "pip install 'popmodel-hpc[source]'"
        ) from error
    return Parser(Language(tree_sitter_fortran.language()))


class FortranUnits:
    """All files of a program: its units, and what their names stand for."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.parser = _parser()
        self.arguments = arguments
        self.problems: list[str] = []
        self.units: dict[str, FortranUnit] = {}
        self.modules: dict[str, FortranUnit] = {}
        self.by_name: dict[str, list[FortranUnit]] = {}
        self.records: dict[str, dict[str, DeclaredName]] = {}
        self.generic: dict[str, list[str]] = {}  # Procedures by names of interfaces and bindings
        self.unit = FortranUnit("", "", None, None)  # The one at hand
        self.text: FortranText | None = None  # The file at hand

    def collect(self, path: Path) -> None:
        """Find the units of a file."""
        command, problem = compile_command(path)
        self.problems += [problem] if problem and problem not in self.problems else []
        text = FortranText(path, (*(command.flags if command else ()), *self.arguments))
        tree = self.parser.parse(text.text)
        self.problems += text.problems
        self.text = text
        if tree.root_node.has_error:
            self._errors(tree.root_node)
        for node in tree.root_node.named_children:
            self._collect(node, None, text)

    def _errors(self, root: Any) -> None:
        waiting, shown = [root], 0
        while waiting and shown < 3:
            node = waiting.pop()
            if node.is_error or node.is_missing:
                words = "".join(filter(str.isprintable, " ".join(node_text(node).split())))[:40]
                self.problems.append(f"{self._place(node)}: cannot be read: {words}")
                shown += 1
            elif node.has_error:
                waiting += reversed(node.children)

    def _collect(self, node: Any, host: FortranUnit | None, text: FortranText) -> None:
        kind = node.type
        if kind not in ("module", "program", "subroutine", "function", "submodule"):
            for child in node.named_children if kind == "internal_procedures" else ():
                self._collect(child, host, text)
            return
        head = next(iter(node.named_children))
        name = lower_text(child_of(head, "name")) or "main"
        is_main = kind == "program"
        key = "main" if is_main else f"{host.key}::{name}" if host else name
        if is_main and key in self.units:
            key = f"main of {text.places[0].file}"
        unit = FortranUnit(key, "main" if is_main else name, node, host)
        unit.is_shared = kind == "module" or child_of(node, "internal_procedures") is not None
        parameters = child_of(head, "parameters")
        if parameters is not None:
            unit.dummies = [lower_text(one) for one in parameters.named_children]
        if kind == "function":
            result = child_of(head, "function_result")
            unit.result = lower_text(result.named_children[0]) if result is not None else name
            type_ = next((one for one in head.named_children if "type" in one.type), None)
            if type_ is not None:
                unit.names[unit.result] = DeclaredName(self._declared_type(type_))
        self.units[key] = unit
        unit.text = text
        if not is_main:  # which nobody calls, though a procedure may have its name
            self.by_name.setdefault(name, []).append(unit)
        if kind == "module":
            self.modules[name] = unit
        for child in node.named_children:
            self._declare(child, unit)
            self._collect(child, unit, text)
        for dummy in unit.dummies:
            unit.names.setdefault(dummy, DeclaredName(implicit_type(dummy))).is_dummy = True
        unit.changed = set(self._changed(node))

    def _declare(self, node: Any, unit: FortranUnit) -> None:
        kind = node.type
        if kind == "use_statement":
            renamed = {
                lower_text(one.named_children[0]): lower_text(one.named_children[-1])
                for one in nodes_in(node, "use_alias")
            }
            unit.uses.append((lower_text(child_of(node, "module_name")), renamed))
        elif kind == "variable_declaration":
            unit.names |= self._declarations(node, unit)
        elif kind == "derived_type_definition":
            name = lower_text(next(iter(nodes_in(node, "type_name"))))
            fields: dict[str, DeclaredName] = {}
            for child in node.named_children:
                if child.type == "variable_declaration":
                    fields |= self._declarations(child, unit)
            self.records[name] = fields
            for one in nodes_in(node, "method_name"):
                self.generic.setdefault(lower_text(one), []).append(lower_text(one))
            for one in nodes_in(node, "binding"):
                names = [lower_text(part) for part in one.named_children]
                self.generic.setdefault(names[0], []).append(names[-1])
        elif kind == "interface":
            names = [lower_text(one) for one in nodes_in(node, "name")]
            procedures = [lower_text(one) for one in nodes_in(node, "method_name")]
            if names and procedures:
                self.generic.setdefault(names[0], []).extend(procedures)
        elif kind == "parameter_statement":
            for one in nodes_in(node, "parameter_assignment"):
                left, right = one.named_children[0], one.named_children[-1]
                known = unit.names.setdefault(
                    lower_text(left), DeclaredName(implicit_type(lower_text(left)))
                )
                known.value = right
        elif kind == "common_statement":
            for group in nodes_in(node, "variable_group"):
                block = lower_text(child_of(group, "name"))
                members = [one for one in group.named_children if one.type != "name"]
                for number, one in enumerate(members):
                    name = lower_text(one.named_children[0] if one.named_children else one)
                    known = unit.names.setdefault(name, DeclaredName(implicit_type(name)))
                    known.key = f"common {block}::{number}"
                    size = child_of(one, "size") or child_of(one, "argument_list")
                    if size is not None:
                        known.bounds = bounds_of(size)
        elif kind == "namelist_statement":
            for group in nodes_in(node, "variable_group"):
                block = lower_text(child_of(group, "name"))
                unit.lists[block] = [lower_text(one) for one in group.named_children[1:]]
        elif kind == "dimension_statement":
            for one in nodes_in(node, "sized_declarator"):
                name = lower_text(one.named_children[0])
                known = unit.names.setdefault(name, DeclaredName(implicit_type(name)))
                known.bounds = bounds_of(one.named_children[1])

    def _declarations(self, node: Any, unit: FortranUnit) -> dict[str, DeclaredName]:
        type_ = self._declared_type(node.named_children[0])
        qualifiers = [one for one in node.named_children if one.type == "type_qualifier"]
        words = {node_text(one).lower().split("(")[0].strip() for one in qualifiers}
        is_input = any(
            re.match(r"intent\s*\(\s*in\s*\)", node_text(one).lower()) for one in qualifiers
        )
        everywhere = next(
            (bounds_of(one.named_children[-1]) for one in qualifiers if one.named_children), []
        )
        found = {}
        for one in node.named_children[1:]:
            if one.type == "type_qualifier":
                continue
            value, declarator = None, one
            if one.type in ("init_declarator", "pointer_init_declarator"):
                declarator, value = one.named_children[0], one.named_children[-1]
            bounds = everywhere
            if declarator.type == "sized_declarator":
                size = declarator.named_children[1]
                bounds = bounds_of(size) if size.type == "size" else everywhere
                declarator = declarator.named_children[0]
            name = lower_text(declarator)
            before = unit.names.get(name)
            found[name] = DeclaredName(type_, bounds, value, is_input=is_input)
            if before is not None and before.key:
                found[name].key = before.key
                found[name].bounds = bounds or before.bounds
            if words & {"save"} and not unit.is_shared:
                found[name].key = f"{unit.key}::{name}"
        return found

    def _declared_type(self, node: Any) -> SourceType:
        text = node_text(node).lower().replace(" ", "")
        if node.type == "derived_type":
            return SourceType("record", name=lower_text(next(iter(nodes_in(node, "type_name")))))
        size = 8 if text.startswith("double") else 4
        kind = re.search(r"[*(](?:kind=)?(\w+)", text)
        if kind:
            size = int(kind[1]) if kind[1].isdigit() else 8
        if text.startswith("integer"):
            return SourceType("int", size, name="integer")
        if text.startswith("logical"):
            return SourceType("int", size, name="logical")
        if text.startswith("complex"):
            return SourceType("real", 2 * size, name="complex")
        if text.startswith("character"):
            return SourceType("other", name="character")
        return SourceType("real", size, name="real")

    def _changed(self, node: Any) -> Iterator[str]:
        """Names that a procedure may change: assigned, read in, or passed on."""
        for one in nodes_in(node, "assignment_statement"):
            yield lower_text(one.named_children[0])
        for one in (*nodes_in(node, "loop_control_expression"), *nodes_in(node, "input_item_list")):
            yield from (
                lower_text(part) for part in one.named_children if part.type == "identifier"
            )
        for one in nodes_in(node, "subroutine_call"):
            for part in one.named_children[1:]:
                yield from map(lower_text, part.named_children)

    def _find(self, name: str, unit: FortranUnit | None = None) -> tuple[DeclaredName, FortranUnit]:
        """What a name stands for, and the unit that defines it."""
        start = unit = unit or self.unit
        while unit is not None:
            if name in unit.names:
                return unit.names[name], unit
            for module, renamed in unit.uses:
                found = self._in_module(module, renamed.get(name, name), 0)
                if found is not None:
                    return found
            unit = unit.host
        start.names[name] = DeclaredName(implicit_type(name))
        return start.names[name], start

    def _in_module(
        self, module: str, name: str, depth: int
    ) -> tuple[DeclaredName, FortranUnit] | None:
        unit = self.modules.get(module)
        if unit is None or depth > 20:
            return None
        if name in unit.names:
            return unit.names[name], unit
        for other, renamed in unit.uses:
            found = self._in_module(other, renamed.get(name, name), depth + 1)
            if found is not None:
                return found
        return None

    def _is_known(self, name: str) -> bool:
        unit: FortranUnit | None = self.unit
        while unit is not None:
            if name in unit.names or any(
                self._in_module(module, renamed.get(name, name), 0) for module, renamed in unit.uses
            ):
                return True
            unit = unit.host
        return False

    def _place(self, node: Any) -> SourcePlace:
        assert self.text is not None
        line = min(node.start_point[0], len(self.text.places) - 1)
        return self.text.places[line] if self.text.places else SourcePlace("?", 0)


def node_text(node: Any) -> str:
    return str(node.text.decode("utf-8", "replace"))


def lower_text(node: Any) -> str:
    return "" if node is None else node_text(node).lower().strip()


def child_of(node: Any, kind: str) -> Any:
    return next((one for one in node.named_children if one.type == kind), None)


def nodes_in(node: Any, kind: str) -> Iterator[Any]:
    """All nodes of a kind inside of another one, but for those of procedures inside of it."""
    waiting = list(reversed(node.named_children))
    while waiting:
        child = waiting.pop()
        if child.type == kind:
            yield child
        elif child.type != "internal_procedures":
            waiting += reversed(child.named_children)


def bounds_of(node: Any) -> list[tuple[Any, Any]]:
    """Lowest and highest index of each dimension, as far as they are said."""
    found: list[tuple[Any, Any]] = []
    for one in node.named_children:
        if one.type == "extent_specifier":
            found.append(section_of(one))
        elif one.type == "assumed_size":
            found.append((None, None))
        else:
            found.append((None, one))
    return found


def section_of(node: Any) -> tuple[Any, Any]:
    """First and last of a range, None where it is left open."""
    if node is None:
        return None, None
    first = last = None
    colons = 0
    for child in node.children:
        if child.type in (":", "::"):
            colons += 1
        elif child.is_named and colons == 0:
            first = child
        elif child.is_named and colons == 1:
            last = child
    return first, last


def implicit_type(name: str) -> SourceType:
    if name.startswith("omp_get"):
        return INTEGER
    return INTEGER if name[:1] in "ijklmn" else SourceType("real", 4)
