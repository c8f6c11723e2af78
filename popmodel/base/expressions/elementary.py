"""Elementary functions that accept numbers, arrays and traced numbers alike.

A cost is written once with these functions. The closed form evaluates it with arrays of parameter
draws, the replay with numbers, and a report with traced numbers that remember their formula, so
the three cannot disagree.

A model that is written for numbers gives its formula as well if it is run on traced ones: every
operation is done twice, on a float and on a SymPy expression. Comparisons look at the float, so of
a maximum, a threshold or a choice the formula has the side that holds for the values at hand, and
it is as short as a person would write it for that case.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

_LARGEST_DENOMINATOR = 64  # 1/3 and 0.125 are shown as fractions, 0.035 as it is


def _forward(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method of an operator: both numbers and both formulas are combined."""

    def method(self: TracedExpression, other: Any) -> Any:
        if isinstance(other, TracedExpression):
            value, formula = other.value, other.formula
        elif isinstance(other, int | float) or (hasattr(other, "dtype") and other.ndim == 0):
            value, formula = float(other), exact(other)
        else:  # an array, or an object of SymPy
            return NotImplemented
        return TracedExpression(
            _quietly(operation, self.value, value), operation(self.formula, formula)
        )

    return method


def _reflected(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the method of an operator whose left operand is another number."""
    return _forward(lambda a, b: operation(b, a))


def _compared(operation: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    """Return the method of a comparison, which the numbers alone decide."""
    return lambda self, other: operation(self.value, float(other))


class TracedExpression:
    """A number with the formula that gave it."""

    __slots__ = ("formula", "value")

    def __init__(self, value: float, formula: Any) -> None:
        self.value = float(value)
        self.formula = formula

    __add__, __radd__ = _forward(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _forward(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _forward(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _forward(operator.truediv), _reflected(operator.truediv)
    __pow__, __rpow__ = _forward(operator.pow), _reflected(operator.pow)
    __lt__, __le__ = _compared(operator.lt), _compared(operator.le)
    __gt__, __ge__ = _compared(operator.gt), _compared(operator.ge)

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
        return self._of(math.sqrt, "sqrt")

    def log(self) -> TracedExpression:
        """Return the natural logarithm."""
        return self._of(math.log, "log")

    def exp(self) -> TracedExpression:
        """Return the exponential."""
        return self._of(math.exp, "exp")

    def ceil(self) -> TracedExpression:
        """Round up."""
        return self._of(_unless_infinite(math.ceil), "ceiling")

    def floor(self) -> TracedExpression:
        """Round down."""
        return self._of(_unless_infinite(math.floor), "floor")

    __ceil__ = ceil
    __floor__ = floor

    def _of(self, function: Callable[[float], float], name: str) -> TracedExpression:
        import sympy

        return TracedExpression(_quietly(function, self.value), getattr(sympy, name)(self.formula))

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
        return self.value == (other.value if isinstance(other, TracedExpression) else other)

    def __format__(self, spec: str) -> str:
        return format(self.value, spec)

    def __repr__(self) -> str:
        return f"Traced({self.value!r}, {self.formula})"


def named(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return a function of some numbers, in formulas by its name if any of them is traced.

    For what is computed by a procedure: a formula of its steps would say nothing.
    """
    if not any(isinstance(argument, TracedExpression) for argument in arguments):
        return function(*arguments)
    import sympy

    values, formulas = [], []
    for argument in arguments:
        is_traced = isinstance(argument, TracedExpression)
        values.append(argument.value if is_traced else argument)
        formulas.append(argument.formula if is_traced else exact(argument))
    return TracedExpression(function(*values), sympy.Function(name)(*formulas))


def exact(number: Any) -> Any:
    """Return a number as SymPy's: whole, or a fraction if it is one that people would write."""
    from fractions import Fraction

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
    if not isinstance(number, TracedExpression):
        return math.log2(number)
    import sympy

    return number.log() / TracedExpression(2.0, sympy.Integer(2)).log()


def is_square(number: Any) -> bool:
    """Tell whether a number is the square of a whole one."""
    root = round(math.sqrt(float(number)))
    return root * root == float(number)


def _quietly(function: Callable[..., float], *numbers: float) -> float:
    """Compute as NumPy's numbers do: a branch that is not taken may divide by zero."""
    try:
        value = function(*numbers)
    except (ZeroDivisionError, ValueError):
        return math.nan
    except OverflowError:
        return math.inf
    return math.nan if isinstance(value, complex) else value


def _unless_infinite(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda number: function(number) if math.isfinite(number) else number


# The functions; quantities of the model are of these three kinds.


if TYPE_CHECKING:
    from numpy.typing import NDArray

Value: TypeAlias = "float | NDArray[np.float64] | TracedExpression"
"""A quantity of the model: a number, the number in every draw, or one that knows its formula."""

Condition: TypeAlias = "bool | np.bool_ | NDArray[np.bool_]"
"""What a comparison of quantities gives."""

_numpy: Any = np
"""NumPy, whose functions call the methods of traced numbers, which its types do not know."""


def numbers(value: Value) -> NDArray[np.float64]:
    """Return the numbers of a quantity, one for every draw, without their formula."""
    if type(value) is float:
        return np.array([value])
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


def some(value: Value) -> bool:
    """Tell whether a quantity is anything but 0, in any draw."""
    return bool(value.any()) if isinstance(value, np.ndarray) else bool(value)


def maximum(first: Value, *others: Value) -> Value:
    """Return the largest value, elementwise."""
    for other in others:
        first = _numpy.maximum(first, other)
    return first


def minimum(first: Value, *others: Value) -> Value:
    """Return the smallest value, elementwise."""
    for other in others:
        first = _numpy.minimum(first, other)
    return first


ceiling: Callable[[Value], Value] = _numpy.ceil
floor: Callable[[Value], Value] = _numpy.floor
sqrt: Callable[[Value], Value] = _numpy.sqrt
log: Callable[[Value], Value] = _numpy.log


def choose(condition: Condition, chosen: Value, otherwise: Value) -> Value:
    """Return ``chosen`` where the condition holds, else ``otherwise``."""
    taken: Value = _numpy.where(condition, chosen, otherwise)[()]
    return taken


def floor_log2(value: Value) -> Value:
    """Return the largest k with ``2**k <= value``, exact for every integer below 2**53.

    A rounded logarithm is off by one near large powers of two, hence the binary exponent.
    """
    _, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    power: Value = exponent - 1
    return power


def ceiling_log2(value: Value) -> Value:
    """Return the smallest k with ``2**k >= value``, exact for every integer below 2**53."""
    mantissa, exponent = np.frexp(np.asarray(value, dtype=np.float64))
    power: Value = np.where(mantissa == 0.5, exponent - 1, exponent)[()]
    return power
