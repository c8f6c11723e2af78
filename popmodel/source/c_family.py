"""C and C++: from files to the intermediate form, by libclang."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from popmodel.source.c_expressions import OBJECT, THIS, CExpressions
from popmodel.source.intermediate_form import (
    HEADERS,
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
from popmodel.source.openmp_directives import Pragma, parsed_directive, pragma_macros, pragmas_of
from popmodel.source.user_compiler import compile_command

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".C")
DEEPEST_STATEMENT = 60
"""Statements inside of each other that are read."""
_LONGEST_CASE = 200
"""Statements of a case that goes on with others."""
_MOST_DIRECTIVES = 20
"""Directives that are read of a statement."""
_DETAILED = 1
"""Have libclang note what the preprocessor skips."""
_MISSING = re.compile("'(.+)' file not found")
_MOST_MISSING = 50
"""Headers of a file that may be missing."""
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!="}
_LOOP_ENDS = {"<": -1, "<=": 0, ">": 1, ">=": 0, "!=": None}


def read(paths: Sequence[Path], arguments: Sequence[str] = ()) -> SourceProgram:
    """Read the files of a program.

    Parameters
    ----------
    paths : sequence of Path
        Files that are compiled; what they include is read along.
    arguments : sequence of str
        Options of the compiler: ``-I``, ``-D``, ``-std``.

    Returns
    -------
    SourceProgram
        All functions and variables that the files define, headers of the system left out.
    """
    functions: dict[str, SourceFunction] = {}
    variables: dict[str, Declaration] = {}
    overriders: dict[str, Sequence[str]] = {}
    problems: list[str] = []
    pool = ProcessPoolExecutor(1)
    try:
        for path in paths:
            try:
                command, problem = compile_command(path)
                problems += [problem] if problem and problem not in problems else []
                flags = (*(command.flags if command else ()), *arguments)
                part = pool.submit(_read_file, path, flags).result()
            except BrokenProcessPool:  # libclang ends the process where it meets a fault of its own
                pool = ProcessPoolExecutor(1)
                problems.append(f"{path}: libclang ended while it read the file, which is left out")
                continue
            problems += part.problems
            for key, function in part.functions.items():
                known = functions.setdefault(key, function)
                if known.place != function.place and function.name == "main":
                    functions[f"main of {path}"] = function
                elif known.place != function.place:
                    problems.append(
                        f"{function.place}: {function.name} is defined in {known.place} as well, "
                        "which is taken"
                    )
            variables = {**part.variables, **variables}
            for key, methods in part.overriders.items():
                overriders[key] = tuple(dict.fromkeys((*overriders.get(key, ()), *methods)))
    finally:
        pool.shutdown()
    return SourceProgram(functions, variables, tuple(problems), overriders)


def _read_file(path: Path, arguments: Sequence[str]) -> SourceProgram:
    reader = _Reader()
    reader.add(path, arguments)
    return SourceProgram(
        reader.functions, reader.variables, tuple(reader.problems), reader.overriders
    )


class _Reader(CExpressions):
    """Functions and variables of all files that were read."""

    def __init__(self) -> None:
        super().__init__()
        self.index = self.cindex.Index.create()
        self.variables: dict[str, Declaration] = {}
        self.overriders: dict[str, list[str]] = {}  # Of virtual methods, by their keys
        self.pragmas: dict[str, list[Pragma]] = {}  # Of a file, the last one first
        self.macros: dict[str, str | None] = {}  # That are pragmas
        self.unit: Any = None  # The file at hand with what it includes
        self.texts: dict[str, bytes] = {}
        self.headers = _system_headers()
        self.nesting = 0  # Of the statement at hand

    def add(self, path: Path, arguments: Sequence[str]) -> None:
        """Read a file and what it includes."""
        folder = path.parent.absolute()  # libclang knows texts given in place of files by it only
        given = ["-D_OPENMP=201511", f"-I{HEADERS}", *self.headers, f"-I{folder}"]
        language = "c" if path.suffix == ".c" else "c++"
        options = [f"-x{language}", *given, *arguments]
        missing: dict[str, str] = {}  # Headers, in whose place empty ones are read
        while True:
            unit = self.index.parse(str(path), options, list(missing.items()), _DETAILED)
            problem = next((one for one in unit.diagnostics if _missing(one)), None)
            name = str(folder / _missing(problem)) if problem is not None else ""
            if problem is None or name in missing or len(missing) > _MOST_MISSING:
                break
            where = SourcePlace(str(problem.location.file), problem.location.line)
            self.problems.append(f"{where}: {_missing(problem)} is not found, taken as empty")
            missing[name] = ""
        for problem in unit.diagnostics:
            if problem.severity >= self.cindex.Diagnostic.Error:
                file = problem.location.file
                where = SourcePlace(file.name if file else str(path), problem.location.line)
                self.problems.append(f"{where}: {problem.spelling}")
        self.unit = unit
        self.pragmas = {}
        names = {str(path), *(str(include.include) for include in unit.get_includes())}
        own = [name for name in names if "popmodel" not in name and not name.startswith("/usr/")]
        self.macros = {
            macro: text for name in own for macro, text in pragma_macros(self._letters(name))
        }
        self._declarations(unit.cursor)

    def _declarations(self, cursor: Any) -> None:
        kinds = self.kinds
        for child in cursor.get_children():
            if child.location.is_in_system_header or child.location.file is None:
                continue
            if Path(child.location.file.name).parent == HEADERS:
                continue
            kind = child.kind
            if kind in (
                kinds.NAMESPACE,
                kinds.LINKAGE_SPEC,
                kinds.UNEXPOSED_DECL,
                kinds.CLASS_DECL,
                kinds.STRUCT_DECL,
                kinds.CLASS_TEMPLATE,
                kinds.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
            ):
                self._declarations(child)
            elif kind in (
                kinds.FUNCTION_DECL,
                kinds.CXX_METHOD,
                kinds.CONSTRUCTOR,
                kinds.DESTRUCTOR,
                kinds.CONVERSION_FUNCTION,
                kinds.FUNCTION_TEMPLATE,
            ):
                self._overridden(child)
                if child.is_definition() and child.get_usr() not in self.functions:
                    self._function(child)
            elif kind == kinds.VAR_DECL and child.get_usr() not in self.variables:
                self.variables[child.get_usr()] = self._declared(child)

    def _overridden(self, method: Any) -> None:
        """Remember a method with those that it stands for in calls of a base class."""
        if method.kind != self.kinds.CXX_METHOD or not method.is_virtual_method():
            return
        first, number = ctypes.POINTER(self.cindex.Cursor)(), ctypes.c_uint()
        self.lib.clang_getOverriddenCursors(method, ctypes.byref(first), ctypes.byref(number))
        for base in first[: number.value] if first else ():
            keys = self.overriders.setdefault(base.get_usr(), [])
            if method.get_usr() not in keys:
                keys.append(method.get_usr())
        if first:
            self.lib.clang_disposeOverriddenCursors(first)

    def _function(self, cursor: Any) -> None:
        children = list(cursor.get_children())
        body = [child for child in children if child.kind == self.kinds.COMPOUND_STMT]
        parameters = [child for child in children if child.kind == self.kinds.PARM_DECL]
        for directive in self._directives(cursor.extent.start):  # of no statement
            for text in parsed_directive(directive.text).unmodelled():
                self._note(f"{directive.place}: {text}")
        if body:
            place, statements = self._place(cursor), self._statements(body[-1])
            if cursor.kind == self.kinds.CONSTRUCTOR:
                made = Leave("return", THIS, place)
                by_class = self._defaults(cursor.semantic_parent.type, OBJECT)
                begin = [ExpressionStatement(default, place) for default in by_class]
                statements = (*begin, *self._initialisers(children), *statements, made)
            self.functions[cursor.get_usr()] = SourceFunction(
                cursor.get_usr(),
                cursor.spelling,
                (*self._object(cursor), *map(self._variable, parameters)),
                statements,
                self._type(cursor.result_type),
                place,
                frozenset(
                    one.get_usr()
                    for one in parameters
                    if one.type.kind == self.cindex.TypeKind.LVALUEREFERENCE
                ),
            )

    def _initialisers(self, children: Sequence[Any]) -> Iterator[Statement]:
        """What a constructor does before its body: bases and members by their values."""
        member: Expression | None = None
        for child in children:
            place = self._place(child)
            if child.kind == self.kinds.MEMBER_REF:
                member = Field(OBJECT, child.spelling, self._type(child.type))
            elif child.kind.is_expression():
                made = self._constructed(Address(member, OTHER) if member else THIS, child)
                if made is None and member is not None:
                    made = Assignment(member, "", self._value(child), member.type)
                if made is not None:
                    yield ExpressionStatement(made, place)
                member = None

    # Statements

    def _statements(self, cursor: Any) -> Body:
        """The statements of a block, or the one that stands in place of it."""
        found: list[Statement] = []
        is_block = cursor.kind == self.kinds.COMPOUND_STMT
        for child in cursor.get_children() if is_block else (cursor,):
            waiting: list[Directive] = []
            for directive in self._directives(child.extent.start):
                if parsed_directive(directive.text).is_alone:
                    found.append(directive)
                else:
                    waiting.append(directive)
            body = self._statement(child)
            if len(waiting) > _MOST_DIRECTIVES:
                place = self._place(child)
                self._note(f"{place}: {len(waiting)} directives: {_MOST_DIRECTIVES} are read")
            for directive in waiting[: -_MOST_DIRECTIVES - 1 : -1]:
                body = (directive._replace(body=body),)
            found += body
        if is_block:
            found += self._directives(cursor.extent.end)
        return tuple(found)

    def _directives(self, until: Any) -> list[Directive]:
        """The directives of a file up to a place that no statement had yet."""
        if until.file is None:
            return []
        name = until.file.name
        if name not in self.pragmas:
            skipped = self._skipped(until.file)
            self.pragmas[name] = pragmas_of(self._letters(name), skipped, self.macros)[::-1]
        waiting, found = self.pragmas[name], []
        while waiting and waiting[-1].offset <= until.offset:
            pragma = waiting.pop()
            found.append(Directive(pragma.text, (), SourcePlace(name, pragma.line)))
        return found

    def _skipped(self, file: Any) -> list[tuple[int, int]]:
        """Parts of a file that the preprocessor leaves out."""
        ranges = self.lib.clang_getSkippedRanges(self.unit, file)
        try:
            return [
                (part.start.offset, part.end.offset)
                for part in ranges.contents.ranges[: ranges.contents.count]
            ]
        finally:
            self.lib.clang_disposeSourceRangeList(ranges)

    def _statement(self, cursor: Any) -> Body:
        """A statement, with what its expressions need before it."""
        if self.nesting >= DEEPEST_STATEMENT:
            place = self._place(cursor)
            self._note(f"{place}: nested too deeply: read to a depth of {DEEPEST_STATEMENT}")
            return ()
        kept, self.before = self.before, []
        self.nesting += 1
        made = self._read_statement(cursor)
        self.nesting -= 1
        body, self.before = (*self.before, *made), kept
        return body

    def _read_statement(self, cursor: Any) -> Body:
        kinds, kind = self.kinds, cursor.kind
        place = self._place(cursor)
        children = list(cursor.get_children())
        if kind == kinds.COMPOUND_STMT:
            return self._statements(cursor)
        if kind == kinds.DECL_STMT:
            variables = [child for child in children if child.kind == kinds.VAR_DECL]
            return tuple(found for child in variables for found in self._locals(child))
        if kind == kinds.IF_STMT:
            condition, then, *otherwise = children[-3:] if len(children) > 2 else children
            test, first = self._value(condition), self._statements(then)  # as pragmas follow
            rest = self._statements(otherwise[0]) if otherwise else ()
            return (Branch(test, first, rest, place),)
        if kind == kinds.FOR_STMT:
            return self._for(cursor, children, place)
        if kind == kinds.CXX_FOR_RANGE_STMT:
            return (self._range(children, place),)
        if kind == kinds.WHILE_STMT:
            condition, body = children[0], children[-1]
            return (Loop(self._value(condition), self._statements(body), (), True, place),)
        if kind == kinds.DO_STMT:
            body, condition = children[0], children[-1]
            return (Loop(self._value(condition), self._statements(body), (), False, place),)
        if kind == kinds.RETURN_STMT:
            return (Leave("return", self._value(children[0]) if children else None, place),)
        if kind == kinds.BREAK_STMT:
            return (Leave("break", None, place),)
        if kind == kinds.CONTINUE_STMT:
            return (Leave("continue", None, place),)
        if kind == kinds.SWITCH_STMT:
            return self._switch(children, place)
        if kind in (kinds.CASE_STMT, kinds.DEFAULT_STMT, kinds.LABEL_STMT):
            if kind != kinds.LABEL_STMT:
                self._note(f"{place}: a case inside of another statement is not followed")
            return self._statements(children[-1]) if children else ()
        if kind == kinds.CXX_TRY_STMT:
            return self._statements(children[0])
        if kind in (kinds.GOTO_STMT, kinds.INDIRECT_GOTO_STMT, kinds.ASM_STMT, kinds.MS_ASM_STMT):
            what = "goto" if "GOTO" in kind.name else "assembler"
            self._note(f"{place}: {what} is not followed")
            return ()
        if kind in (kinds.NULL_STMT, kinds.CXX_CATCH_STMT):
            return ()
        if kind.is_expression():
            return (ExpressionStatement(self._value(cursor), place),)
        return tuple(
            statement
            for child in children
            if child.kind.is_statement() or child.kind.is_expression()
            for statement in self._statements(child)
        )

    def _switch(self, children: Sequence[Any], place: SourcePlace) -> Body:
        """One of several cases, as branches; a case without a break goes on with the next one."""
        value, kinds = self._value(children[0]), self.kinds
        labels = (kinds.CASE_STMT, kinds.DEFAULT_STMT)
        cases: list[tuple[list[Expression | None], list[Statement]]] = []
        for child in children[-1].get_children():
            inner = child
            tests: list[Expression | None] = []
            while inner.kind in labels:
                parts = list(inner.get_children())
                if inner.kind == kinds.DEFAULT_STMT:
                    tests.append(None)
                elif len(parts) == 2:
                    equal = (value, self._value(parts[0]))
                    tests.append(SourceOperation("==", equal, SourceType("int", 4)))
                else:  # a range
                    tests.append(SourceOperation("unknown", (), SourceType("int", 4)))
                inner = parts[-1]
            if tests or not cases:
                cases.append((tests, []))
            cases[-1][1].extend(self._statements(inner))
        body: Body = ()
        rest: list[Statement] = []  # Of the next case
        branches: list[tuple[Expression, Body]] = []
        for labels_of, statements in reversed(cases):
            ends = [number for number, one in enumerate(statements) if isinstance(one, Leave)]
            if ends:
                last = statements[ends[0]]
                is_break = isinstance(last, Leave) and last.what == "break"
                rest = statements[: ends[0] + (not is_break)]
            elif len(rest) + len(statements) > _LONGEST_CASE:
                self._note(f"{place}: switch: cases go on with others, which is not followed")
                rest = statements
            else:
                rest = statements + rest
            if None in labels_of:
                body = tuple(rest)
            branches += [(test, tuple(rest)) for test in reversed(labels_of) if test is not None]
        for test, statements_of in branches:
            body = (Branch(test, statements_of, body, place),)
        return body

    def _range(self, children: Sequence[Any], place: SourcePlace) -> CountedLoop:
        """A loop over all elements of an array or a container, by the index that it hides."""
        *_, declared, values, body = children
        container, type_ = self._value(values), values.type.get_canonical()
        variable, key = self._variable(declared), declared.get_usr()
        index = Variable(f"index of {key}", "index", SourceType("int", 8))
        if type_.kind == self.cindex.TypeKind.CONSTANTARRAY:
            size: Expression = Literal(type_.element_count)
        elif re.match(r"(const )?std::(\w+::)?(vector|array)<", type_.spelling):
            size = Invocation("@N@std@", "size", (Address(container, OTHER),), index.type, place)
        else:
            size = SourceOperation("unknown", (), INTEGER)
        item = Element(container, index, variable.type)
        begin: Body = ()
        if declared.type.kind == self.cindex.TypeKind.LVALUEREFERENCE:
            self.elements[key] = item
        else:
            begin = (Declaration(variable, item, place),)
        last = SourceOperation("-", (size, Literal(1)), index.type)
        inner = (*begin, *self._statements(body))
        return CountedLoop(index, Literal(0), last, Literal(1), inner, place)

    def _for(self, cursor: Any, children: Sequence[Any], place: SourcePlace) -> Body:
        start, condition, update = self._header(cursor, children)
        begins = self._statements(start) if start is not None else ()
        head = self._counted_head(begins, condition, update, place)
        decides = () if head is None else (head.variable.key, *_variables(head.last))
        before = [self.changed[key] for key in decides]
        body = self._statements(children[-1])
        if head is not None and before == [self.changed[key] for key in decides]:
            return (*begins[:-1], head._replace(body=body))
        test = None if condition is None else self._value(condition)
        step = () if update is None else self._statements(update)
        return (*begins, Loop(test, body, step, True, place))

    def _header(self, cursor: Any, children: Sequence[Any]) -> list[Any]:
        """What stands before, between and behind the semicolons of a ``for``."""
        *parts, _ = children
        if len(parts) == 3:
            return list(parts)
        begin = cursor.extent.start.offset
        text = self._text(cursor.extent.start.file.name)[begin : cursor.extent.end.offset]
        ends, depth = [], 0
        for position, letter in enumerate(text.decode("latin-1")):
            depth += (letter in "([{") - (letter in ")]}")
            if letter == ";" and depth == 1:
                ends.append(begin + position)
            if len(ends) == 2:
                break
        found: list[Any] = [None, None, None]
        for part in parts:
            found[sum(part.extent.start.offset > end for end in ends)] = part
        return found

    def _counted_head(
        self, begins: Body, condition: Any, update: Any, place: SourcePlace
    ) -> CountedLoop | None:
        """A loop over whole numbers by equal steps, without its body; None if it is none."""
        if not begins or condition is None or update is None:
            return None
        begin = begins[-1]
        if isinstance(begin, Declaration) and begin.value is not None:
            variable, first = begin.variable, begin.value
        elif (
            isinstance(begin, ExpressionStatement)
            and isinstance(begin.expression, Assignment)
            and isinstance(begin.expression.target, Variable)
            and not begin.expression.operator
        ):
            variable, first = begin.expression.target, begin.expression.value
        else:
            return None
        test, change = self._value(condition), self._value(update)
        # inside of a template the type of a number may be a parameter
        if variable.type.kind not in ("int", "other") or not isinstance(test, SourceOperation):
            return None
        test = _solved(test, variable)
        if test.operator not in _LOOP_ENDS or test.operands[0] != variable:
            return None
        if not isinstance(change, Assignment) or change.target != variable:
            return None
        if change.operator not in ("+", "-"):
            return None
        step, is_down = change.value, change.operator == "-"
        if isinstance(step, Literal) and isinstance(step.value, (int, float)):
            by_turn = -step.value if is_down else step.value
            if not _reaches(test.operator, by_turn):
                return None
        if is_down:
            step = SourceOperation("neg", (step,), step.type)
        last, by = test.operands[1], _LOOP_ENDS[test.operator]
        if by is None:
            by = 1 if change.operator == "-" else -1
        if by:
            last = SourceOperation("+", (last, Literal(by)), last.type)
        return CountedLoop(variable, first, last, step, (), place)

    def _text(self, name: str) -> bytes:
        if name not in self.texts:
            self.texts[name] = Path(name).read_bytes()
        return self.texts[name]

    def _letters(self, name: str) -> str:
        """The text of a file, a letter for each byte; of none an empty one."""
        return self._text(name).decode("latin-1") if Path(name).is_file() else ""


def _reaches(operator: str, step: float) -> bool:
    """Whether steps lead to where a comparison does not hold any more, without an overflow."""
    return step > 0 if operator[0] == "<" else step < 0 if operator[0] == ">" else step != 0


def _variables(expression: Any) -> Iterator[str]:
    """Keys of the variables in an expression."""
    waiting = [expression]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Variable):
            yield part.key
        elif isinstance(part, tuple) and not isinstance(part, (SourceType, SourcePlace)):
            waiting += part


def _solved(test: SourceOperation, variable: Variable) -> SourceOperation:
    """A condition for a variable with the variable alone on its left, where that is easy."""
    if len(test.operands) != 2:
        return test
    operator, (left, right) = test.operator, test.operands
    if right == variable and operator in _MIRRORED:
        operator, left, right = _MIRRORED[operator], right, left
    if isinstance(left, SourceOperation) and left.operator in ("+", "-"):
        first, *rest = left.operands
        if rest and first == variable:
            moved = "-" if left.operator == "+" else "+"
            left, right = variable, SourceOperation(moved, (right, rest[0]), right.type)
        elif rest == [variable] and left.operator == "+":
            left, right = variable, SourceOperation("-", (right, first), right.type)
    return SourceOperation(operator, (left, right), test.type)


def _missing(problem: Any) -> str:
    """The header that a message of the compiler misses; empty for other messages."""
    match = _MISSING.match(problem.spelling)
    return match[1] if match else ""


def _system_headers() -> tuple[str, ...]:
    """Where the compiler keeps headers of its own, such as ``stddef.h``: libclang has none."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return ()
    command = [compiler, "-print-file-name=include"]
    folder = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return (f"-isystem{folder}",) if Path(folder).is_dir() else ()
