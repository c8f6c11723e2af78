"""Expressions and types of C and C++: from libclang's to the intermediate form."""

from __future__ import annotations

import ctypes
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from popmodel.base.errors import PopmodelError
from popmodel.source.intermediate_form import (
    CONTAINERS,
    INTEGER,
    OTHER,
    Address,
    Assignment,
    Body,
    Declaration,
    Element,
    Expression,
    ExpressionStatement,
    Field,
    Invocation,
    Literal,
    SourceFunction,
    SourceOperation,
    SourcePlace,
    SourceType,
    Statement,
    Variable,
)

DEEPEST_EXPRESSION = 100
"""Operations inside of each other that are read."""
THIS = Variable("this", "this", SourceType("pointer", 8, SourceType("record")))
"""What a method or a constructor is called for."""
OBJECT = Element(THIS, Literal(0), SourceType("record"))
_LONG_SUM = 20
"""Operands of sums that are read as a tree."""


def load_clang() -> Any:
    try:
        import clang.cindex as cindex
    except ImportError as error:
        raise PopmodelError(
            "reading C and C++ needs libclang", "pip install 'popmodel-hpc[source]'"
        ) from error
    lib = cindex.conf.lib

    class SourceRangeList(ctypes.Structure):
        _fields_ = (("count", ctypes.c_uint), ("ranges", ctypes.POINTER(cindex.SourceRange)))

    lib.clang_getSkippedRanges.restype = ctypes.POINTER(SourceRangeList)
    lib.clang_disposeSourceRangeList.argtypes = [ctypes.POINTER(SourceRangeList)]
    lib.clang_Cursor_isDynamicCall.argtypes = [cindex.Cursor]
    lib.clang_getOverriddenCursors.argtypes = [
        cindex.Cursor,
        ctypes.POINTER(ctypes.POINTER(cindex.Cursor)),
        ctypes.POINTER(ctypes.c_uint),
    ]
    lib.clang_disposeOverriddenCursors.argtypes = [ctypes.POINTER(cindex.Cursor)]
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


