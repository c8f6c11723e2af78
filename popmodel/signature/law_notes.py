"""How much more or less phases take with other P, T and parameters, as names of a signature."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from popmodel.fit.samples import END, UNKNOWN_ERROR
from popmodel.signature.assumed_scaling import SignatureConstant
from popmodel.signature.toml import Noted
from popmodel.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from popmodel.fit.counts import Count
    from popmodel.fit.law import Constant as Number
    from popmodel.fit.law import Law
    from popmodel.fit.physical_laws import LawGrowth, Saturation
    from popmodel.signature.assumed_scaling import Key, SignatureAmount


@dataclass(frozen=True)
class LawFactor:
    """A factor on the time of phases that grow alike."""

    let: Mapping[str, Any]  # Its name, and those that it needs
    constants: tuple[SignatureConstant, ...]  # Those in them
    values: tuple[float, ...]  # What it is in the runs
    meaning: str  # What the time of a phase is where the factor is 1
    laws: tuple[dict[str, Any], ...]  # What is told of it
    notes: tuple[str, ...] = ()  # What the runs leave open

    def size(self, times: Sequence[float]) -> tuple[float, float, float]:
        """Return the time of a phase where the factor is 1, and its 90 % interval."""
        some = [
            math.log(time / value)
            for time, value in zip(times, self.values, strict=True)
            if time > 0
        ]
        mean = float(np.mean(some))
        scatter = float(np.std(some, ddof=1)) if len(some) > 1 else 0.0
        half = END * max(scatter, UNKNOWN_ERROR) / math.sqrt(len(some))
        return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


# Laws of several runs: what a signature takes from them, and what people are told of each.


@dataclass(frozen=True)
class FittedLaws:
    """Laws of several runs."""

    amounts: Mapping[Key, SignatureAmount]  # As in a signature
    # Names of the factors by which phases grow that grow alike: ``work``, ``share``.
    let: Mapping[str, Any]
    laws: tuple[dict[str, Any], ...]  # What each law is of, its form, origin and error
    notes: tuple[str, ...]  # Contradictions, and what the runs do not tell


def exactly(what: str, found: Count, samples: int) -> dict[str, Any]:
    return {
        "of": what,
        "unit": "1",
        "share": None,
        "form": found.text,
        "formula": found.text,
        "constants": {},
        "origin": found.origin,
        "samples": samples,
        "error": 0.0,
        "rejected": [{"form": one, "error": 0.0} for one in found.others],
        "notes": list(found.notes),
    }


def told(label: str, unit: str, found: Law, share: float | None) -> dict[str, Any]:
    return {
        "of": label,
        "unit": unit,
        "share": share,
        "form": found.form,
        "formula": found.formula,
        "constants": {name: _ends(one) for name, one in found.constants.items()},
        "origin": found.origin,
        "samples": found.samples,
        "error": found.error,
        "rejected": [{"form": form, "error": error} for form, error in found.rejected],
        "notes": list(found.notes),
    }


def of_growth(what: str, found: LawGrowth, samples: int) -> dict[str, Any]:
    """Return what is told of how an imbalance grows."""
    return {
        "of": what,
        "unit": "1",
        "share": None,
        "form": f"P**{found.exponent.value:.2g}",
        "formula": f"{{a}}*(P/{found.reference_processes})**{{p}}",
        "constants": {"a": _ends(found.cv), "p": _ends(found.exponent)},
        "origin": found.exponent.origin,
        "samples": samples,
        "error": None,
        "rejected": [],
        "notes": list(found.notes),
    }


def _ends(one: Number) -> dict[str, Any]:
    return {"value": one.value, "low": one.low, "high": one.high, "origin": one.origin}


def of_saturation(what: str, found: Saturation, split: str, samples: int) -> dict[str, Any]:
    """Return what is told of work that a memory limits."""
    return {
        "of": what,
        "unit": "s",
        "share": None,
        "form": "memory that saturates",
        "formula": f"{{a}}*{split}*(1 - {{d}}**q + (active_cores*{{d}})**q)**(1/q), "
        f"q = {found.sharpness:g}",
        "constants": {"a": _ends(found.alone), "d": _ends(found.demand)},
        "origin": found.demand.origin,
        "samples": samples,
        "error": found.error,
        "rejected": [{"form": "a serial part", "error": found.serial_error}],
        "notes": list(found.notes),
    }


def factor_of(name: str, found: Law) -> tuple[dict[str, Any], tuple[SignatureConstant, ...]]:
    """Return the factor by which phases grow, 1 at the reference, and its constants."""
    text = found.formula.removeprefix("{a}").removeprefix("*") or "1"
    constants = []
    for key, one in found.constants.items():
        if key != "a":
            text = text.replace(f"{{{key}}}", f"{name}_{key}")
            constants.append(
                SignatureConstant(
                    f"{name}_{key}", one.value, one.low, one.high, "1", one.origin, one.meaning
                )
            )
    noted = Noted(text, f"{found.origin}: {found.form}")
    return {name: noted}, tuple(constants)
