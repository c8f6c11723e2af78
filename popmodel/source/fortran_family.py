"""Fortran: from files to the intermediate form, by tree-sitter.

Indexes are turned around, so that elements beside each other have neighbouring last indexes, and
count from 0. Scalar arguments that a procedure may change are passed by their address. Arrays as a
whole, and sections of them, become loops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from popmodel.base.errors import PopmodelError
from popmodel.source.fortran_text import SUFFIXES, FortranText
from popmodel.source.intermediate_form import (
    INTEGER,
    OTHER,
    Address,
    Assignment,
    Body,
    Branch,
    CountedLoop,
    Declaration,
    Directive,
    Element,
    Expression,
    ExpressionStatement,
    Field,
    Invocation,
    Leave,
    Literal,
    Loop,
    SourceFunction,
    SourceOperation,
    SourcePlace,
    SourceProgram,
    SourceType,
    Statement,
    Variable,
)

__all__ = ["SUFFIXES", "read"]

STANDALONE = ("barrier", "flush", "taskwait", "taskyield", "threadprivate", "declare", "cancel")
_LOOP_WORDS = {"do", "taskloop", "simd", "loop", "distribute"}
_OPERATORS = {
    **{".eq.": "==", ".ne.": "!=", ".lt.": "<", ".le.": "<=", ".gt.": ">", ".ge.": ">="},
    **{".and.": "&&", ".or.": "||", ".not.": "!", "/=": "!=", ".eqv.": "==", ".neqv.": "!="},
}
_RENAMED = {"abs": "fabs", "dabs": "fabs", "iabs": "abs", "dsqrt": "sqrt", "dexp": "exp"} | {
    **{"dlog": "log", "alog": "log", "dsin": "sin", "dcos": "cos", "ceiling": "ceil"},
    **{"nint": "lround", "idnint": "lround", "anint": "round", "aint": "trunc", "datan": "atan"},
}
_MATHEMATICS = {
    *("sqrt", "exp", "log", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "floor"),
}
_CONVERSIONS = {
    **dict.fromkeys(("real", "dble", "float", "dfloat", "sngl", "cmplx", "dcmplx"), "real"),
    **dict.fromkeys(("int", "idint", "ifix"), "int"),
}
_LARGEST = {"max", "max0", "amax1", "dmax1", "min", "min0", "amin1", "dmin1"}
_REDUCTIONS = {"sum": "+", "product": "*", "maxval": "fmax", "minval": "fmin", "count": "+"} | {
    **{"dot_product": "+", "any": "+", "all": "+"},
}
_INQUIRIES = {
    *("size", "ubound", "lbound", "kind", "huge", "tiny", "epsilon"),
    *("present", "allocated", "associated"),
}
_ELEMENTAL = _MATHEMATICS | set(_RENAMED) | set(_CONVERSIONS) | _LARGEST | {"mod", "modulo", "sign"}
_POINTERS = re.compile(r"^int (MPI_\w+)\((.*)\);$", re.MULTILINE)
ARGC = Variable("main::argc", "argc", INTEGER)
ARGV = Variable("main::argv", "argv", SourceType("pointer", 8, SourceType("pointer", 8)))


@dataclass
class _Name:
    """What a name stands for in a unit."""

    type: SourceType  # Of an element
    bounds: list[tuple[Any, Any]] = field(default_factory=list)  # Nodes, None where not said
    value: Any = None  # Node of the first value
    is_dummy: bool = False
    is_input: bool = False
    key: str = ""  # In place of the unit's: in a common block


@dataclass
class _Unit:
    """A program, a module or a procedure."""

    key: str
    name: str
    node: Any
    host: _Unit | None
    names: dict[str, _Name] = field(default_factory=dict)
    uses: list[tuple[str, dict[str, str]]] = field(default_factory=list)  # With renamed names
    dummies: list[str] = field(default_factory=list)
    result: str = ""
    is_shared: bool = False  # Others see its variables
    lists: dict[str, list[str]] = field(default_factory=dict)  # Namelists
    changed: set[str] = field(default_factory=set)  # Scalars that it may change


def read(paths: Sequence[Path], arguments: Sequence[str] = ()) -> SourceProgram:
    """Read the files of a program; as `popmodel.source.c_family.read`."""
    reader = _FortranReader(arguments)
    for path in paths:
        reader.collect(path)
    reader.convert()
    return SourceProgram(reader.functions, reader.variables, tuple(reader.problems))


def _parser() -> Any:
    try:
        import tree_sitter_fortran
        from tree_sitter import Language, Parser
    except ImportError as error:
        raise PopmodelError(
            "reading Fortran needs tree-sitter", "pip install 'popmodel-hpc[source]'"
        ) from error
    return Parser(Language(tree_sitter_fortran.language()))


class _FortranReader:
    """All files: first what they define, then what it does."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self.parser = _parser()
        self.arguments = arguments
        self.functions: dict[str, SourceFunction] = {}
        self.variables: dict[str, Declaration] = {}
        self.problems: list[str] = []
        self.units: dict[str, _Unit] = {}
        self.modules: dict[str, _Unit] = {}
        self.by_name: dict[str, list[_Unit]] = {}
        self.records: dict[str, dict[str, _Name]] = {}
        self.generic: dict[str, list[str]] = {}  # Names of interfaces and bindings
        self.files: list[tuple[Any, FortranText]] = []
        self.texts: dict[int, FortranText] = {}  # By the id of a unit's key
        header = (Path(__file__).parent / "headers" / "mpi.h").read_text()
        self.mpi = {  # Which arguments are addresses
            name.lower(): (name, ["*" in part for part in parts.split(",")])
            for name, parts in _POINTERS.findall(header)
        }
        self.unit: _Unit = _Unit("", "", None, None)
        self.file: FortranText | None = None
        self.before: list[Statement] = []  # What an expression needs first
        self.number = 0

    # What files define

    def collect(self, path: Path) -> None:
        """Find the units of a file."""
        text = FortranText(path, self.arguments)
        tree = self.parser.parse(text.text)
        self.problems += text.problems
        self.file = text
        if tree.root_node.has_error:
            self._errors(tree.root_node)
        self.files.append((tree, text))
        for node in tree.root_node.named_children:
            self._collect(node, None, text)

    def _errors(self, root: Any) -> None:
        waiting, shown = [root], 0
        while waiting and shown < 3:
            node = waiting.pop()
            if node.is_error or node.is_missing:
                words = " ".join(_text(node).split())[:40]
                self.problems.append(f"{self._place(node)}: cannot be read: {words}")
                shown += 1
            elif node.has_error:
                waiting += reversed(node.children)

    def _collect(self, node: Any, host: _Unit | None, text: FortranText) -> None:
        kind = node.type
        if kind not in ("module", "program", "subroutine", "function", "submodule"):
            for child in node.named_children if kind == "internal_procedures" else ():
                self._collect(child, host, text)
            return
        head = next(iter(node.named_children))
        name = _lower(_child(head, "name")) or "main"
        is_main = kind == "program"
        key = "main" if is_main else f"{host.key}::{name}" if host else name
        unit = _Unit(key, "main" if is_main else name, node, host)
        unit.is_shared = kind == "module" or _child(node, "internal_procedures") is not None
        parameters = _child(head, "parameters")
        if parameters is not None:
            unit.dummies = [_lower(one) for one in parameters.named_children]
        if kind == "function":
            result = _child(head, "function_result")
            unit.result = _lower(result.named_children[0]) if result is not None else name
            type_ = next((one for one in head.named_children if "type" in one.type), None)
            if type_ is not None:
                unit.names[unit.result] = _Name(self._declared_type(type_))
        self.units[key] = unit
        self.texts[id(unit)] = text
        self.by_name.setdefault(name, []).append(unit)
        if kind == "module":
            self.modules[name] = unit
        for child in node.named_children:
            self._declare(child, unit)
            self._collect(child, unit, text)
        for dummy in unit.dummies:
            unit.names.setdefault(dummy, _Name(_implicit(dummy))).is_dummy = True
        unit.changed = set(self._changed(node))

    def _declare(self, node: Any, unit: _Unit) -> None:
        kind = node.type
        if kind == "use_statement":
            renamed = {
                _lower(one.named_children[0]): _lower(one.named_children[-1])
                for one in _all(node, "use_alias")
            }
            unit.uses.append((_lower(_child(node, "module_name")), renamed))
        elif kind == "variable_declaration":
            unit.names |= self._declarations(node, unit)
        elif kind == "derived_type_definition":
            name = _lower(next(iter(_all(node, "type_name"))))
            fields: dict[str, _Name] = {}
            for child in node.named_children:
                if child.type == "variable_declaration":
                    fields |= self._declarations(child, unit)
            self.records[name] = fields
            for one in _all(node, "method_name"):
                self.generic.setdefault(_lower(one), []).append(_lower(one))
            for one in _all(node, "binding"):
                names = [_lower(part) for part in one.named_children]
                self.generic.setdefault(names[0], []).append(names[-1])
        elif kind == "interface":
            names = [_lower(one) for one in _all(node, "name")]
            members = [_lower(one) for one in _all(node, "method_name")]
            if names and members:
                self.generic.setdefault(names[0], []).extend(members)
        elif kind == "parameter_statement":
            for one in _all(node, "parameter_assignment"):
                left, right = one.named_children[0], one.named_children[-1]
                known = unit.names.setdefault(_lower(left), _Name(_implicit(_lower(left))))
                known.value = right
        elif kind == "common_statement":
            for group in _all(node, "variable_group"):
                block = _lower(_child(group, "name"))
                members = [one for one in group.named_children if one.type != "name"]
                for number, one in enumerate(members):
                    name = _lower(one.named_children[0] if one.named_children else one)
                    known = unit.names.setdefault(name, _Name(_implicit(name)))
                    known.key = f"common {block}::{number}"
                    size = _child(one, "size") or _child(one, "argument_list")
                    if size is not None:
                        known.bounds = _bounds(size)
        elif kind == "namelist_statement":
            for group in _all(node, "variable_group"):
                block = _lower(_child(group, "name"))
                unit.lists[block] = [_lower(one) for one in group.named_children[1:]]
        elif kind == "dimension_statement":
            for one in _all(node, "sized_declarator"):
                name = _lower(one.named_children[0])
                known = unit.names.setdefault(name, _Name(_implicit(name)))
                known.bounds = _bounds(one.named_children[1])

    def _declarations(self, node: Any, unit: _Unit) -> dict[str, _Name]:
        type_ = self._declared_type(node.named_children[0])
        qualifiers = [one for one in node.named_children if one.type == "type_qualifier"]
        words = {_text(one).lower().split("(")[0].strip() for one in qualifiers}
        is_input = any(re.match(r"intent\s*\(\s*in\s*\)", _text(one).lower()) for one in qualifiers)
        everywhere = next(
            (_bounds(one.named_children[-1]) for one in qualifiers if one.named_children), []
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
                bounds = _bounds(size) if size.type == "size" else everywhere
                declarator = declarator.named_children[0]
            name = _lower(declarator)
            before = unit.names.get(name)
            found[name] = _Name(type_, bounds, value, is_input=is_input)
            if before is not None and before.key:
                found[name].key = before.key
                found[name].bounds = bounds or before.bounds
            if words & {"save"} and not unit.is_shared:
                found[name].key = f"{unit.key}::{name}"
        return found

    def _declared_type(self, node: Any) -> SourceType:
        text = _text(node).lower().replace(" ", "")
        if node.type == "derived_type":
            return SourceType("record", name=_lower(next(iter(_all(node, "type_name")))))
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
        for one in _all(node, "assignment_statement"):
            yield _lower(one.named_children[0])
        for one in (*_all(node, "loop_control_expression"), *_all(node, "input_item_list")):
            yield from (_lower(part) for part in one.named_children if part.type == "identifier")
        for one in _all(node, "subroutine_call"):
            for part in one.named_children[1:]:
                yield from map(_lower, part.named_children)

    # What it does

    def convert(self) -> None:
        """Turn all units into functions and variables."""
        for unit in self.units.values():
            self.unit, self.file = unit, self.texts[id(unit)]
            for name, known in unit.names.items():
                if not known.is_dummy and (unit.is_shared or known.key or known.value is not None):
                    variable = self._variable(name)
                    value = None if known.value is None else self._value(known.value)
                    place = self._place(unit.node)
                    self.variables[variable.key] = Declaration(variable, value, place)
            if unit.node.type != "module":
                self._function(unit)

    def _function(self, unit: _Unit) -> None:
        place = self._place(unit.node)
        try:
            body = self._statements(unit.node.named_children)
        except RecursionError:
            self.problems.append(f"{place}: {unit.name} is nested too deeply: left out")
            body = ()
        type_ = SourceType("void")
        if unit.result:
            value = self._variable(unit.result)
            body = (*body, Leave("return", value, place))
            type_ = value.type
        parameters = tuple(self._parameter(name) for name in unit.dummies)
        if unit.key == "main":
            parameters = (ARGC, ARGV)
        self.functions[unit.key] = SourceFunction(
            unit.key, unit.name, parameters, body, type_, place
        )

    def _find(self, name: str, unit: _Unit | None = None) -> tuple[_Name, _Unit]:
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
        start.names[name] = _Name(_implicit(name))
        return start.names[name], start

    def _in_module(self, module: str, name: str, depth: int) -> tuple[_Name, _Unit] | None:
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
        unit: _Unit | None = self.unit
        while unit is not None:
            if name in unit.names or any(
                self._in_module(module, renamed.get(name, name), 0) for module, renamed in unit.uses
            ):
                return True
            unit = unit.host
        return False

    def _variable(self, name: str) -> Variable:
        """The variable of a name, with all dimensions in its type."""
        known, owner = self._find(name)
        type_ = known.type
        for _ in known.bounds:
            type_ = SourceType("array", 0, type_)
        if known.is_dummy and known.bounds:
            type_ = SourceType("pointer", 8, type_.element)
        return Variable(known.key or f"{owner.key}::{name}", name, type_)

    def _parameter(self, name: str) -> Variable:
        variable, known = self._variable(name), self.unit.names[name]
        if not known.bounds and self._by_address(self.unit, name):
            return variable._replace(type=SourceType("pointer", 8, known.type))
        return variable

    def _by_address(self, unit: _Unit, name: str) -> bool:
        known = unit.names[name]
        if known.type.kind == "record":
            return True
        return not known.is_input and name in unit.changed and known.type.kind != "other"

    def _scalar(self, name: str) -> Expression:
        """A variable as it stands in an expression."""
        known, owner = self._find(name)
        variable = self._variable(name)
        if known.is_dummy and not known.bounds and self._by_address(owner, name):
            pointer = variable._replace(type=SourceType("pointer", 8, known.type))
            return Element(pointer, Literal(0), known.type)
        return variable

    # Statements

    def _statements(self, nodes: Sequence[Any]) -> Body:
        """Statements, with the directives among them."""
        open_: list[tuple[str, Directive, list[Statement]]] = []
        found: list[Statement] = []
        waiting: list[Directive] = []
        for node in _joined(nodes):
            text = _directive(node)
            if text is not None:
                words = text.split("(")[0].split()
                if not words:
                    continue
                directive = Directive(_in_c(text), (), self._place(node))
                if words[0] == "end" or words[0].startswith("end"):
                    if open_ and not set(words) & _LOOP_WORDS and "atomic" not in words:
                        _, begun, outer = open_.pop()
                        outer.append(begun._replace(body=tuple(found)))
                        found = outer
                elif words[0] in STANDALONE:
                    found.append(directive)
                elif set(words) & _LOOP_WORDS or words[0] == "atomic":
                    waiting.append(directive)
                else:
                    open_.append((words[0], directive, found))
                    found = []
                continue
            statements = self._one(node)
            if waiting and statements:
                *first, last = statements
                body: Body = (last,)
                for directive in reversed(waiting):
                    body = (directive._replace(body=body),)
                statements, waiting = [*first, *body], []
            found += statements
        for _, begun, outer in reversed(open_):
            outer.append(begun._replace(body=tuple(found)))
            found = outer
        return tuple(found)

    def _one(self, node: Any) -> list[Statement]:
        """A statement, with what its expressions need before it."""
        kept, self.before = self.before, []
        made = self._statement(node)
        found, self.before = [*self.before, *made], kept
        return found

    def _statement(self, node: Any) -> Body:
        kind, place = node.type, self._place(node)
        children = node.named_children
        if kind in ("assignment_statement", "pointer_association_statement"):
            return self._assignment(children[0], children[-1], place)
        if kind == "subroutine_call":
            return self._subroutine(node, place)
        if kind in ("if_statement", "elseif_clause"):
            return self._if(node, place)
        if kind in ("do_loop", "do_loop_statement", "do_label_statement"):
            return self._do(node, place)
        if kind == "select_case_statement":
            return self._select(node, place)
        if kind in ("where_statement", "elsewhere_clause", "block_construct", "forall_statement"):
            return self._statements(
                [one for one in children if one.type != "parenthesized_expression"]
            )
        if kind == "keyword_statement":
            word = _text(node).lower().split()[0]
            ways = {"return": "return", "exit": "break", "cycle": "continue"}
            if word in ways:
                value = None
                if word == "return" and self.unit.result:
                    value = self._variable(self.unit.result)
                return (Leave(ways[word], value, place),)
            if word == "goto" or _text(node).lower().startswith("go to"):
                self.problems.append(f"{place}: goto is not followed")
            return ()
        if kind in ("stop_statement", "error_stop_statement"):
            return (ExpressionStatement(Invocation("", "exit", (), OTHER, place), place),)
        if kind == "read_statement":
            return self._read(node, place)
        if kind == "allocate_statement":
            for one in _all(node, "sized_allocation"):
                target, size = one.named_children[0], one.named_children[-1]
                if target.type == "identifier" and size.type == "size":
                    self._find(_lower(target))[0].bounds = _bounds(size)
        if kind == "statement_label":
            return ()
        return ()

    def _if(self, node: Any, place: SourcePlace) -> Body:
        children = node.named_children
        condition = self._value(children[0])
        then, otherwise = [], []
        for child in children[1:]:
            if child.type in ("elseif_clause", "else_clause") or otherwise:
                otherwise.append(child)
            elif child.type != "end_if_statement":
                then.append(child)
        rest: Body = ()
        for clause in reversed(otherwise):
            if clause.type == "else_clause":
                rest = self._statements(clause.named_children)
            elif clause.type == "elseif_clause":
                kept, self.before = self.before, []
                (branch,) = self._if(clause, self._place(clause))
                branch = branch._replace(otherwise=rest)  # type: ignore[union-attr]
                rest, self.before = (*self.before, branch), kept
        return (Branch(condition, self._statements(then), rest, place),)

    def _do(self, node: Any, place: SourcePlace) -> Body:
        head = next((one for one in node.named_children if one.type == "do_statement"), node)
        inner = [one for one in node.named_children if not _is_frame(one)]
        control = _child(head, "loop_control_expression")
        if control is not None:
            name, first, last, *step = control.named_children
            by = self._value(step[0]) if step else Literal(1)
            begin, end = self._value(first), self._value(last)
            body = self._statements(inner)
            variable = self._scalar(_lower(name))
            if not isinstance(variable, Variable):
                variable = self._variable(_lower(name))._replace(type=INTEGER)
            return (CountedLoop(variable, begin, end, by, body, place),)
        test = _child(head, "while_statement")
        condition = None if test is None else self._value(test.named_children[0])
        return (Loop(condition, self._statements(inner), (), True, place),)

    def _select(self, node: Any, place: SourcePlace) -> Body:
        value = self._value(_child(node, "selector").named_children[0])
        body: Body = ()
        for case in reversed([one for one in node.named_children if one.type == "case_statement"]):
            ranges = _child(case, "case_value_range_list")
            statements = self._statements([one for one in case.named_children if one != ranges])
            if ranges is None:
                body = statements
                continue
            tests: list[Expression] = [
                SourceOperation("==", (value, self._value(one)), INTEGER)
                if one.type != "extent_specifier"
                else SourceOperation("unknown", (), INTEGER)
                for one in ranges.named_children
            ]
            condition = tests[0]
            for other in tests[1:]:
                condition = SourceOperation("||", (condition, other), INTEGER)
            body = (Branch(condition, statements, body, place),)
        return body

    def _read(self, node: Any, place: SourcePlace) -> Body:
        text = _text(node).lower()
        block = re.search(r"nml\s*=\s*(\w+)", text)
        names = None
        if block:
            unit: _Unit | None = self.unit
            while unit is not None and names is None:
                names, unit = unit.lists.get(block[1]), unit.host
            for module in self.modules.values():
                names = names or module.lists.get(block[1])
        items = _child(node, "input_item_list")
        targets = [self._scalar(name) for name in names or ()]
        targets += [self._value(one) for one in (items.named_children if items else ())]
        unit_ = _child(node, "unit_identifier")
        source = unit_.named_children[0] if unit_ is not None and unit_.named_children else None
        if source is not None and source.type == "identifier" and targets:
            variable = self._variable(_lower(source))
            if variable.type.kind == "other":
                number = Invocation("", "atoi", (variable,), INTEGER, place)
                assignment = Assignment(targets[0], "", number, targets[0].type)
                return (ExpressionStatement(assignment, place),)
        addresses = tuple(
            Address(one, SourceType("pointer", 8, one.type))
            for one in targets
            if isinstance(one, (Variable, Field, Element)) and one.type.kind in ("int", "real")
        )
        call = Invocation("", "scanf", addresses, INTEGER, place)
        return (ExpressionStatement(call, place),) if addresses else ()

    def _assignment(self, left: Any, right: Any, place: SourcePlace) -> Body:
        rank = self._rank(left)
        if not rank:
            target = self._value(left)
            value = self._value(right)
            return (ExpressionStatement(Assignment(target, "", value, target.type), place),)
        counters = [self._counter() for _ in range(rank)]
        extents = self._extents(left)
        kept, self.before = self.before, []
        target, value = self._value(left, counters), self._value(right, counters)
        inner: Body = (
            *self.before,
            ExpressionStatement(Assignment(target, "", value, target.type), place),
        )
        self.before = kept
        return self._nest(counters, extents, inner, place)

    def _nest(
        self,
        counters: Sequence[Variable],
        extents: Sequence[Expression],
        body: Body,
        place: SourcePlace,
    ) -> Body:
        """Loops over all elements, the first dimension innermost."""
        for counter, extent in zip(counters, extents, strict=True):
            last = SourceOperation("-", (extent, Literal(1)), INTEGER)
            body = (CountedLoop(counter, Literal(0), last, Literal(1), body, place),)
        return body

    def _counter(self) -> Variable:
        self.number += 1
        return Variable(f"{self.unit.key}::section~{self.number}", f"i{self.number}", INTEGER)

    # Arrays

    def _rank(self, node: Any) -> int:
        """Dimensions of the value of an expression."""
        kind = node.type
        if kind == "identifier":
            name = _lower(node)
            return len(self._find(name)[0].bounds) if self._is_known(name) else 0
        if kind == "derived_type_member_expression":
            known = self._member(node)
            return len(known.bounds) if known is not None else 0
        if kind == "call_expression":
            callee, *lists = node.named_children
            arguments = lists[0].named_children if lists else []
            if self._is_array(callee):
                return sum(
                    one.type == "extent_specifier" or self._rank(one) > 0 for one in arguments
                )
            if _lower(callee) in _ELEMENTAL | {"merge"}:
                return max((self._rank(one) for one in arguments), default=0)
            return 0
        if kind in ("math_expression", "unary_expression", "parenthesized_expression") or (
            kind in ("relational_expression", "logical_expression")
        ):
            return max((self._rank(one) for one in node.named_children), default=0)
        return 0

    def _is_array(self, callee: Any) -> bool:
        if callee.type == "derived_type_member_expression":
            known = self._member(callee)
            return known is not None and bool(known.bounds)
        name = _lower(callee)
        if callee.type != "identifier" or not self._is_known(name):
            return False
        return bool(self._find(name)[0].bounds)

    def _member(self, node: Any) -> _Name | None:
        """The declaration of a component."""
        base, name = node.named_children[0], _lower(node.named_children[-1])
        while base.type in ("call_expression", "parenthesized_expression"):
            base = base.named_children[0]
        if base.type == "derived_type_member_expression":
            outer = self._member(base)
            record = outer.type.name if outer is not None else ""
        else:
            record = self._find(_lower(base))[0].type.name
        return self.records.get(record, {}).get(name)

    def _declared(self, node: Any) -> _Name | None:
        if node.type == "derived_type_member_expression":
            return self._member(node)
        return self._find(_lower(node))[0]

    def _extents(self, node: Any) -> list[Expression]:
        """How many elements an array or a section has along each of its dimensions."""
        if node.type in ("math_expression", "unary_expression", "parenthesized_expression"):
            return self._extents(max(node.named_children, key=self._rank))
        sections: list[Any] = []
        array = node
        if node.type == "call_expression":
            array, *lists = node.named_children
            sections = lists[0].named_children if lists else []
            if not self._is_array(array):
                return self._extents(max(sections, key=self._rank))
        known = self._declared(array)
        bounds = known.bounds if known is not None else []
        found: list[Expression] = []
        for dimension, (low, high) in enumerate(bounds):
            section = sections[dimension] if dimension < len(sections) else None
            if section is not None and section.type != "extent_specifier":
                if self._rank(section):
                    found += self._extents(section)
                continue
            first, last = _section(section)
            begin, end = first or low, last or high
            if end is None:
                name = f"extent{dimension + 1} of {_lower(array)}"
                found.append(Variable(f"{self.unit.key}::{name}", name, INTEGER))
                continue
            start: Expression = Literal(1) if begin is None else self._value(begin)
            length = SourceOperation("-", (self._value(end), start), INTEGER)
            found.append(SourceOperation("+", (length, Literal(1)), INTEGER))
        return found

    def _element(
        self, base: Expression, known: _Name, indexes: Sequence[Any], counters: list[Variable]
    ) -> Expression:
        """An element of an array; sections go with counters."""
        type_ = base.type
        parts: list[Expression] = []
        for dimension, (low, _) in enumerate(known.bounds):
            node = indexes[dimension] if dimension < len(indexes) else None
            lowest: Expression = Literal(1) if low is None else self._value(low)
            if node is None or node.type == "extent_specifier":
                first, _ = _section(node)
                own: Expression = counters.pop(0) if counters else Literal(0)
                if first is not None:
                    begin = SourceOperation("-", (self._value(first), lowest), INTEGER)
                    own = SourceOperation("+", (begin, own), INTEGER)
                parts.append(own)
            else:
                parts.append(SourceOperation("-", (self._value(node), lowest), INTEGER))
        found = base
        for part in reversed(parts):
            type_ = type_.element or OTHER
            found = Element(found, part, type_)
        return found

    # Expressions

    def _value(self, node: Any, counters: Sequence[Variable] = ()) -> Expression:
        """An expression; of an array its element at counters."""
        kind = node.type
        children = node.named_children
        if kind == "number_literal":
            return _number(_text(node))
        if kind == "string_literal":
            return Literal(_text(node)[1:-1], SourceType("text"))
        if kind == "boolean_literal":
            return Literal(int("true" in _text(node).lower()), INTEGER)
        if kind == "parenthesized_expression":
            return self._value(children[0], counters)
        if kind == "identifier":
            return self._identifier(node, counters)
        if kind == "derived_type_member_expression":
            return self._component(node, counters, ())
        if kind == "call_expression":
            return self._call(node, counters)
        if kind == "unary_expression":
            value = self._value(children[0], counters)
            sign = _text(node).lstrip()[0]
            return value if sign == "+" else SourceOperation("neg", (value,), value.type)
        if kind in ("math_expression", "relational_expression", "logical_expression"):
            return self._operation(node, counters)
        if kind == "concatenation_expression":
            return Literal("", SourceType("text"))
        if kind == "array_literal":
            values = tuple(self._value(one) for one in children)
            return SourceOperation("list", values, SourceType("array"))
        if kind == "complex_literal":
            return Literal(1.0, SourceType("real", 16))
        return SourceOperation("unknown", (), INTEGER)

    def _identifier(self, node: Any, counters: Sequence[Variable]) -> Expression:
        name = _lower(node)
        if name.startswith("mpi_"):
            if name in ("mpi_proc_null", "mpi_any_source", "mpi_any_tag"):
                return Literal(-2 if name == "mpi_proc_null" else -3)
            return Variable(name.upper(), name.upper(), OTHER)
        known, _ = self._find(name)
        if known.bounds and counters:
            return self._element(self._variable(name), known, (), list(counters))
        return self._variable(name) if known.bounds else self._scalar(name)

    def _component(
        self, node: Any, counters: Sequence[Variable], indexes: Sequence[Any]
    ) -> Expression:
        base_node, name = node.named_children[0], _lower(node.named_children[-1])
        base = self._value(base_node)
        known = self._member(node) or _Name(OTHER)
        type_ = known.type
        for _ in known.bounds:
            type_ = SourceType("array", 0, type_)
        found = Field(base, name, type_)
        if known.bounds and (indexes or counters):
            return self._element(found, known, indexes, list(counters))
        return found

    def _operation(self, node: Any, counters: Sequence[Variable]) -> Expression:
        text = next((_text(one).lower() for one in node.children if not one.is_named), "+")
        operator = _OPERATORS.get(text, text)
        operands = tuple(self._value(one, counters) for one in node.named_children)
        if node.type != "math_expression":
            return SourceOperation(operator, operands, INTEGER)
        type_ = max((one.type for one in operands), key=lambda one: (one.kind == "real", one.size))
        if operator == "**":
            power = operands[1]
            if isinstance(power, Literal) and power.value == 2 and type_.kind == "real":
                return SourceOperation("*", (operands[0], operands[0]), type_)
            if type_.kind == "real":
                return Invocation("", "pow", operands, type_, self._place(node))
        if type_.kind == "real":
            operands = tuple(_real(one, type_) for one in operands)
        return SourceOperation(operator, operands, type_)

    def _call(self, node: Any, counters: Sequence[Variable]) -> Expression:
        callee, *lists = node.named_children
        arguments = lists[0].named_children if lists else []
        if callee.type == "derived_type_member_expression":
            if self._is_array(callee):
                return self._component(callee, counters, arguments)
            return self._invocation(_lower(callee.named_children[-1]), arguments, OTHER, node)
        if callee.type == "call_expression":  # a part of a text
            return self._call(callee, counters)
        name = _lower(callee)
        if self._is_array(callee):
            return self._element(
                self._variable(name), self._find(name)[0], arguments, list(counters)
            )
        if self._procedure(name, len(arguments)) is None:
            found = self._intrinsic(name, arguments, counters, node)
            if found is not None:
                return found
        return self._invocation(name, arguments, _implicit(name), node)

    def _intrinsic(
        self, name: str, arguments: Sequence[Any], counters: Sequence[Variable], node: Any
    ) -> Expression | None:
        place = self._place(node)
        if name in _REDUCTIONS and arguments and self._rank(arguments[0]):
            return self._reduction(name, arguments, place)
        if name in _INQUIRIES:
            return self._inquiry(name, arguments)
        arguments = [one for one in arguments if one.type != "keyword_argument"]
        if name in _CONVERSIONS and arguments:
            value = self._value(arguments[0], counters)
            kind = _CONVERSIONS[name]
            type_ = INTEGER if kind == "int" else SourceType("real", 8)
            return value if value.type.kind == kind else SourceOperation("cast", (value,), type_)
        if name not in _ELEMENTAL and name != "merge":
            if name == "command_argument_count" or name == "iargc":
                return SourceOperation("-", (ARGC, Literal(1)), INTEGER)
            return None
        values = [self._value(one, counters) for one in arguments]
        if not values:
            return None
        type_ = max((one.type for one in values), key=lambda one: (one.kind == "real", one.size))
        if name == "merge" and len(values) == 3:
            return SourceOperation("?:", (values[2], values[0], values[1]), type_)
        if name in _LARGEST:
            function = "max" if "max" in name else "min"
            found = values[0]
            for other in values[1:]:
                found = Invocation("", function, (found, other), type_, place)
            return found
        if name in ("mod", "modulo"):
            if type_.kind == "int":
                return SourceOperation("%", tuple(values), type_)
            return Invocation("", "fmod", tuple(values), type_, place)
        if name == "sign":
            return Invocation("", "fabs", (values[0],), type_, place)
        integer = name in ("nint", "idnint", "floor", "ceiling")
        own = INTEGER if integer else type_
        return Invocation("", _RENAMED.get(name, name), tuple(values), own, place)

    def _inquiry(self, name: str, arguments: Sequence[Any]) -> Expression:
        if name == "kind":
            return Literal(8)
        if name in ("huge", "tiny", "epsilon"):
            return Literal(1.0, SourceType("real", 8))
        if name in ("size", "ubound", "lbound") and arguments and self._rank(arguments[0]):
            extents = self._extents(arguments[0])
            chosen = None
            if len(arguments) > 1 and arguments[1].type == "number_literal":
                chosen = int(_text(arguments[1])) - 1
            if name == "lbound":
                return Literal(1)
            if chosen is not None and chosen < len(extents):
                return extents[chosen]
            found = extents[0]
            for other in extents[1:]:
                found = SourceOperation("*", (found, other), INTEGER)
            return found
        return SourceOperation("unknown", (), INTEGER)

    def _reduction(self, name: str, arguments: Sequence[Any], place: SourcePlace) -> Expression:
        """A sum or another value of all elements: a loop before the statement."""
        array = arguments[0]
        counters = [self._counter() for _ in range(self._rank(array))]
        extents = self._extents(array)
        kept, self.before = self.before, []
        value = self._value(array, counters)
        if name == "dot_product" and len(arguments) > 1:
            value = SourceOperation("*", (value, self._value(arguments[1], counters)), value.type)
        self.number += 1
        total = Variable(f"{self.unit.key}::total~{self.number}", f"total{self.number}", value.type)
        operator = _REDUCTIONS[name]
        if operator in "+*":
            step = Assignment(total, operator, value, value.type)
        else:
            largest = Invocation("", operator, (total, value), value.type, place)
            step = Assignment(total, "", largest, value.type)
        body: Body = (*self.before, ExpressionStatement(step, place))
        self.before = [
            *kept,
            Declaration(total, Literal(0.0, value.type), place),
            *self._nest(counters, extents, body, place),
        ]
        return total

    # Calls

    def _procedure(self, name: str, count: int) -> _Unit | None:
        """The procedure of a name; of several with a common name the one with so many arguments."""
        names = [name, *self.generic.get(name, ())]
        found = [unit for one in names for unit in self.by_name.get(one, ())]
        inside = [unit for unit in found if unit.host in (self.unit, self.unit.host)]
        fitting = [unit for unit in inside or found if len(unit.dummies) == count]
        return next(iter(fitting or inside or found), None)

    def _subroutine(self, node: Any, place: SourcePlace) -> Body:
        callee, *lists = node.named_children
        arguments = lists[0].named_children if lists else []
        if callee.type == "derived_type_member_expression":
            call = self._invocation(_lower(callee.named_children[-1]), arguments, OTHER, node)
            return (ExpressionStatement(call, place),)
        name = _lower(callee)
        if name in ("getarg", "get_command_argument") and len(arguments) > 1:
            target = self._value(arguments[1])
            word = Element(ARGV, self._value(arguments[0]), SourceType("pointer", 8))
            return (ExpressionStatement(Assignment(target, "", word, target.type), place),)
        if name in ("exit", "abort"):
            return (ExpressionStatement(Invocation("", "exit", (), OTHER, place), place),)
        return (ExpressionStatement(self._invocation(name, arguments, OTHER, node), place),)

    def _invocation(
        self, name: str, arguments: Sequence[Any], type_: SourceType, node: Any
    ) -> Invocation:
        place = self._place(node)
        if name in self.mpi:
            return self._message(name, arguments, place)
        unit = self._procedure(name, len(arguments))
        if unit is None:
            values = tuple(self._passed(one) for one in arguments)
            return Invocation("", name, values, type_, place)
        if unit.result:
            type_ = unit.names.get(unit.result, _Name(type_)).type
        given: dict[int, Any] = {}
        for position, one in enumerate(arguments):
            if one.type == "keyword_argument":
                keyword = _lower(one.named_children[0])
                if keyword in unit.dummies:
                    given[unit.dummies.index(keyword)] = one.named_children[-1]
            else:
                given[position] = one
        values_: list[Expression] = []
        for position, dummy in enumerate(unit.dummies):
            if position not in given:
                values_.append(SourceOperation("unknown", (), OTHER))
                continue
            known = unit.names[dummy]
            if known.bounds:
                values_.append(self._passed(given[position]))
            elif self._by_address(unit, dummy):
                values_.append(self._address(given[position], known.type, place))
            else:
                values_.append(self._value(given[position]))
        return Invocation(unit.key, unit.name, tuple(values_), type_, place)

    def _passed(self, node: Any) -> Expression:
        """An argument that is an array, or begins at an element of one."""
        value = self._value(node)
        if isinstance(value, Element) and value.type.kind not in ("array", "record"):
            return Address(value, SourceType("pointer", 8, value.type))
        return value

    def _address(self, node: Any, type_: SourceType, place: SourcePlace) -> Expression:
        value = self._value(node)
        if (
            isinstance(value, Element)
            and value.subscript == Literal(0)
            and (value.base.type.kind == "pointer")
        ):
            return value.base  # an argument that is passed on
        if not isinstance(value, (Variable, Field, Element)):
            self.number += 1
            temporary = Variable(f"{self.unit.key}::value~{self.number}", "value", type_)
            self.before.append(Declaration(temporary, value, place))
            value = temporary
        return Address(value, SourceType("pointer", 8, type_))

    def _message(self, name: str, arguments: Sequence[Any], place: SourcePlace) -> Invocation:
        """A call of MPI as C writes it: without the error code, results by their addresses."""
        c_name, pointers = self.mpi[name]
        if c_name in ("MPI_Init", "MPI_Init_thread"):
            nothing = Literal(0)
            rest = tuple(self._value(one) for one in arguments[:1])
            return Invocation(c_name, c_name, (nothing, nothing, *rest), INTEGER, place)
        values: list[Expression] = []
        for one, is_pointer in zip(arguments, pointers, strict=False):
            value = self._value(one)
            if is_pointer and isinstance(value, (Variable, Field, Element)):
                whole = value.type.kind in ("array", "pointer") or value.type == OTHER
                if not whole:
                    value = Address(value, SourceType("pointer", 8, value.type))
            values.append(value)
        return Invocation(c_name, c_name, tuple(values), INTEGER, place)

    def _place(self, node: Any) -> SourcePlace:
        assert self.file is not None
        line = min(node.start_point[0], len(self.file.places) - 1)
        return self.file.places[line] if self.file.places else SourcePlace("?", 0)


def _text(node: Any) -> str:
    return str(node.text.decode("utf-8", "replace"))


def _lower(node: Any) -> str:
    return "" if node is None else _text(node).lower().strip()


def _child(node: Any, kind: str) -> Any:
    return next((one for one in node.named_children if one.type == kind), None)


def _all(node: Any, kind: str) -> Iterator[Any]:
    """All nodes of a kind inside of another one, but for those of procedures inside of it."""
    for child in node.named_children:
        if child.type == kind:
            yield child
        elif child.type != "internal_procedures":
            yield from _all(child, kind)


def _bounds(node: Any) -> list[tuple[Any, Any]]:
    """Lowest and highest index of each dimension, as far as they are said."""
    found: list[tuple[Any, Any]] = []
    for one in node.named_children:
        if one.type == "extent_specifier":
            found.append(_section(one))
        elif one.type == "assumed_size":
            found.append((None, None))
        else:
            found.append((None, one))
    return found


def _section(node: Any) -> tuple[Any, Any]:
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


def _number(text: str) -> Literal:
    plain = text.lower().partition("_")[0]
    if re.fullmatch(r"\d+", plain):
        return Literal(int(plain))
    size = 8 if "d" in plain or "_" in text else 4
    try:
        return Literal(float(plain.replace("d", "e")), SourceType("real", size))
    except ValueError:  # in another base
        return Literal(0)


def _real(value: Expression, type_: SourceType) -> Expression:
    if value.type.kind == "int":
        return SourceOperation("cast", (value,), type_)
    return value


def _implicit(name: str) -> SourceType:
    if name.startswith("omp_get"):
        return INTEGER
    return INTEGER if name[:1] in "ijklmn" else SourceType("real", 4)


def _is_frame(node: Any) -> bool:
    return node.type == "do_statement" or node.type.startswith("end_do")


def _directive(node: Any) -> str | None:
    """The text of a directive of OpenMP; None of anything else."""
    if node.type != "comment":
        return None
    found = re.match(r"!\$omp\b&?\s*(.*)", _text(node), re.IGNORECASE | re.DOTALL)
    return found[1].strip().lower() if found else None


def _in_c(text: str) -> str:
    """A directive as C writes it."""
    return re.sub(r"\bdo\b", "for", text)


class _Joined:
    """A comment that goes on in the next ones."""

    def __init__(self, text: str, node: Any) -> None:
        self.type, self.text, self.start_point = "comment", text.encode(), node.start_point


def _joined(nodes: Sequence[Any]) -> Iterator[Any]:
    """Nodes, with the lines of a directive as one."""
    begun: list[Any] = []
    words = ""
    for node in nodes:
        text = _directive(node)
        if text is None:
            yield node
            continue
        words = f"{words} {text.removeprefix('&').removesuffix('&').strip()}".strip()
        begun = begun or [node]
        if not text.endswith("&"):
            yield _Joined(f"!$omp {words}", begun[0])
            begun, words = [], ""
