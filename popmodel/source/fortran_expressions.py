"""Fortran: expressions, arrays and calls in the intermediate form.

Indexes are turned around, so that elements beside each other have neighbouring last indexes, and
count from 0. Scalar arguments that a procedure may change are passed by their address. Arrays as a
whole, and sections of them, become loops.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from popmodel.source.fortran_units import (
    DeclaredName,
    FortranUnit,
    FortranUnits,
    implicit_type,
    lower_text,
    node_text,
    section_of,
)
from popmodel.source.intermediate_form import (
    INTEGER,
    OTHER,
    Address,
    Assignment,
    Body,
    CountedLoop,
    Declaration,
    Element,
    Expression,
    ExpressionStatement,
    Field,
    Invocation,
    Literal,
    SourceOperation,
    SourcePlace,
    SourceType,
    Statement,
    Variable,
)

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
    **{"dot_product": "+", "any": "||", "all": "&&"},
}
_INQUIRIES = {
    *("size", "ubound", "lbound", "kind", "huge", "tiny", "epsilon"),
    *("present", "allocated", "associated"),
}
_ELEMENTAL = _MATHEMATICS | set(_RENAMED) | set(_CONVERSIONS) | _LARGEST | {"mod", "modulo", "sign"}
_POINTERS = re.compile(r"^int (MPI_\w+)\((.*)\);$", re.MULTILINE)
ARGC = Variable("main::argc", "argc", INTEGER)
ARGV = Variable("main::argv", "argv", SourceType("pointer", 8, SourceType("pointer", 8)))


_ELEMENTWISE = (
    "math_expression",
    "unary_expression",
    "parenthesized_expression",
    "relational_expression",
    "logical_expression",
)
"""Operations on arrays, element by element."""


class FortranExpressions(FortranUnits):
    """Turns expressions and calls into the intermediate form."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__(arguments)
        header = (Path(__file__).parent / "headers" / "mpi.h").read_text()
        self.mpi = {  # Which arguments are addresses
            name.lower(): (name, ["*" in part for part in parts.split(",")])
            for name, parts in _POINTERS.findall(header)
        }
        self.before: list[Statement] = []  # What an expression needs first
        self.number = 0  # Of variables that are not the program's

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

    def _by_address(self, unit: FortranUnit, name: str) -> bool:
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

    # Arrays

    def _rank(self, node: Any) -> int:
        """Dimensions of the value of an expression."""
        kind = node.type
        if kind == "identifier":
            name = lower_text(node)
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
            if lower_text(callee) in _REDUCTIONS and _dimension(arguments) is not None:
                return self._rank(arguments[0]) - 1
            if lower_text(callee) in _ELEMENTAL | {"merge"}:
                return max((self._rank(one) for one in arguments), default=0)
            return 0
        if kind in _ELEMENTWISE:
            return max((self._rank(one) for one in node.named_children), default=0)
        return 0

    def _is_array(self, callee: Any) -> bool:
        if callee.type == "derived_type_member_expression":
            known = self._member(callee)
            return known is not None and bool(known.bounds)
        name = lower_text(callee)
        if callee.type != "identifier" or not self._is_known(name):
            return False
        return bool(self._find(name)[0].bounds)

    def _member(self, node: Any) -> DeclaredName | None:
        """The declaration of a component."""
        base, name = node.named_children[0], lower_text(node.named_children[-1])
        while base.type in ("call_expression", "parenthesized_expression"):
            base = base.named_children[0]
        if base.type == "derived_type_member_expression":
            outer = self._member(base)
            record = outer.type.name if outer is not None else ""
        else:
            record = self._find(lower_text(base))[0].type.name
        return self.records.get(record, {}).get(name)

    def _declared(self, node: Any) -> DeclaredName | None:
        if node.type == "derived_type_member_expression":
            return self._member(node)
        return self._find(lower_text(node))[0]

    def _extents(self, node: Any) -> list[Expression]:
        """How many elements an array or a section has along each of its dimensions."""
        if node.type in _ELEMENTWISE:
            return self._extents(max(node.named_children, key=self._rank))
        sections: list[Any] = []
        array = node
        if node.type == "call_expression":
            array, *lists = node.named_children
            sections = lists[0].named_children if lists else []
            if not self._is_array(array):
                along = _dimension(sections) if lower_text(array) in _REDUCTIONS else None
                extents = self._extents(max(sections, key=self._rank))
                return [one for number, one in enumerate(extents) if number != along]
        known = self._declared(array)
        bounds = known.bounds if known is not None else []
        found: list[Expression] = []
        for dimension, (low, high) in enumerate(bounds):
            section = sections[dimension] if dimension < len(sections) else None
            if section is not None and section.type != "extent_specifier":
                if self._rank(section):
                    found += self._extents(section)
                continue
            first, last = section_of(section)
            begin, end = first or low, last or high
            found.append(self._kept(array, dimension) if end is None else self._length(begin, end))
        return found

    def _length(self, begin: Any, end: Any) -> Expression:
        start: Expression = Literal(1) if begin is None else self._value(begin)
        length = SourceOperation("-", (self._value(end), start), INTEGER)
        return SourceOperation("+", (length, Literal(1)), INTEGER)

    def _kept(self, array: Any, dimension: int) -> Expression:
        """How many elements an array has that is allocated somewhere: known of its object."""
        name = f"extent{dimension + 1} of {lower_text(array)}"
        if array.type == "derived_type_member_expression":
            base, component = array.named_children[0], lower_text(array.named_children[-1])
            return Field(self._value(base), f"extent{dimension + 1} of {component}", INTEGER)
        return Variable(f"{self.unit.key}::{name}", name, INTEGER)

    def _element(
        self,
        base: Expression,
        known: DeclaredName,
        indexes: Sequence[Any],
        counters: list[Variable],
    ) -> Expression:
        """An element of an array; sections go with counters."""
        type_ = base.type
        parts: list[Expression] = []
        for dimension, (low, _) in enumerate(known.bounds):
            node = indexes[dimension] if dimension < len(indexes) else None
            lowest: Expression = Literal(1) if low is None else self._value(low)
            if node is None or node.type == "extent_specifier":
                first, _ = section_of(node)
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
            return _number(node_text(node))
        if kind == "string_literal":
            return Literal(node_text(node)[1:-1], SourceType("text"))
        if kind == "boolean_literal":
            return Literal(int("true" in node_text(node).lower()), INTEGER)
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
            sign = node_text(node).lstrip()[0]
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
        name = lower_text(node)
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
        base_node, name = node.named_children[0], lower_text(node.named_children[-1])
        base = self._value(base_node)
        known = self._member(node) or DeclaredName(OTHER)
        type_ = known.type
        for _ in known.bounds:
            type_ = SourceType("array", 0, type_)
        found = Field(base, name, type_)
        if known.bounds and (indexes or counters):
            return self._element(found, known, indexes, list(counters))
        return found

    def _operation(self, node: Any, counters: Sequence[Variable]) -> Expression:
        text = next((node_text(one).lower() for one in node.children if not one.is_named), "+")
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
            return self._invocation(lower_text(callee.named_children[-1]), arguments, OTHER, node)
        if callee.type == "call_expression":  # a part of a text
            return self._call(callee, counters)
        name = lower_text(callee)
        if self._is_array(callee):
            return self._element(
                self._variable(name), self._find(name)[0], arguments, list(counters)
            )
        if self._procedure(name, len(arguments)) is None:
            found = self._intrinsic(name, arguments, counters, node)
            if found is not None:
                return found
        return self._invocation(name, arguments, implicit_type(name), node)

    def _intrinsic(
        self, name: str, arguments: Sequence[Any], counters: Sequence[Variable], node: Any
    ) -> Expression | None:
        place = self._place(node)
        if name in _REDUCTIONS and arguments and self._rank(arguments[0]):
            return self._reduction(name, arguments, counters, place)
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
                chosen = int(node_text(arguments[1])) - 1
            if name == "lbound":
                return Literal(1)
            if chosen is not None and chosen < len(extents):
                return extents[chosen]
            found = extents[0]
            for other in extents[1:]:
                found = SourceOperation("*", (found, other), INTEGER)
            return found
        return SourceOperation("unknown", (), INTEGER)

    def _reduction(
        self, name: str, arguments: Sequence[Any], outer: Sequence[Variable], place: SourcePlace
    ) -> Expression:
        """A sum or another value of all elements, or along a dimension: a loop before."""
        array, along = arguments[0], _dimension(arguments)
        counters, indexes = [self._counter() for _ in range(self._rank(array))], list(outer)
        extents = self._extents(array)
        if along is None:
            indexes = counters
        else:
            counters, extents = counters[along : along + 1], extents[along : along + 1]
            indexes[along:along] = counters
        kept, self.before = self.before, []
        value = self._value(array, indexes)
        if name == "dot_product" and len(arguments) > 1:
            value = SourceOperation("*", (value, self._value(arguments[1], indexes)), value.type)
        self.number += 1
        total = Variable(f"{self.unit.key}::total~{self.number}", f"total{self.number}", value.type)
        operator = _REDUCTIONS[name]
        if operator in ("&&", "||"):
            both = SourceOperation(operator, (total, value), value.type)
            step = Assignment(total, "", both, value.type)
        elif operator in "+*":
            step = Assignment(total, operator, value, value.type)
        else:
            largest = Invocation("", operator, (total, value), value.type, place)
            step = Assignment(total, "", largest, value.type)
        body: Body = (*self.before, ExpressionStatement(step, place))
        self.before = [
            *kept,
            Declaration(total, Literal(float(operator in ("*", "&&")), value.type), place),
            *self._nest(counters, extents, body, place),
        ]
        return total

    # Calls

    def _procedure(self, name: str, count: int) -> FortranUnit | None:
        """The procedure of a name; of several with a common name the one with so many arguments."""
        names = [name, *self.generic.get(name, ())]
        found = [unit for one in names for unit in self.by_name.get(one, ())]
        inside = [unit for unit in found if unit.host in (self.unit, self.unit.host)]
        fitting = [unit for unit in inside or found if len(unit.dummies) == count]
        return next(iter(fitting or inside or found), None)

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
            type_ = unit.names.get(unit.result, DeclaredName(type_)).type
        given: dict[int, Any] = {}
        for position, one in enumerate(arguments):
            if one.type == "keyword_argument":
                keyword = lower_text(one.named_children[0])
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

    def _counter(self) -> Variable:
        self.number += 1
        return Variable(f"{self.unit.key}::section~{self.number}", f"i{self.number}", INTEGER)

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


def _dimension(arguments: Sequence[Any]) -> int | None:
    """Along which dimension an array is summed up, counted from 0; None of all of it."""
    for one in arguments[1:]:
        is_named = one.type == "keyword_argument" and lower_text(one.named_children[0]) == "dim"
        number = one.named_children[-1] if is_named else one
        if number.type == "number_literal":
            return int(node_text(number)) - 1
    return None


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
