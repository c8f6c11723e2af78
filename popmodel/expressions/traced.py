"""Numbers that remember how they were computed.

A model that is written for numbers gives its formula as well if it is run on these: every operation
is done twice, on a float and on a SymPy expression. Comparisons look at the float, so of a maximum,
a threshold or a choice the formula has the side that holds for the values at hand, and it is as
short as a person would write it for that case.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

_LARGEST_DENOMINATOR = 64  # 1/3 and 0.125 are shown as fractions, 0.035 as it is


class TracedExpression:
    """A number with the formula that gave it."""

    __slots__ = ("formula", "value")

    def __init__(self, value: float, formula: Any) -> None:
        self.value = float(value)
        self.formula = formula

    def _with(self, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
        if isinstance(other, TracedExpression):
            return TracedExpression(
                operation(self.value, other.value), operation(self.formula, other.formula)
            )
        if not _is_number(other):
            return NotImplemented
        return TracedExpression(
            operation(self.value, float(other)), operation(self.formula, exact(other))
        )

    def _after(self, other: Any, operation: Callable[[Any, Any], Any]) -> Any:
        return self._with(other, lambda a, b: operation(b, a))

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    def __radd__(self, other: Any) -> Any:
        return self._after(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._after(other, lambda a, b: a - b)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    def __rmul__(self, other: Any) -> Any:
        return self._after(other, lambda a, b: a * b)

    def __truediv__(self, other: Any) -> Any:
        return self._with(other, _divided)

    def __rtruediv__(self, other: Any) -> Any:
        return self._after(other, _divided)

    def __pow__(self, other: Any) -> Any:
        return self._with(other, _power)

    def __rpow__(self, other: Any) -> Any:
        return self._after(other, _power)

    def __floordiv__(self, other: Any) -> Any:
        return (self / other).floor()

    def __rfloordiv__(self, other: Any) -> Any:
        return (other / self).floor()

    def __mod__(self, other: Any) -> Any:
        return self - self // other * other

    def __rmod__(self, other: Any) -> Any:
        return other - other // self * self

    def __neg__(self) -> TracedExpression:
        return TracedExpression(-self.value, -self.formula)

    def __pos__(self) -> TracedExpression:
        return self

    def __abs__(self) -> TracedExpression:
        return self if self.value >= 0 else -self

    # NumPy calls these for its functions of the same names

    def sqrt(self) -> TracedExpression:
        """Return the square root."""
        import sympy

        return TracedExpression(_quietly(math.sqrt, self.value), sympy.sqrt(self.formula))

    def log(self) -> TracedExpression:
        """Return the natural logarithm."""
        import sympy

        return TracedExpression(_quietly(math.log, self.value), sympy.log(self.formula))

    def exp(self) -> TracedExpression:
        """Return the exponential."""
        import sympy

        return TracedExpression(_quietly(math.exp, self.value), sympy.exp(self.formula))

    def ceil(self) -> TracedExpression:
        """Round up."""
        import sympy

        return TracedExpression(_rounded(math.ceil, self.value), sympy.ceiling(self.formula))

    def floor(self) -> TracedExpression:
        """Round down."""
        import sympy

        return TracedExpression(_rounded(math.floor, self.value), sympy.floor(self.formula))

    __ceil__ = ceil
    __floor__ = floor

    # decisions are made by the value

    def __float__(self) -> float:
        return self.value

    def __int__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return self.value != 0

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TracedExpression):
            return self.value == other.value
        return self.value == other

    def __lt__(self, other: Any) -> bool:
        return self.value < float(other)

    def __le__(self, other: Any) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: Any) -> bool:
        return self.value > float(other)

    def __ge__(self, other: Any) -> bool:
        return self.value >= float(other)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __repr__(self) -> str:
        return f"Traced({self.value!r}, {self.formula})"


def named(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a function of some numbers, in formulas by its name if any of them is traced.

    For what is computed by a procedure: a formula of its steps would say nothing.
    """
    if not any(isinstance(one, TracedExpression) for one in arguments):
        return function(*arguments)
    import sympy

    values = [one.value if isinstance(one, TracedExpression) else one for one in arguments]
    formulas = [
        one.formula if isinstance(one, TracedExpression) else exact(one) for one in arguments
    ]
    return TracedExpression(function(*values), sympy.Function(name)(*formulas))


def exact(number: Any) -> Any:
    """Return a number as SymPy's: whole, or a fraction if it is one that people would write."""
    import sympy

    value = float(number)
    if not math.isfinite(value):
        return sympy.Float(value)
    fraction = Fraction(value).limit_denominator(_LARGEST_DENOMINATOR)
    if float(fraction) == value:
        return sympy.Rational(fraction.numerator, fraction.denominator)
    return sympy.Float(value)


def log2(number: Any) -> Any:
    """Return the logarithm to base 2, in formulas as a quotient of natural ones."""
    import sympy

    return (
        number.log() / TracedExpression(2.0, sympy.Integer(2)).log()
        if isinstance(number, TracedExpression)
        else math.log2(number)
    )


def is_square(number: Any) -> bool:
    """Tell whether a number is the square of a whole one."""
    root = round(math.sqrt(float(number)))
    return root * root == float(number)


def _is_number(value: Any) -> bool:
    """Tell whether a value is one plain number: no array, no SymPy object."""
    return isinstance(value, int | float) or (hasattr(value, "dtype") and value.ndim == 0)


# A branch that is not taken may divide by zero or take the root of a negative number, as with
# NumPy's numbers; NumPy itself would warn.


def _divided(a: Any, b: Any) -> Any:
    return _quietly(operator.truediv, a, b) if isinstance(a, float) else a / b


def _power(a: Any, b: Any) -> Any:
    return _quietly(math.pow, a, b) if isinstance(a, float) else a**b


def _quietly(function: Callable[..., float], *numbers: float) -> float:
    try:
        return function(*numbers)
    except (ZeroDivisionError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf


def _rounded(function: Callable[[float], int], number: float) -> float:
    return float(function(number)) if math.isfinite(number) else number