class CExpressions(ABC):
    """Turns expressions into the intermediate form."""

    def __init__(self) -> None:
        self.cindex = load_clang()
        self.kinds = self.cindex.CursorKind
        self.lib = self.cindex.conf.lib
        self.functions: dict[str, SourceFunction] = {}
        self.problems: list[str] = []
        self.before: list[Statement] = []  # What an expression needs first
        self.changed: Counter[str] = Counter()  # How often a variable is assigned so far
        self.elements: dict[str, Expression] = {}  # What a reference of ``for (x : all)`` is
        self.types: dict[tuple[int, str, bool], SourceType] = {}  # By kinds and names
        self.depth = 0  # Of the expression at hand

    @abstractmethod
    def _statements(self, cursor: Any) -> Body:
        """The statements of a block, or the one that stands in place of it."""

    @abstractmethod
    def _text(self, name: str) -> bytes:
        """What is in a file."""

    def _note(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def _locals(self, cursor: Any) -> Iterator[Statement]:
        """A variable of a function, and the call that makes it if it is an object."""
        variable, place = self._variable(cursor), self._place(cursor)
        last = [cursor, *cursor.get_children()][-1]
        while last.kind in (self.kinds.CXX_FUNCTIONAL_CAST_EXPR, self.kinds.UNEXPOSED_EXPR):
            last = [cursor, *last.get_children()][-1]
        made = self._constructed(Address(variable, OTHER), last)
        made = made or self._of_template(Address(variable, OTHER), cursor)
        if made is None:
            declared = self._declared(cursor)
            yield declared
            if declared.value is None or getattr(declared.value, "operands", None) == ():
                for assignment in self._defaults(cursor.type, variable):
                    yield ExpressionStatement(assignment, place)
        else:
            yield Declaration(variable, None, place)
            yield ExpressionStatement(made, place)

    def _defaults(self, type_: Any, base: Expression) -> Iterator[Assignment]:
        """What members of an object are by their class, where a constructor does not say it."""
        plain = type_.get_canonical()
        if plain.get_declaration().location.is_in_system_header:
            return
        for parent in plain.get_declaration().get_children():
            if parent.kind == self.kinds.CXX_BASE_SPECIFIER:
                yield from self._defaults(parent.type, base)
        for field in plain.get_fields():
            last = next(reversed(list(field.get_children())), None)
            member = Field(base, field.spelling, self._type(field.type))
            if last is not None and last.kind.is_expression() and not field.is_bitfield():
                yield Assignment(member, "", self._value(last), member.type)
            elif CONTAINERS.match(member.type.name):
                yield Assignment(member, "", SourceOperation("list", (), member.type), member.type)

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
        type_ = self._type(cursor.type)
        is_reference = cursor.type.kind == self.cindex.TypeKind.LVALUEREFERENCE
        if cursor.kind == self.kinds.PARM_DECL and type_.kind == "array" and not is_reference:
            type_ = SourceType("pointer", 8, type_.element, name=type_.name)
        return Variable(key, cursor.spelling, type_)

    def _value(self, cursor: Any) -> Expression:
        self.depth += 1
        try:
            if self.depth > DEEPEST_EXPRESSION:
                self._note(
                    f"{self._place(cursor)}: nested too deeply: read to a depth of "
                    f"{DEEPEST_EXPRESSION}"
                )
                return SourceOperation("unknown", (), OTHER)
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
        if kind == kinds.CXX_UNARY_EXPR and (size := self._constant(cursor)):  # sizeof
            return Literal(size, type_)
        if kind == kinds.CXX_UNARY_EXPR:  # that of a parameter of a template is not known
            extent = cursor.extent
            text = self._text(extent.start.file.name)[extent.start.offset : extent.end.offset]
            name = re.sub(r"\W+", "_", text.decode("latin-1")).strip("_")
            return Variable(name, name, INTEGER)
        if kind == kinds.DECL_REF_EXPR:
            return self._reference(cursor, type_)
        if kind == kinds.MEMBER_REF_EXPR:
            if not children or children[0].kind in (kinds.TYPE_REF, kinds.NAMESPACE_REF):
                base: Expression = OBJECT
            else:
                base = self._value(children[0])
                if children[0].type.get_canonical().kind == self.cindex.TypeKind.POINTER:
                    base = Element(base, Literal(0), base.type.element or OTHER)
            return Field(base, cursor.spelling or self._last_word(cursor), type_)
        if kind == kinds.ARRAY_SUBSCRIPT_EXPR:
            return Element(self._value(children[0]), self._value(children[1]), type_)
        if kind == kinds.UNARY_OPERATOR:
            return self._unary(cursor, children[0], type_)
        if kind in (kinds.BINARY_OPERATOR, kinds.COMPOUND_ASSIGNMENT_OPERATOR):
            operator = self._operator(cursor, "Binary")
            if operator in ("+", "-"):
                return self._sum(cursor, type_)
            left, right = map(self._value, children)
            if kind == kinds.COMPOUND_ASSIGNMENT_OPERATOR:
                return self._assignment(left, operator.removesuffix("="), right, type_)
            if operator == "=":
                return self._assignment(left, "", right, type_)
            return SourceOperation(operator, (left, right), type_)
        if kind == kinds.LAMBDA_EXPR:
            return self._lambda(cursor, children)
        if kind == kinds.StmtExpr:
            *first, last = self._statements(children[0]) or (None,)
            self.before += [one for one in first if one is not None]
            if isinstance(last, ExpressionStatement):
                return last.expression
            self.before += [last] if last is not None else []
            return SourceOperation("unknown", (), type_)
        if kind == kinds.CXX_THROW_EXPR:
            return Invocation("", "abort", (), type_, self._place(cursor))
        if kind == kinds.CONDITIONAL_OPERATOR:
            return SourceOperation("?:", tuple(map(self._value, children)), type_)
        if kind == kinds.CALL_EXPR:
            return self._call(cursor, children, type_)
        if kind == kinds.CXX_THIS_EXPR:
            return THIS
        if kind == kinds.CXX_NEW_EXPR and children:
            room = Invocation("", "operator new", (), type_, self._place(cursor))
            return self._constructed(room, children[-1]) or self._of_template(room, cursor) or room
        if kind == kinds.INIT_LIST_EXPR:
            listed = tuple(map(self._value, children))
            if type_.kind == "record":
                fields = cursor.type.get_canonical().get_fields()
                listed = tuple(
                    SourceOperation(f".{field.spelling}", (value,), value.type)
                    for field, value in zip(fields, listed, strict=False)
                )
            return SourceOperation("list", listed, type_)
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
            name = what.type.get_canonical().spelling
            return Literal(what.get_usr(), SourceType("function", name=name))
        if what.get_usr() in self.elements:
            return self.elements[what.get_usr()]
        if type_.kind == "int" and what.type.is_const_qualified():
            constant = self._constant_of(what)
            if constant is not None:
                return Literal(constant, type_)
        variable = self._variable(what)
        return variable if type_.kind == "array" else variable._replace(type=type_)

    def _assignment(
        self,
        target: Expression,
        operator: str,
        value: Expression,
        type_: SourceType,
        is_postfix: bool = False,
    ) -> Assignment:
        if isinstance(target, Variable):
            self.changed[target.key] += 1
        return Assignment(target, operator, value, type_, is_postfix)

    def _sum(self, cursor: Any, type_: SourceType) -> Expression:
        """A sum; one of many operands as a tree of little depth, with as many operations."""
        operands, signs, inner = [], [], cursor
        while inner.kind == self.kinds.BINARY_OPERATOR:
            operator = self._operator(inner, "Binary")
            if operator not in ("+", "-"):
                break
            inner, right = inner.get_children()
            operands.append(right)
            signs.append(operator)
            while inner.kind == self.kinds.UNEXPOSED_EXPR and inner.type == cursor.type:
                (only,) = list(inner.get_children())[:1] or (None,)
                if only is None or only.kind != self.kinds.BINARY_OPERATOR:
                    break
                inner = only
        terms = [self._value(operand) for operand in (inner, *reversed(operands))]
        if len(terms) > _LONG_SUM and type_.kind in ("int", "real"):
            return _tree(terms, ["+", *reversed(signs)], type_)
        found = terms[0]
        for term, sign in zip(terms[1:], reversed(signs), strict=True):
            pointers = (one.type for one in (found, term) if one.type.kind in ("pointer", "array"))
            found = SourceOperation(sign, (found, term), next(pointers, type_))
        return found

    def _lambda(self, cursor: Any, children: Sequence[Any]) -> Expression:
        """A function without a name; what it captures is found by the calls around it."""
        place = self._place(cursor)
        key = f"lambda {place.file}:{cursor.extent.start.offset}"
        if key not in self.functions:
            parameters = [child for child in children if child.kind == self.kinds.PARM_DECL]
            self.functions[key] = SourceFunction(
                key,
                f"lambda of line {place.line}",
                tuple(map(self._variable, parameters)),
                self._statements(children[-1]),
                OTHER,
                place,
            )
        return Literal(key, SourceType("function", name=cursor.type.get_canonical().spelling))

    def _is_function(self, cursor: Any) -> bool:
        types = self.cindex.TypeKind
        return cursor.type.get_canonical().kind in (types.FUNCTIONPROTO, types.FUNCTIONNOPROTO)

    def _unary(self, cursor: Any, operand: Any, type_: SourceType) -> Expression:
        operator = self._operator(cursor, "Unary")
        value = self._value(operand)
        if operator in ("++", "--"):
            by = Literal(1)
            is_postfix = cursor.extent.start.offset == operand.extent.start.offset
            return self._assignment(value, operator[0], by, type_, is_postfix)
        if self._is_function(cursor if operator == "*" else operand):
            return value
        if operator == "*":
            return Element(value, Literal(0), type_)
        if operator == "&":
            if isinstance(value, Variable):
                self.changed[value.key] += 1  # by whoever has its address
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
        kinds, place = self.kinds, self._place(cursor)
        is_method = what is not None and "lambda" not in what.semantic_parent.spelling
        if name == "operator()" and arguments and not is_method:
            return Invocation("", name, tuple(arguments[1:]), type_, place, arguments[0])
        if (what is None and not name and children) or (
            what is not None and what.kind in (kinds.VAR_DECL, kinds.PARM_DECL, kinds.FIELD_DECL)
        ):
            callee = self._value(children[0])
            name = getattr(callee, "name", "") or name
            if what is None and isinstance(callee, Field):  # a method, inside of a template
                arguments = self._with_object(children[0], arguments)
            is_overloaded = children[0].kind == kinds.DECL_REF_EXPR  # found by types that are open
            if what is None and (is_overloaded or isinstance(callee, Field)):
                return Invocation("", name, tuple(arguments), type_, place)
            return Invocation("", name, tuple(arguments), type_, place, callee)
        if what is not None and what.kind == self.kinds.CONSTRUCTOR:
            is_text = what.semantic_parent.spelling == "basic_string"
            if arguments and (is_text or len(arguments) == 1):
                return arguments[0]
            return SourceOperation("list", tuple(arguments), type_)
        if what is not None and self._object(what) and children:
            is_infix = name.startswith("operator") and children[0].spelling != name
            if is_infix and arguments:  # its object is among them
                arguments[0] = Address(arguments[0], OTHER)
            elif not is_infix:
                arguments = self._with_object(children[0], arguments)
        key = self._definition_key(what) if what is not None else ""
        is_dynamic = bool(self.lib.clang_Cursor_isDynamicCall(cursor))
        return Invocation(key, name, tuple(arguments), type_, place, None, is_dynamic)

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
        key, place = self._definition_key(what), self._place(cursor)
        return Invocation(key, what.spelling, (pointer, *values), THIS.type, place)

    def _of_template(self, pointer: Expression, cursor: Any) -> Expression | None:
        """As `_constructed`, of a class template whose types are open: by the count of values."""
        children, kinds = list(cursor.get_children()), self.kinds
        names = (child.referenced for child in children if child.kind == kinds.TEMPLATE_REF)
        template = next(names, None)
        if (
            template is None
            or children[-1].kind != kinds.UNEXPOSED_EXPR
            or children[-1].type.spelling
        ):
            return None
        values = [self._value(child) for child in children[-1].get_children()]
        if template.location.is_in_system_header:
            key = "" if template.spelling == "vector" else None
        else:
            fitting = (
                one.get_usr()
                for one in template.get_children()
                if one.kind == kinds.CONSTRUCTOR
                and sum(part.kind == kinds.PARM_DECL for part in one.get_children()) == len(values)
            )
            key = next(fitting, None)
        if key is None:
            return None
        arguments = (pointer, *values)
        return Invocation(key, template.spelling, arguments, THIS.type, self._place(cursor))

    def _definition_key(self, function: Any) -> str:
        """The key of a function; of one that is made of a template, that of the template."""
        template = self.lib.clang_getSpecializedCursorTemplate(function)
        own = template if template is not None and template.get_usr() else function
        return str(own.get_usr())

    def _with_object(self, callee: Any, arguments: Sequence[Expression]) -> list[Expression]:
        """The arguments of a method, that which points to its object first."""
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
        return self._constant_of(cursor) or 0

    def _constant_of(self, cursor: Any) -> float | int | None:
        result = self.lib.clang_Cursor_Evaluate(cursor)
        if not result:
            return None
        try:
            if self.lib.clang_EvalResult_getKind(result) == 2:
                return float(self.lib.clang_EvalResult_getAsDouble(result))
            if self.lib.clang_EvalResult_getKind(result) != 1:
                return None
            return int(self.lib.clang_EvalResult_getAsLongLong(result))
        finally:
            self.lib.clang_EvalResult_dispose(result)

    def _type(self, type_: Any) -> SourceType:
        plain = type_.get_canonical()
        key = plain.kind.value, plain.spelling, "MPI_" in type_.spelling
        if key not in self.types:
            self.types[key] = self._new_type(type_, plain)
        return self.types[key]

    def _new_type(self, type_: Any, plain: Any) -> SourceType:
        kinds, kind, name = self.cindex.TypeKind, plain.kind, plain.spelling
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
            if deep == kinds.RECORD:  # which may have a pointer to itself
                bytes_ = max(inner.get_canonical().get_size(), 0)
                element = SourceType("record", bytes_, name=inner.spelling)
            else:
                element = self._type(inner)
            return SourceType("pointer", size, element, name=name)
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


def _tree(terms: Sequence[Expression], signs: Sequence[str], type_: SourceType) -> Expression:
    """A sum whose first term is added: halves, the second one with signs as behind its own."""
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    operator, rest = signs[half], list(signs[half:])
    if operator == "-":
        rest = ["+" if sign == "-" else "-" for sign in rest]
    parts = _tree(terms[:half], signs[:half], type_), _tree(terms[half:], rest, type_)
    return SourceOperation(operator, parts, type_)
