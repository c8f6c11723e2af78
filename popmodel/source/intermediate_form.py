"""The intermediate form of a program's source, which all front ends make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

HEADERS = Path(__file__).parent / "headers"
"""Our own `mpi.h` and `omp.h`: no MPI and no OpenMP is needed to read a program."""


class SourcePlace(NamedTuple):
    """Where something stands in the source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file.rpartition('/')[2]}:{self.line}"


class SourceType(NamedTuple):
    """The type of a value, as far as costs depend on it."""

    kind: str  # int, real, pointer, array, record, void or other
    size: int = 0  # Bytes of a value
    element: SourceType | None = None  # Of a pointer or an array
    length: int | None = None  # Of an array, where it is a constant
    name: str = ""  # As the source has it


CONTAINERS = re.compile(r"(const )?std::(\w+::)?(vector|deque|list)<")
"""Names of types whose objects have no element unless somebody puts it there."""
INTEGER = SourceType("int", 4, name="int")
OTHER = SourceType("other")


class Literal(NamedTuple):
    """A number or a text."""

    value: float | int | str
    type: SourceType = INTEGER


class Variable(NamedTuple):
    """A variable by its name, unique where names are reused."""

    key: str
    name: str
    type: SourceType


class Field(NamedTuple):
    """A member of a record."""

    base: Expression
    name: str
    type: SourceType


class Element(NamedTuple):
    """What stands at an index from a pointer or in an array; of index 0 for ``*pointer``."""

    base: Expression
    subscript: Expression
    type: SourceType


class Address(NamedTuple):
    """The address of something."""

    target: Expression
    type: SourceType


class SourceOperation(NamedTuple):
    """An operator on values: those of C, ``?:`` of three, ``neg``, ``**``, ``list``; in a list of
    members ``.name``.
    """

    operator: str
    operands: tuple[Expression, ...]
    type: SourceType


class Invocation(NamedTuple):
    """A call of a function."""

    key: str  # Of the function that is called; its name where that is not known
    name: str
    arguments: tuple[Expression, ...]
    type: SourceType
    place: SourcePlace
    callee: Expression | None = None  # Of a call by pointer, or of what has no name
    is_dynamic: bool = False  # Of a virtual method: that of the object's class is called


class Assignment(NamedTuple):
    """A value for something, by ``=`` or by an operator such as ``+`` of ``+=``."""

    target: Expression
    operator: str
    value: Expression
    type: SourceType
    is_postfix: bool = False  # The value before, as of ``i++``


Expression: TypeAlias = (
    Literal | Variable | Field | Element | Address | SourceOperation | Invocation | Assignment
)


class Declaration(NamedTuple):
    """A variable comes into being."""

    variable: Variable
    value: Expression | None
    place: SourcePlace
    is_reference: bool = False  # Another name of what is its value


class ExpressionStatement(NamedTuple):
    """An expression for what it does."""

    expression: Expression
    place: SourcePlace


class Branch(NamedTuple):
    """``if``, with what follows ``else``."""

    condition: Expression
    then: Body
    otherwise: Body
    place: SourcePlace


class CountedLoop(NamedTuple):
    """A loop whose variable goes from `first` to `last`, both included, by `step`."""

    variable: Variable
    first: Expression
    last: Expression
    step: Expression
    body: Body
    place: SourcePlace


class Loop(NamedTuple):
    """Any other loop."""

    condition: Expression | None
    body: Body
    update: Body
    is_checked_first: bool
    place: SourcePlace


class Leave(NamedTuple):
    """``return``, ``break`` or ``continue``."""

    what: str
    value: Expression | None
    place: SourcePlace


class Directive(NamedTuple):
    """An OpenMP directive with the statements that it is about."""

    text: str  # Without ``#pragma omp`` or ``!$omp``
    body: Body
    place: SourcePlace


Statement: TypeAlias = (
    Declaration | ExpressionStatement | Branch | CountedLoop | Loop | Leave | Directive
)
Body: TypeAlias = tuple[Statement, ...]


class SourceFunction(NamedTuple):
    """A function with its parameters and statements."""

    key: str
    name: str
    parameters: tuple[Variable, ...]
    body: Body
    type: SourceType  # Of its value
    place: SourcePlace
    references: frozenset[str] = frozenset()  # Parameters that are other names of arguments


class SourceProgram(NamedTuple):
    """All that the files of a program define."""

    functions: Mapping[str, SourceFunction]
    variables: Mapping[str, Declaration]  # Of the files, outside of functions
    problems: tuple[str, ...]  # What could not be read, a sentence each
    overriders: Mapping[str, Sequence[str]] = {}  # Methods of derived classes, by virtual ones


def words_of(expression: Expression) -> str:
    """About how the source writes an expression."""
    if isinstance(expression, Variable):
        return expression.name
    if isinstance(expression, Field):
        return f"{words_of(expression.base)}.{expression.name}"
    if isinstance(expression, Element):
        return f"{words_of(expression.base)}[{words_of(expression.subscript)}]"
    if isinstance(expression, Literal):
        return str(expression.value)
    if isinstance(expression, Invocation):
        return expression.name
    if isinstance(expression, SourceOperation):
        return expression.operator.join(map(words_of, expression.operands))
    return "value"
