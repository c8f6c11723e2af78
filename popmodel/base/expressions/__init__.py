"""Text written by people, as an expression that is safe to evaluate.

Signatures and metric families hold formulas as text. They may come from anyone, so they are never
given to ``eval`` or to ``sympy.sympify`` (which executes code, and reads ``N``, ``S``, ``beta`` and
others as its own objects). The text is parsed to a syntax tree, and every node of the tree must be
one that the grammar knows. `Expression.evaluate` compiles a tree of just such nodes, for numbers
and arrays; `Expression.tree` is for who computes with anything else.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import did_you_mean
from popmodel.base.expressions.grammar import (
    FUNCTIONS,
    MAX_LENGTH,
    ExpressionError,
    Takes,
    read_tree,
)
from popmodel.base.values import dataclass

if TYPE_CHECKING:
    from popmodel.base.expressions.compiled import Compiled

__all__ = ["MAX_LENGTH", "Expression", "ExpressionError", "Takes", "parse"]

_PLAIN = {float, int}
MAX_EXPONENT = 64  # of a constant power: exact arithmetic on 9**9**9 would never end


@dataclass(frozen=True)
class Expression:
    """A parsed expression; made by `parse`."""

    text: str  # The text as written
    names: frozenset[str]  # The names that need a value
    calls: frozenset[str]  # The functions that it calls
    tree: ast.expr = field(repr=False, compare=False)

    def evaluate(
        self,
        values: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> Any:
        """Compute the value for numbers, or elementwise for arrays that broadcast together."""
        if not self.names and not self.calls:  # as most counts of signatures
            return self._constant
        return self._computed(values, functions or {})

    @cached_property
    def _constant(self) -> Any:
        return self._computed({}, {})

    def _computed(
        self, values: Mapping[str, Any], further: Mapping[str, Callable[..., Any]]
    ) -> Any:
        try:
            given = {name: values[name] for name in self.names}
        except KeyError:
            raise self._unknown(values) from None
        for name in self.calls - FUNCTIONS.keys() - further.keys():
            raise ExpressionError(self.text, f"function {name!r} is not defined")
        types = set(map(type, given.values()))
        if types <= _PLAIN or all(isinstance(value, float | int) for value in given.values()):
            if not types <= {float}:
                given = {name: float(value) for name, value in given.items()}
            try:
                found = self._of_functions(given, further) if further else self._of_numbers(given)
            except (ArithmeticError, ValueError, TypeError):
                found = None  # what is wrong is told of NumPy's numbers; or a function gave arrays
            if isinstance(found, float | bool) and math.isfinite(found):
                return found if isinstance(found, bool) else float(found)
            if further and hasattr(found, "ndim") and _is_finite(found):  # arrays of a function
                return found.item() if found.ndim == 0 else found
        return self._by_numpy(given, further)

    def _by_numpy(self, given: Mapping[str, Any], further: Mapping[str, Callable[..., Any]]) -> Any:
        import numpy as np

        from popmodel.base.expressions.compiled import traced_functions
        from popmodel.base.expressions.elementary import TracedExpression

        # NumPy's scalars divide by 0 and overflow as arrays do
        environment = {
            name: np.float64(value)
            if isinstance(value, float | int)
            else np.asarray(value, dtype=np.float64)[()]
            for name, value in given.items()
        }
        if any(isinstance(value, TracedExpression) for value in given.values()) and not any(
            value.ndim for value in environment.values()
        ):
            return self._of_traced(given, traced_functions(), further)
        with np.errstate(all="ignore"):
            found = self.elementwise(environment, further)
            if isinstance(found, float) and math.isfinite(found):  # nearly all are
                return float(found)
            if isinstance(
                found, TracedExpression
            ):  # of a function: none of the names has a formula
                return found
            result = np.asarray(found)
            if result.dtype != bool and not np.isfinite(result).all():
                finite_input = all(np.isfinite(value).all() for value in environment.values())
                if finite_input or np.isnan(result).any():
                    raise ExpressionError(
                        self.text,
                        f"has no finite value for {_shown(environment)}",
                        hint="check for a division by zero, a root or logarithm of a negative "
                        "number, or a power that is too large",
                    )
        return result.item() if result.ndim == 0 else result

    def elementwise(
        self, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]
    ) -> Any:
        """Compute with NumPy's numbers and arrays; what has no value is not finite."""
        from popmodel.base.expressions.compiled import array_functions

        return self._of_arrays(values, array_functions(), functions)

    @cached_property
    def _of_numbers(self) -> Callable[[Mapping[str, Any]], Any]:
        from popmodel.base.expressions.compiled import number_functions

        compute, functions = self._of_traced, number_functions()
        return lambda values: compute(values, functions, {})

    def _of_functions(
        self, values: Mapping[str, Any], further: Mapping[str, Callable[..., Any]]
    ) -> Any:
        """Compute with numbers and functions of the caller, which may give arrays."""
        import numpy as np

        from popmodel.base.expressions.compiled import number_functions

        with np.errstate(all="ignore"):
            return self._of_traced(values, number_functions(), further)

    @cached_property
    def _of_traced(self) -> Compiled:
        from popmodel.base.expressions.compiled import of_numbers

        return of_numbers(self.tree)

    @cached_property
    def _of_arrays(self) -> Compiled:
        from popmodel.base.expressions.compiled import of_arrays

        return of_arrays(self.tree)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: it is compiled anew where it is needed."""
        kept = ("text", "names", "calls", "tree")
        return {name: value for name, value in vars(self).items() if name in kept}

    def _unknown(self, values: Mapping[str, Any]) -> ExpressionError:
        name = min(self.names - values.keys())
        known = ", ".join(sorted(values)) or "none"
        return ExpressionError(
            self.text,
            f"unknown name {name!r}",
            hint=did_you_mean(name, values, f"known names: {known}"),
        )

    def __str__(self) -> str:
        return self.text


def parse(text: str, functions: Mapping[str, Takes] | None = None, root: str = "") -> Expression:
    """Read an expression.

    Allowed are numbers, names, ``+ - * / ** % //``, comparisons, ``and``, ``or``, ``not``,
    ``a if condition else b`` and calls of ``min max sqrt log log2 exp abs ceiling floor
    is_square``.
    """
    return _parsed(text, root) if not functions else _read(text, functions, root)


@lru_cache(maxsize=4096)  # the same few formulas are read thousands of times
def _parsed(text: str, root: str) -> Expression:
    return _read(text, {}, root)


def _read(text: str, functions: Mapping[str, Takes], root: str) -> Expression:
    tree, names, calls = read_tree(text, functions, root)
    expression = Expression(text, frozenset(names), frozenset(calls), tree)
    if "**" in text:
        _check_constant_powers(expression)
    return expression


def _check_constant_powers(expression: Expression) -> None:
    """Refuse constant powers that are not real or that exact arithmetic could not finish."""
    leading = len(expression.text) - len(expression.text.lstrip())
    for node in ast.walk(expression.tree):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)):
            continue
        column = leading + node.col_offset + 1
        exponent, value = _constant(node.right), _constant(node)
        if any(each is not None and math.isnan(each) for each in (exponent, value)):
            raise ExpressionError(expression.text, "a power is not a real number", column=column)
        if exponent is not None and not abs(exponent) <= MAX_EXPONENT:
            raise ExpressionError(
                expression.text, f"an exponent is larger than {MAX_EXPONENT}", column=column
            )
        if value is not None and not math.isfinite(value):
            raise ExpressionError(expression.text, "a power is too large", column=column)


def _constant(node: ast.expr) -> float | None:
    """Value of a subtree without names; None for other subtrees.

    Infinite if it is too large or divides by zero, NaN if it is not a real number.
    """
    calls = {part.func for part in ast.walk(node) if isinstance(part, ast.Call)}
    names = {part for part in ast.walk(node) if isinstance(part, ast.Name)} - calls
    if names or not {call.id for call in calls if isinstance(call, ast.Name)} <= set(FUNCTIONS):
        return None
    import numpy as np

    from popmodel.base.expressions.compiled import array_functions, of_arrays

    with np.errstate(all="ignore"):
        return float(of_arrays(node)({}, array_functions(), {}))


def _is_finite(found: Any) -> bool:
    import numpy as np

    return found.dtype == np.float64 and bool(np.isfinite(found).all())


def _shown(environment: Mapping[str, Any]) -> str:
    """Name the values that led to a failure, shortly."""
    import numpy as np

    parts = []
    for name, value in sorted(environment.items()):
        array = np.asarray(value)
        few = f"{array.item():.6g}" if array.ndim == 0 else f"an array of {array.size}"
        parts.append(f"{name} = {few}")
    return ", ".join(parts) or "these constants"
