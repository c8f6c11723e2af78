"""What a formula may contain: every node of its syntax tree is checked against this grammar."""

from __future__ import annotations

import ast
import math
import re
import warnings
from collections.abc import Iterable, Mapping

from popmodel.base.errors import PopmodelError, did_you_mean
from popmodel.base.values import NamedTuple

MAX_LENGTH = 2000  # characters; the longest formula anybody should want to read is far shorter
_WITH_UNIT = re.compile(r"[\d.]+(?:[eE][+-]?\d+)?\s*[a-zA-Z]+(?:/[a-zA-Z]+)?")
_WARNED = re.compile(r"[0-9.][A-Za-z_]|\\")  # numbers that touch a word, escapes in text
MAX_DEPTH = 100  # nested operations, so that the walk never meets Python's recursion limit

# name -> (least, most) number of arguments; None is any number
FUNCTIONS: Mapping[str, tuple[int, int | None]] = {
    "min": (1, None),
    "max": (1, None),
    "sqrt": (1, 1),
    "log": (1, 2),
    "log2": (1, 1),
    "exp": (1, 1),
    "abs": (1, 1),
    "ceiling": (1, 1),
    "floor": (1, 1),
    "is_square": (1, 1),
}


class Takes(NamedTuple):
    """What a function beyond `FUNCTIONS` takes."""

    numbers: int  # Number of its arguments that are numbers
    words: tuple[str, ...] = ()  # One of them, in quotes, may stand behind the numbers


class ExpressionError(PopmodelError):
    """An expression cannot be read, or has no value."""

    def __init__(
        self, text: str, problem: str, *, column: int | None = None, hint: str | None = None
    ) -> None:
        shown = text if len(text) <= 60 else text[:57] + "..."
        where = "" if column is None else f", column {column}"
        super().__init__(f"expression {shown!r}{where}: {problem}", hint)
        self.text = text
        self.problem = problem
        self.column = column


OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.Mod, ast.FloorDiv)
COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)

_REFUSED: Mapping[type[ast.AST], str] = {
    ast.Attribute: "attributes (a.b) are not allowed",
    ast.Subscript: "indexing (a[b]) is not allowed",
    ast.Lambda: "lambda is not allowed",
    ast.ListComp: "comprehensions are not allowed",
    ast.SetComp: "comprehensions are not allowed",
    ast.DictComp: "comprehensions are not allowed",
    ast.GeneratorExp: "comprehensions are not allowed",
    ast.NamedExpr: "assignment (:=) is not allowed",
    ast.JoinedStr: "text is not allowed",
    ast.Starred: "unpacking (*a) is not allowed",
    ast.List: "lists are not allowed",
    ast.Tuple: "tuples are not allowed",
    ast.Dict: "dictionaries are not allowed",
    ast.Set: "sets are not allowed",
}


