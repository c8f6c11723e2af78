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

from popmodel.base.errors import PopmodelError
from popmodel.source.intermediate_form import (
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

SUFFIXES = (".c", ".cc", ".cpp", ".cxx", ".C")
HEADERS = Path(__file__).parent / "headers"
"""Our own `mpi.h` and `omp.h`: no MPI and no OpenMP is needed to read a program."""
STANDALONE = ("barrier", "taskwait", "taskyield", "flush", "threadprivate", "declare", "end")
"""Directives without a statement behind them."""
DEEPEST_EXPRESSION = 100
"""Operations inside of each other that are read."""
THIS = Variable("this", "this", SourceType("pointer", 8, SourceType("record")))
"""What a method or a constructor is called for."""
_OBJECT = Element(THIS, Literal(0), SourceType("record"))
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+omp[ \t]+((?:.*\\\n)*.*)$", re.MULTILINE)
_MISSING = re.compile("'(.+)' file not found")
_MOST_MISSING = 50
"""Headers of a file that may be missing."""
INDEX = Variable("index", "index", SourceType("int", 8))
"""Of a loop that hides it."""
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
    found = SourceProgram({}, {}, ())
    pool = ProcessPoolExecutor(1)
    for path in paths:
        try:
            read_one = pool.submit(_read_file, path, tuple(arguments)).result()
        except BrokenProcessPool:  # libclang ends the process where it meets a fault of its own
            pool = ProcessPoolExecutor(1)
            problem = f"{path}: libclang ended while it read the file, which is left out"
            found = found._replace(problems=(*found.problems, problem))
            continue
        found = SourceProgram(
            {**read_one.functions, **found.functions},
            {**read_one.variables, **found.variables},
            (*found.problems, *read_one.problems),
        )
    pool.shutdown()
    return found


def _read_file(path: Path, arguments: Sequence[str]) -> SourceProgram:
    reader = _Reader()
    reader.add(path, arguments)
    return SourceProgram(reader.functions, reader.variables, tuple(reader.problems))


def _clang() -> Any:
    try:
        import clang.cindex as cindex
    except ImportError as error:
        raise PopmodelError(
            "reading C and C++ needs libclang", "pip install 'popmodel-hpc[source]'"
        ) from error
    lib = cindex.conf.lib
    lib.clang_Cursor_Evaluate.restype = ctypes.c_void_p
    lib.clang_Cursor_Evaluate.argtypes = [cindex.Cursor]
    lib.clang_EvalResult_getKind.argtypes = [ctypes.c_void_p]
    lib.clang_EvalResult_getAsLongLong.argtypes = [ctypes.c_void_p]
    lib.clang_EvalResult_getAsLongLong.restype = ctypes.c_longlong
    lib.clang_EvalResult_getAsDouble.argtypes = [ctypes.c_void_p]
    lib.clang_EvalResult_getAsDouble.restype = ctypes.c_double
    lib.clang_EvalResult_dispose.argtypes = [ctypes.c_void_p]
    for name in ("Binary", "Unary"):
        getattr(lib, f"clang_getCursor{name}OperatorKind").argtypes = [cindex.Cursor]
        spelling = getattr(lib, f"clang_get{name}OperatorKindSpelling")
        spelling.restype = cindex._CXString
        spelling.argtypes = [ctypes.c_int]
        spelling.errcheck = lambda result, *_: cindex.conf.lib.clang_getCString(result)
    return cindex


class _Reader:
    """Functions and variables of all files that were read."""

    def __init__(self) -> None:
        self.cindex = _clang()
        self.kinds = self.cindex.CursorKind
        self.lib = self.cindex.conf.lib
        self.index = self.cindex.Index.create()
        self.functions: dict[str, SourceFunction] = {}
        self.variables: dict[str, Declaration] = {}
        self.problems: list[str] = []
        self.pragmas: dict[str, list[tuple[int, int, str]]] = {}  # Of a file: line, end, text
        self.texts: dict[str, bytes] = {}
        self.headers = _system_headers()
        self.depth = 0  # Of the expression at hand

    def add(self, path: Path, arguments: Sequence[str]) -> None:
        """Read a file and what it includes."""
        given = ["-D_OPENMP=201511", f"-I{HEADERS}", *self.headers, f"-I{path.parent}"]
        language = "c" if path.suffix == ".c" else "c++"
        options = [f"-x{language}", *given, *arguments]
        missing: dict[str, str] = {}  # Headers, in whose place empty ones are read
        while True:
            unit = self.index.parse(str(path), options, list(missing.items()), 0)
            problem = next((one for one in unit.diagnostics if _missing(one)), None)
            if problem is None or len(missing) > _MOST_MISSING:
                break
            name = _missing(problem)
            where = SourcePlace(str(problem.location.file), problem.location.line)
            self.problems.append(f"{where}: {name} is not found, taken as empty")
            missing[str(path.parent / name)] = ""
        for problem in unit.diagnostics:
            if problem.severity >= self.cindex.Diagnostic.Error:
                file = problem.location.file
                where = SourcePlace(file.name if file else str(path), problem.location.line)
                self.problems.append(f"{where}: {problem.spelling}")
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
            ):
                self._declarations(child)
            elif kind in (
                kinds.FUNCTION_DECL,
                kinds.CXX_METHOD,
                kinds.CONSTRUCTOR,
                kinds.FUNCTION_TEMPLATE,
            ):
                if child.is_definition() and child.get_usr() not in self.functions:
                    self._function(child)
            elif kind == kinds.VAR_DECL and child.get_usr() not in self.variables:
                self.variables[child.get_usr()] = self._declared(child)

    def _function(self, cursor: Any) -> None:
        children = list(cursor.get_children())
        body = [child for child in children if child.kind == self.kinds.COMPOUND_STMT]
        parameters = [child for child in children if child.kind == self.kinds.PARM_DECL]
        if body:
            place = self._place(cursor)
            try:
                statements = self._statements(body[-1])
                if cursor.kind == self.kinds.CONSTRUCTOR:
                    made = Leave("return", THIS, place)
                    statements = (*self._initialisers(children), *statements, made)
            except RecursionError:
                self.problems.append(f"{place}: {cursor.spelling} is nested too deeply: left out")
                statements = ()
            self.functions[cursor.get_usr()] = SourceFunction(
                cursor.get_usr(),
                cursor.spelling,
                (*self._object(cursor), *map(self._variable, parameters)),
                statements,
                self._type(cursor.result_type),
                place,
            )

    def _object(self, function: Any) -> tuple[Variable, ...]:
        """The hidden first parameter of a function that is called for an object."""
        parent = function.semantic_parent
        classes = (
            self.kinds.CLASS_DECL,
            self.kinds.STRUCT_DECL,
            self.kinds.CLASS_TEMPLATE,
            self.kinds.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION,
        )
        has_one = parent is not None and parent.kind in classes and not function.is_static_method()
        return (THIS,) if has_one else ()

    def _initialisers(self, children: Sequence[Any]) -> Iterator[Statement]:
        """What a constructor does before its body: bases and members by their values."""
        member: Expression | None = None
        for child in children:
            place = self._place(child)
            if child.kind == self.kinds.MEMBER_REF:
                member = Field(_OBJECT, child.spelling, self._type(child.type))
            elif child.kind.is_expression():
                made = self._constructed(Address(member, OTHER) if member else THIS, child)
                if made is None and member is not None:
                    made = Assignment(member, "", self._value(child), member.type)
                if made is not None:
                    yield ExpressionStatement(made, place)
                member = None

    def _constructed(self, pointer: Expression, cursor: Any) -> Expression | None:
        """The call that makes an object, if that does anything of interest; else None."""
        what = cursor.referenced
        if cursor.kind != self.kinds.CALL_EXPR or what is None:
            return None
        if what.kind != self.kinds.CONSTRUCTOR or what.is_default_method():
            return None
        is_by_compiler = what.location == what.semantic_parent.location
        if is_by_compiler or (what.location.is_in_system_header and what.spelling != "vector"):
            return None
        values = (self._value(child) for child in cursor.get_arguments() if child is not None)
        return Invocation(
            what.get_usr(), what.spelling, (pointer, *values), THIS.type, self._place(cursor)
        )

    # Statements

    def _statements(self, cursor: Any) -> Body:
        """The statements of a block, or the one that stands in place of it."""
        found: list[Statement] = []
        is_block = cursor.kind == self.kinds.COMPOUND_STMT
        for child in cursor.get_children() if is_block else (cursor,):
            directives = self._directives(child.extent.start)
            while directives and directives[0].text.split("(")[0].split()[0] in STANDALONE:
                found.append(directives.pop(0))
            body = self._statement(child)
            for directive in reversed(directives):
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
            text = self._text(name).decode("utf-8", "replace")
            self.pragmas[name] = [
                (text.count("\n", 0, found.start()) + 1, found.end(), _one_line(found[1]))
                for found in _PRAGMA.finditer(text)
            ]
        waiting = self.pragmas[name]
        found = []
        while waiting and waiting[0][0] < until.line:
            line, _, text = waiting.pop(0)
            found.append(Directive(text, (), SourcePlace(name, line)))
        return found

    def _statement(self, cursor: Any) -> Body:
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
            rest = self._statements(otherwise[0]) if otherwise else ()
            return (Branch(self._value(condition), self._statements(then), rest, place),)
        if kind == kinds.FOR_STMT:
            return self._for(cursor, children, place)
        if kind == kinds.CXX_FOR_RANGE_STMT:
            return (self._for_range(children, place),)
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
            return self._statements(children[-1]) if children else ()
        if kind == kinds.CXX_TRY_STMT:
            return self._statements(children[0])
        if kind in (kinds.NULL_STMT, kinds.GOTO_STMT, kinds.CXX_CATCH_STMT, kinds.ASM_STMT):
            return ()
        if kind.is_expression() or kind.is_unexposed():
            return (ExpressionStatement(self._value(cursor), place),)
        return tuple(
            statement
            for child in children
            if child.kind.is_statement()
            for statement in self._statements(child)
        )

    def _switch(self, children: Sequence[Any], place: SourcePlace) -> Body:
        """One of several cases, as branches: what falls through to the next is not followed."""
        value = self._value(children[0])
        cases: list[tuple[Expression | None, list[Statement]]] = []
        for child in children[-1].get_children():
            inner = child
            label = None
            is_label = inner.kind in (self.kinds.CASE_STMT, self.kinds.DEFAULT_STMT)
            while inner.kind in (self.kinds.CASE_STMT, self.kinds.DEFAULT_STMT):
                parts = list(inner.get_children())
                if inner.kind == self.kinds.CASE_STMT:
                    label = self._value(parts[0])
                inner = parts[-1]
            if is_label or not cases:
                cases.append((label, []))
            found = self._statements(inner)
            cases[-1][1].extend(
                one for one in found if not (isinstance(one, Leave) and one.what == "break")
            )
        body: Body = ()
        for label, statements in reversed(cases):
            if label is None:
                body = tuple(statements)
            else:
                equal = SourceOperation("==", (value, label), SourceType("int", 4))
                body = (Branch(equal, tuple(statements), body, place),)
        return body

    def _for(self, cursor: Any, children: Sequence[Any], place: SourcePlace) -> Body:
        start, condition, update = self._header(cursor, children)
        body = self._statements(children[-1])
        begins = self._statements(start) if start is not None else ()
        counted = self._counted(begins, condition, update, body, place)
        if counted is not None:
            return (*begins[:-1], counted)
        test = None if condition is None else self._value(condition)
        step = () if update is None else self._statements(update)
        return (*begins, Loop(test, body, step, True, place))

    def _for_range(self, children: Sequence[Any], place: SourcePlace) -> Statement:
        """A loop over an array or a vector, by the index that it hides."""
        *_, declared, values, body = children
        statements, type_ = self._statements(body), values.type.get_canonical()
        container, variable = self._value(values), self._variable(declared)
        if type_.kind == self.cindex.TypeKind.CONSTANTARRAY:
            size: Expression = Literal(type_.element_count)
        elif re.match(r"(const )?std::(\w+::)?(vector|array)<", type_.spelling):
            size = Invocation("@N@std@", "size", (Address(container, OTHER),), INDEX.type, place)
        else:
            return Loop(None, statements, (), True, place)
        item = Element(container, INDEX, variable.type)
        if declared.type.kind == self.cindex.TypeKind.LVALUEREFERENCE:
            statements = _with(statements, variable, item)
        else:
            statements = (Declaration(variable, item, place), *statements)
        last = SourceOperation("-", (size, Literal(1)), INDEX.type)
        return CountedLoop(INDEX, Literal(0), last, Literal(1), statements, place)

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

    def _counted(
        self, begins: Body, condition: Any, update: Any, body: Body, place: SourcePlace
    ) -> CountedLoop | None:
        """A loop over whole numbers by equal steps; None if it is none."""
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
        if variable.type.kind != "int" or not isinstance(test, SourceOperation):
            return None
        test = _solved(test, variable)
        if test.operator not in _LOOP_ENDS or test.operands[0] != variable:
            return None
        if not isinstance(change, Assignment) or change.target != variable:
            return None
        if change.operator not in ("+", "-"):
            return None
        step = change.value
        if change.operator == "-":
            step = SourceOperation("neg", (step,), step.type)
        last, by = test.operands[1], _LOOP_ENDS[test.operator]
        if by is None:
            by = 1 if change.operator == "-" else -1
        if by:
            last = SourceOperation("+", (last, Literal(by)), last.type)
        return CountedLoop(variable, first, last, step, body, place)

    # Expressions

    def _locals(self, cursor: Any) -> Iterator[Statement]:
        """A variable of a function, and the call that makes it if it is an object."""
        variable, place = self._variable(cursor), self._place(cursor)
        last = [cursor, *cursor.get_children()][-1]
        while last.kind in (self.kinds.CXX_FUNCTIONAL_CAST_EXPR, self.kinds.UNEXPOSED_EXPR):
            last = [cursor, *last.get_children()][-1]
        made = self._constructed(Address(variable, OTHER), last)
        if made is None:
            yield self._declared(cursor)
        else:
            yield Declaration(variable, None, place)
            yield ExpressionStatement(made, place)

    def _declared(self, cursor: Any) -> Declaration:
        kinds = self.kinds
        types = (kinds.TYPE_REF, kinds.NAMESPACE_REF, kinds.TEMPLATE_REF)
        values = [child for child in cursor.get_children() if child.kind not in types]
        if cursor.type.get_canonical().kind == self.cindex.TypeKind.CONSTANTARRAY:
            values = [child for child in values if child.kind != kinds.INTEGER_LITERAL]
        # the size of an array that is no constant stands before its value
        value = self._value(values[-1]) if values and values[-1].kind.is_expression() else None
        if cursor.type.kind == self.cindex.TypeKind.VARIABLEARRAY:
            value = None
        is_reference = cursor.type.kind == self.cindex.TypeKind.LVALUEREFERENCE
        return Declaration(self._variable(cursor), value, self._place(cursor), is_reference)

    def _variable(self, cursor: Any) -> Variable:
        key = cursor.get_usr() or f"{cursor.spelling}@{cursor.extent.start.offset}"
        return Variable(key, cursor.spelling, self._type(cursor.type))

    def _value(self, cursor: Any) -> Expression:
        self.depth += 1
        try:
            if self.depth > DEEPEST_EXPRESSION:
                raise RecursionError
            return self._shallow_value(cursor)
        finally:
            self.depth -= 1

    def _shallow_value(self, cursor: Any) -> Expression:
        kinds, kind = self.kinds, cursor.kind
        type_ = self._type(cursor.type)
        children = list(cursor.get_children())
        if kind in (kinds.INTEGER_LITERAL, kinds.FLOATING_LITERAL, kinds.CHARACTER_LITERAL):
            return Literal(self._constant(cursor), type_)
        if kind == kinds.CXX_BOOL_LITERAL_EXPR:
            return Literal(int(self._constant(cursor)), type_)
        if kind == kinds.STRING_LITERAL:
            return Literal(cursor.spelling.strip('"'), type_)
        if kind in (kinds.CXX_UNARY_EXPR,):  # sizeof
            return Literal(self._constant(cursor), type_)
        if kind == kinds.DECL_REF_EXPR:
            return self._reference(cursor, type_)
        if kind == kinds.MEMBER_REF_EXPR:
            if not children or children[0].kind in (kinds.TYPE_REF, kinds.NAMESPACE_REF):
                base: Expression = _OBJECT
            else:
                base = self._value(children[0])
                if children[0].type.get_canonical().kind == self.cindex.TypeKind.POINTER:
                    base = Element(base, Literal(0), _of(base.type))
            return Field(base, cursor.spelling or self._last_word(cursor), type_)
        if kind == kinds.ARRAY_SUBSCRIPT_EXPR:
            return Element(self._value(children[0]), self._value(children[1]), type_)
        if kind == kinds.UNARY_OPERATOR:
            return self._unary(cursor, children[0], type_)
        if kind in (kinds.BINARY_OPERATOR, kinds.COMPOUND_ASSIGNMENT_OPERATOR):
            operator = self._operator(cursor, "Binary")
            left, right = map(self._value, children)
            if kind == kinds.COMPOUND_ASSIGNMENT_OPERATOR:
                return Assignment(left, operator.removesuffix("="), right, type_)
            if operator == "=":
                return Assignment(left, "", right, type_)
            return SourceOperation(operator, (left, right), type_)
        if kind == kinds.CONDITIONAL_OPERATOR:
            return SourceOperation("?:", tuple(map(self._value, children)), type_)
        if kind == kinds.CALL_EXPR:
            return self._call(cursor, children, type_)
        if kind == kinds.CXX_THIS_EXPR:
            return THIS
        if kind == kinds.CXX_NEW_EXPR and children:
            room = Invocation("", "operator new", (), type_, self._place(cursor))
            return self._constructed(room, children[-1]) or room
        if kind == kinds.INIT_LIST_EXPR:
            return SourceOperation("list", tuple(map(self._value, children)), type_)
        if kind == kinds.CSTYLE_CAST_EXPR or (kind.name.startswith("CXX_") and children):
            inner = self._value(children[-1])
            if type_.kind in ("int", "real") and inner.type.kind != type_.kind:
                return SourceOperation("cast", (inner,), type_)
            return inner
        values = [child for child in children if child.kind.is_expression()]
        if len(values) == 1 or (values and kind == kinds.UNEXPOSED_EXPR):
            inner = self._value(values[-1])
            if {type_.kind, inner.type.kind} == {"int", "real"}:
                return SourceOperation("cast", (inner,), type_)
            return inner
        return SourceOperation("unknown", tuple(map(self._value, values)), type_)

    def _reference(self, cursor: Any, type_: SourceType) -> Expression:
        what = cursor.referenced
        if what is None:
            return Variable(cursor.spelling, cursor.spelling, type_)
        if what.kind == self.kinds.ENUM_CONSTANT_DECL:
            return Literal(what.enum_value, type_)
        if what.kind in (self.kinds.FUNCTION_DECL, self.kinds.CXX_METHOD):
            return Literal(what.get_usr(), SourceType("function", name=what.spelling))
        return self._variable(what)._replace(type=type_)

    def _unary(self, cursor: Any, operand: Any, type_: SourceType) -> Expression:
        operator = self._operator(cursor, "Unary")
        value = self._value(operand)
        if operator in ("++", "--"):
            by = Literal(1)
            is_postfix = cursor.extent.start.offset == operand.extent.start.offset
            return Assignment(value, operator[0], by, type_, is_postfix)
        if operator == "*":
            return Element(value, Literal(0), type_)
        if operator == "&":
            return Address(value, type_)
        if operator == "+":
            return value
        return SourceOperation("neg" if operator == "-" else operator, (value,), type_)

    def _call(self, cursor: Any, children: Sequence[Any], type_: SourceType) -> Expression:
        what, name = cursor.referenced, cursor.spelling
        arguments = [self._value(child) for child in cursor.get_arguments() if child is not None]
        if name == "operator[]" and len(arguments) >= 1:
            base = arguments[0] if len(arguments) > 1 else self._value(children[0])
            return Element(base, arguments[-1], type_)
        if what is None and not name and children:
            callee = self._value(children[0])
            arguments = [self._value(child) for child in children[1:]]
            if isinstance(callee, Field):
                arguments = self._with_object(children[0], arguments)
            return Invocation(
                "", getattr(callee, "name", ""), tuple(arguments), type_, self._place(cursor)
            )
        if what is not None and what.kind == self.kinds.CONSTRUCTOR:
            return (
                arguments[0]
                if len(arguments) == 1
                else SourceOperation("list", tuple(arguments), type_)
            )
        if what is not None and self._object(what) and children:
            arguments = self._with_object(children[0], arguments)
        key = what.get_usr() if what is not None else ""
        return Invocation(key, name, tuple(arguments), type_, self._place(cursor))

    def _with_object(self, callee: Any, arguments: Sequence[Expression]) -> list[Expression]:
        """The arguments of a method, that which points to its object first."""
        if callee.kind != self.kinds.MEMBER_REF_EXPR:  # an operator has its object among them
            return [Address(arguments[0], OTHER), *arguments[1:]] if arguments else []
        base = next((child for child in callee.get_children() if child.kind.is_expression()), None)
        if base is None:
            return [THIS, *arguments]
        is_pointer = base.type.get_canonical().kind == self.cindex.TypeKind.POINTER
        value = self._value(base)
        return [value if is_pointer else Address(value, OTHER), *arguments]

    def _operator(self, cursor: Any, kind: str) -> str:
        number = getattr(self.lib, f"clang_getCursor{kind}OperatorKind")(cursor)
        text = getattr(self.lib, f"clang_get{kind}OperatorKindSpelling")(number)
        return text.decode() if isinstance(text, bytes) else str(text)

    def _constant(self, cursor: Any) -> float | int:
        """The value of a constant expression; 0 where it has none."""
        result = self.lib.clang_Cursor_Evaluate(cursor)
        if not result:
            return 0
        try:
            if self.lib.clang_EvalResult_getKind(result) == 2:
                return float(self.lib.clang_EvalResult_getAsDouble(result))
            return int(self.lib.clang_EvalResult_getAsLongLong(result))
        finally:
            self.lib.clang_EvalResult_dispose(result)

    def _type(self, type_: Any) -> SourceType:
        kinds, plain = self.cindex.TypeKind, type_.get_canonical()
        kind, name = plain.kind, plain.spelling
        is_number = kinds.BOOL.value <= kind.value <= kinds.LONGDOUBLE.value
        # others have no size, and libclang ends where it is asked for that of a method
        if not is_number and kind not in (
            kinds.POINTER,
            kinds.LVALUEREFERENCE,
            kinds.CONSTANTARRAY,
            kinds.RECORD,
            kinds.ENUM,
        ):
            size = 0
        else:
            size = max(plain.get_size(), 0)
        if kind in (kinds.FLOAT, kinds.DOUBLE, kinds.LONGDOUBLE, kinds.HALF, kinds.FLOAT128):
            return SourceType("real", size, name=name)
        if kind == kinds.POINTER or kind == kinds.LVALUEREFERENCE:
            if "MPI_" in type_.spelling or "popmodel_" in name:
                return SourceType("other", size, name=type_.spelling)
            inner = plain.get_pointee()
            deep = inner.get_canonical().kind
            if kind == kinds.LVALUEREFERENCE:
                return self._type(inner)
            element = SourceType("record", name=inner.spelling)
            return SourceType(
                "pointer", size, element if deep == kinds.RECORD else self._type(inner), name=name
            )
        if kind in (kinds.CONSTANTARRAY, kinds.INCOMPLETEARRAY, kinds.VARIABLEARRAY):
            length = plain.element_count if kind == kinds.CONSTANTARRAY else None
            return SourceType("array", size, self._type(plain.element_type), length, name)
        # inside of templates types that depend on others have no kind
        if kind == kinds.RECORD or (kind == kinds.UNEXPOSED and "<" in name):
            return SourceType("record", size, name=name)
        if kind == kinds.VOID:
            return SourceType("void", name=name)
        if kind == kinds.ENUM or kinds.BOOL.value <= kind.value <= kinds.INT128.value:
            return SourceType("int", size, name=name)
        return SourceType("other", size, name=name)

    def _text(self, name: str) -> bytes:
        if name not in self.texts:
            self.texts[name] = Path(name).read_bytes()
        return self.texts[name]

    def _last_word(self, cursor: Any) -> str:
        """The name of a member that the compiler has not looked up, inside of a template."""
        extent = cursor.extent
        if extent.start.file is None:
            return ""
        text = self._text(extent.start.file.name)[extent.start.offset : extent.end.offset]
        words = re.findall(r"\w+", text.decode("latin-1"))
        return words[-1] if words else ""

    def _place(self, cursor: Any) -> SourcePlace:
        file = cursor.location.file
        return SourcePlace(file.name if file else "?", cursor.location.line)


def _missing(problem: Any) -> str:
    """The header that a message of the compiler misses; empty for other messages."""
    match = _MISSING.match(problem.spelling)
    return match[1] if match else ""


def _solved(test: SourceOperation, variable: Variable) -> SourceOperation:
    """A condition for a variable with the variable alone on its left, where that is easy."""
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


def _with(part: Any, variable: Variable, value: Expression) -> Any:
    """A part of the program with a value in place of a variable."""
    if part == variable:
        return value
    if not isinstance(part, tuple):
        return part
    parts = (_with(inner, variable, value) for inner in part)
    return type(part)(*parts) if hasattr(part, "_fields") else tuple(parts)


def _of(type_: SourceType) -> SourceType:
    return type_.element or OTHER


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"\\\n|//.*|/\*.*?\*/", " ", text).split())


def _system_headers() -> tuple[str, ...]:
    """Where the compiler keeps headers of its own, such as ``stddef.h``: libclang has none."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        return ()
    command = [compiler, "-print-file-name=include"]
    folder = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return (f"-isystem{folder}",) if Path(folder).is_dir() else ()
