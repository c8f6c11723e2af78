"""Fortran: from files to the intermediate form, by tree-sitter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from popmodel.source.fortran_expressions import ARGC, ARGV, FortranExpressions
from popmodel.source.fortran_text import SUFFIXES
from popmodel.source.fortran_units import (
    FortranUnit,
    bounds_of,
    child_of,
    lower_text,
    node_text,
    nodes_in,
)
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
from popmodel.source.openmp_directives import OpenMPDirective, parsed_directive

__all__ = ["SUFFIXES", "read"]

_WRAPPERS = (
    *("where_statement", "elsewhere_clause", "block_construct", "associate_statement"),
    *("coarray_critical_statement", "coarray_team_statement", "preproc_if", "preproc_else"),
)
"""Statements around others, which are carried out."""
_COSTLESS_NAMES = (
    "allocate assignment backspace block_data close common continue contains data deallocate "
    "dimension do else else_if elseif elsewhere end endfile enumerator equivalence external "
    "file_position flush format implicit import include inquire intrinsic module namelist "
    "nullify open parameter parameters pause pointer print private procedure program public "
    "rewind save sequence subroutine function target use volatile wait write case type "
)
_COSTLESS = frozenset(f"{word}_statement" for word in _COSTLESS_NAMES.split())
"""Statements that declare something, or whose time is not worth a word."""


def read(paths: Sequence[Path], arguments: Sequence[str] = ()) -> SourceProgram:
    """Read the files of a program; as `popmodel.source.c_family.read`."""
    reader = _FortranReader(arguments)
    for path in paths:
        reader.collect(path)
    reader.convert()
    return SourceProgram(reader.functions, reader.variables, tuple(reader.problems))


class _FortranReader(FortranExpressions):
    """Turns units into functions and variables."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        self.functions: dict[str, SourceFunction] = {}
        self.variables: dict[str, Declaration] = {}
        self.masks: list[tuple[Any, bool]] = []  # Of ``where``, and whether they have to hold
        self.shared_ends: dict[int, Sequence[Any]] = {}  # Statements with a label, of inner loops

    def convert(self) -> None:
        """Turn all units into functions and variables."""
        for unit in self.units.values():
            self.unit, self.text = unit, unit.text
            for name, known in list(unit.names.items()):  # implicit types come along
                if not known.is_dummy and (unit.is_shared or known.key or known.value is not None):
                    variable = self._variable(name)
                    value = None if known.value is None else self._value(known.value)
                    place = self._place(unit.node)
                    self.variables[variable.key] = Declaration(variable, value, place)
            if unit.node.type != "module":
                self._function(unit)

    def _function(self, unit: FortranUnit) -> None:
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
        if unit.name == "main":
            parameters = (ARGC, ARGV)
        self.functions[unit.key] = SourceFunction(
            unit.key, unit.name, parameters, body, type_, place
        )

    # Statements

    def _statements(self, nodes: Sequence[Any]) -> Body:
        """Statements, with the directives among them."""
        open_: list[tuple[OpenMPDirective, Directive, list[Statement]]] = []
        found: list[Statement] = []
        waiting: list[Directive] = []
        for node in _joined(nodes):
            text = _directive(node)
            if text is None:
                statements = self._one(node)
                if waiting and statements:
                    *first, last = statements
                    body: Body = (last,)
                    for directive in reversed(waiting):
                        body = (directive._replace(body=body),)
                    statements, waiting = [*first, *body], []
                found += statements
                continue
            omp, directive = parsed_directive(text), Directive(text, (), self._place(node))
            if omp.constructs and omp.constructs[0].startswith("end"):
                ended = omp.constructs[0].removeprefix("end").strip()
                if any(_is_end(ended, begun) for begun, _, _ in open_):
                    is_last = False
                    while not is_last:  # those inside have ended as well
                        begun, directive, outer = open_.pop()
                        outer.append(directive._replace(body=tuple(found)))
                        found, is_last = outer, _is_end(ended, begun)
            elif omp.is_alone or omp.constructs == ("section",):
                found.append(directive)
            elif omp.has_loop or omp.constructs == ("atomic",):
                waiting.append(directive)
            else:
                open_.append((omp, directive, found))
                found = []
        for _, directive, outer in reversed(open_):
            outer.append(directive._replace(body=tuple(found)))
            found = outer
        return (*found, *waiting)

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
            return (self._if(node, place),)
        if kind in ("do_loop", "do_loop_statement", "do_label_statement"):
            return self._do(node, place)
        if kind == "select_case_statement":
            return self._select(node, place)
        if kind in _WRAPPERS:
            if kind == "associate_statement":
                self.problems.append(f"{place}: associate: its names are variables of their own")
            kept = self.masks
            if kind == "elsewhere_clause":
                self.masks = [*kept[:-1], (kept[-1][0], False)]
            masks = [one for one in children if one.type == "parenthesized_expression"]
            if kind in ("where_statement", "elsewhere_clause"):
                self.masks = [*self.masks, *((mask, True) for mask in masks)]
            body = self._statements([one for one in children if one not in masks])
            self.masks = kept
            return body
        if kind == "forall_statement":
            inner = [one for one in children if one.type.endswith("_statement")]
            return self._concurrent(node, "triplet_spec", inner, place)
        if kind == "keyword_statement":
            word = node_text(node).lower().split()[0]
            ways = {"return": "return", "exit": "break", "cycle": "continue"}
            if word in ways:
                value = None
                if word == "return" and self.unit.result:
                    value = self._variable(self.unit.result)
                return (Leave(ways[word], value, place),)
            if word == "goto" or node_text(node).lower().startswith("go to"):
                self.problems.append(f"{place}: goto is not followed")
            elif word != "continue":
                self.problems.append(f"{place}: {word} is not followed")
            return ()
        if kind in ("stop_statement", "error_stop_statement"):
            return (ExpressionStatement(Invocation("", "exit", (), OTHER, place), place),)
        if kind == "read_statement":
            return self._read(node, place)
        if kind == "allocate_statement":
            made: list[Statement] = []
            for one in nodes_in(node, "sized_allocation"):
                target, size = one.named_children[0], one.named_children[-1]
                if target.type == "identifier" and size.type == "size":
                    self._find(lower_text(target))[0].bounds = bounds_of(size)
                elif size.type == "size":
                    for dimension, (low, high) in enumerate(bounds_of(size)):
                        length = self._length(low, high)
                        assignment = Assignment(self._kept(target, dimension), "", length, INTEGER)
                        made.append(ExpressionStatement(assignment, place))
            return tuple(made)
        if kind.endswith("_statement") and kind not in _COSTLESS and not kind.startswith("end"):
            words = kind.removesuffix("_statement").replace("_", " ")
            self.problems.append(f"{place}: {words} is not followed")
        return ()

    def _if(self, node: Any, place: SourcePlace, rest: Body = ()) -> Branch:
        """A branch; `rest` is what follows where its condition does not hold."""
        children = node.named_children
        condition = self._value(children[0])
        then: list[Any] = []
        otherwise: list[Any] = []
        for child in children[1:]:
            if child.type in ("elseif_clause", "else_clause") or otherwise:
                otherwise.append(child)
            elif child.type != "end_if_statement":
                then.append(child)
        for clause in reversed(otherwise):
            if clause.type == "else_clause":
                rest = self._statements(clause.named_children)
            elif clause.type == "elseif_clause":
                kept, self.before = self.before, []
                branch = self._if(clause, self._place(clause), rest)
                rest, self.before = (*self.before, branch), kept
        return Branch(condition, self._statements(then), rest, place)

    def _do(self, node: Any, place: SourcePlace) -> Body:
        head = next((one for one in node.named_children if one.type == "do_statement"), node)
        inner: list[Any] = []
        for child in node.named_children:
            if child.type == "end_do_label_loop_statement":  # the last statement has the label
                within, labelled = inner[-1:], child.named_children
                while within and within[0].type == "do_loop":  # or shares it with loops inside
                    *_, last, end = within[0].named_children
                    if end.type != child.type or end.named_children[0].type != "do_label_virtual":
                        break
                    self.shared_ends[within[0].id] = labelled
                    within, labelled = [last], []
                inner += labelled
            elif not (child.type == "do_statement" or child.type.startswith("end_do")):
                inner.append(child)
        inner += self.shared_ends.pop(node.id, ())
        concurrent = next(nodes_in(head, "concurrent_header"), None)
        if concurrent is not None:
            return self._concurrent(concurrent, "concurrent_control", inner, place)
        control = child_of(head, "loop_control_expression")
        if control is not None:
            name, first, last, *step = control.named_children
            by = self._value(step[0]) if step else Literal(1)
            begin, end = self._value(first), self._value(last)
            body = self._statements(inner)
            variable = self._scalar(lower_text(name))
            if not isinstance(variable, Variable):
                variable = self._variable(lower_text(name))._replace(type=INTEGER)
            return (CountedLoop(variable, begin, end, by, body, place),)
        test = child_of(head, "while_statement")
        condition = None if test is None else self._value(test.named_children[0])
        return (Loop(condition, self._statements(inner), (), True, place),)

    def _concurrent(
        self, header: Any, control: str, inner: Sequence[Any], place: SourcePlace
    ) -> Body:
        """Loops inside of each other, as of ``do concurrent`` and ``forall``; a mask decides."""
        body = self._statements(inner)
        controls = [one for one in header.named_children if one.type == control]
        for mask in header.named_children:
            if mask.type in ("concurrent_mask", "relational_expression", "logical_expression"):
                test = mask.named_children[0] if mask.type == "concurrent_mask" else mask
                body = (Branch(self._value(test), body, (), place),)
        for one in reversed(controls):
            name, first, last, *step = one.named_children
            by = self._value(step[0]) if step else Literal(1)
            variable = self._variable(lower_text(name))._replace(type=INTEGER)
            body = (CountedLoop(variable, self._value(first), self._value(last), by, body, place),)
        return body

    def _select(self, node: Any, place: SourcePlace) -> Body:
        value = self._value(child_of(node, "selector").named_children[0])
        body: Body = ()
        for case in reversed([one for one in node.named_children if one.type == "case_statement"]):
            ranges = child_of(case, "case_value_range_list")
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
        text = node_text(node).lower()
        block = re.search(r"nml\s*=\s*(\w+)", text)
        names = None
        if block:
            unit: FortranUnit | None = self.unit
            while unit is not None and names is None:
                names, unit = unit.lists.get(block[1]), unit.host
            for module in self.modules.values():
                names = names or module.lists.get(block[1])
        items = child_of(node, "input_item_list")
        targets = [self._scalar(name) for name in names or ()]
        targets += [self._value(one) for one in (items.named_children if items else ())]
        unit_ = child_of(node, "unit_identifier")
        source = unit_.named_children[0] if unit_ is not None and unit_.named_children else None
        if source is not None and source.type == "identifier" and targets:
            variable = self._variable(lower_text(source))
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
        if right.type == "array_literal" and left.type == "identifier" and rank == 1:
            variable = self._variable(lower_text(left))
            element = variable.type.element or OTHER
            values = [self._value(one) for one in right.named_children]
            return tuple(
                ExpressionStatement(
                    Assignment(Element(variable, Literal(number), element), "", value, element),
                    place,
                )
                for number, value in enumerate(values)
            )
        counters = [self._counter() for _ in range(rank)]
        extents = self._extents(left)
        kept, self.before = self.before, []
        target, value = self._value(left, counters), self._value(right, counters)
        body: Body = (ExpressionStatement(Assignment(target, "", value, target.type), place),)
        for mask, holds in self.masks:
            test = self._value(mask, counters)
            test = test if holds else SourceOperation("!", (test,), INTEGER)
            body = (Branch(test, body, (), place),)
        inner: Body = (*self.before, *body)
        self.before = kept
        return self._nest(counters, extents, inner, place)

    def _subroutine(self, node: Any, place: SourcePlace) -> Body:
        callee, *lists = node.named_children
        arguments = lists[0].named_children if lists else []
        if callee.type == "derived_type_member_expression":
            call = self._invocation(lower_text(callee.named_children[-1]), arguments, OTHER, node)
            return (ExpressionStatement(call, place),)
        name = lower_text(callee)
        if name in ("getarg", "get_command_argument") and len(arguments) > 1:
            target = self._value(arguments[1])
            word = Element(ARGV, self._value(arguments[0]), SourceType("pointer", 8))
            return (ExpressionStatement(Assignment(target, "", word, target.type), place),)
        if name in ("exit", "abort"):
            return (ExpressionStatement(Invocation("", "exit", (), OTHER, place), place),)
        return (ExpressionStatement(self._invocation(name, arguments, OTHER, node), place),)


def _is_end(ended: str, begun: OpenMPDirective) -> bool:
    """Whether a directive ends what another one began."""
    return ended == begun.name or (ended == "metadirective" and begun.is_variant)


def _directive(node: Any) -> str | None:
    """The text of a directive of OpenMP; None of anything else."""
    if node.type != "comment":
        return None
    found = re.match(r"!\$omp\b&?\s*(.*)", node_text(node), re.IGNORECASE | re.DOTALL)
    return found[1].strip().lower() if found else None


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