def read_tree(
    text: str, functions: Mapping[str, Takes], root: str = ""
) -> tuple[ast.expr, set[str], set[str]]:
    """Parse a text and check it against the grammar."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            text,
            f"has {len(text)} characters, more than the {MAX_LENGTH} allowed",
            hint="define parts of it as formulas with a name",
        )
    if unexpected := re.search(r"[^ -~\t\n]", text):
        column = unexpected.start() + 1
        raise ExpressionError(text, f"unexpected character {unexpected[0]!r}", column=column)
    if not text.strip():
        raise ExpressionError(text, "is empty", hint="write a number or a formula")
    flat = text.replace("\n", " ").replace("\t", " ")
    leading = len(flat) - len(flat.lstrip())
    try:
        tree = _parsed(flat.strip())
    except SyntaxError as error:
        # Python gives 0 when the text ends too early
        column = leading + error.offset if error.offset else len(flat.rstrip()) + 1
        problem = error.msg or "cannot be read"
        hint = "write the number without its unit" if _WITH_UNIT.fullmatch(flat.strip()) else None
        raise ExpressionError(text, f"syntax error ({problem})", column=column, hint=hint) from None
    except (MemoryError, RecursionError):
        raise ExpressionError(text, "is nested too deeply") from None
    known = dict(FUNCTIONS) | {
        name: (takes.numbers, takes.numbers + bool(takes.words))
        for name, takes in functions.items()
    }
    words = {name: takes for name, takes in functions.items() if takes.words}
    names: set[str] = set()
    calls: set[str] = set()
    _check(tree, 0, leading, text, known, words, root, names, calls)
    return tree, names, calls


def _parsed(text: str) -> ast.expr:
    """What Python reads; what it reads with a warning, such as 1if, it will not read one day."""
    if not re.search(_WARNED, text):
        return ast.parse(text, mode="eval").body
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)
        warnings.simplefilter("error", DeprecationWarning)
        return ast.parse(text, mode="eval").body


def _check(
    node: ast.expr,
    depth: int,
    leading: int,
    text: str,
    known: Mapping[str, tuple[int, int | None]],
    words: Mapping[str, Takes],
    root: str,
    names: set[str],
    calls: set[str],
) -> None:
    """Refuse every node that is not in the grammar; collect names and calls."""

    def refuse(problem: str, hint: str | None = None) -> ExpressionError:
        return ExpressionError(text, problem, column=leading + node.col_offset + 1, hint=hint)

    if depth > MAX_DEPTH:
        raise refuse(
            f"is nested more than {MAX_DEPTH} deep", "define parts of it as formulas with a name"
        )
    children: Iterable[ast.expr]
    match node:
        case ast.Constant(value=value):
            # bool is an int to Python, but True in a formula is a mistake
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise refuse(f"{ast.unparse(node)[:20]} is not a number")
            if not _is_finite(value):
                raise refuse("a number is too large")
            children = ()
        case ast.Name(id=name):
            if name in known:
                raise refuse(f"{name!r} is a function and needs arguments in parentheses")
            names.add(name)
            children = ()
        case ast.Attribute() if root and (dotted := dotted_name(node)).startswith(f"{root}."):
            names.add(dotted)
            children = ()
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not(), operand=operand):
            children = (operand,)
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in OPERATORS:
                raise refuse(
                    "this operator is not allowed",
                    "write ** for a power" if isinstance(op, ast.BitXor) else None,
                )
            children = (left, right)
        case ast.BoolOp(values=values):
            children = values
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            if not all(isinstance(op, COMPARISONS) for op in ops):
                raise refuse("'in' and 'is' are not allowed")
            children = (left, *comparators)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            children = (test, body, orelse)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            if name not in known:
                hint = did_you_mean(name, known, f"known functions: {', '.join(known)}")
                raise refuse(f"unknown function {name!r}", hint)
            if keywords:
                raise refuse(f"{name} takes no keyword arguments")
            least, most = known[name]
            if len(args) < least or (most is not None and len(args) > most):
                raise refuse(f"{name} takes {_count(least, most)} arguments, not {len(args)}")
            calls.add(name)
            children = args
            if name in words and len(args) > words[name].numbers:
                *children, last = args
                offered = words[name].words
                if not (isinstance(last, ast.Constant) and last.value in offered):
                    listed = ", ".join(map(repr, offered))
                    raise refuse(f"the last argument of {name} is one of {listed}, in quotes")
        case ast.Call():
            raise refuse("only functions can be called, by name")
        case _:
            raise refuse(_REFUSED.get(type(node), f"{type(node).__name__} is not allowed"))
    for child in children:
        _check(child, depth + 1, leading, text, known, words, root, names, calls)


def dotted_name(node: ast.expr) -> str:
    """Return ``a.b.c`` of names behind each other; empty if it is anything else."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(words)]) if isinstance(node, ast.Name) else ""


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _count(least: int, most: int | None) -> str:
    """How many arguments a function takes, in words."""
    if most is None:
        return f"{least} or more"
    return f"{least}" if most == least else f"{least} to {most}"
