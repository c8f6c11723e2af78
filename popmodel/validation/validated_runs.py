"""Runs that were compared with their predictions: errors, choices, plain extrapolations, verdict.

What a validation says of them is its document, ``popmodel/validate/1``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from popmodel.base.units import plural
from popmodel.base.values import cut, dataclass, document
from popmodel.runs.measurement import MeasuredRow
from popmodel.validation.agreement_verdict import verdict
from popmodel.validation.comparison import (
    ComparedValue,
    Comparison,
    Split,
    compare_runs,
    splits,
    values_of,
)
from popmodel.validation.prediction_errors import (
    Baselines,
    ByTerm,
    SplitDecision,
    by_metric,
    by_region,
    by_term,
    compare_baselines,
    decisions,
    errors_by_term,
    summary,
)
from popmodel.validation.predictions import Subject

SCHEMA = "popmodel/validate/1"


@dataclass(frozen=True)
class ValidatedRuns:
    """Predictions compared with measurements; made by `validate_runs`."""

    subject: Subject  # What was predicted
    comparison: Comparison  # The runs beside their predictions
    decisions: tuple[SplitDecision, ...]  # Whether the right split would have been chosen
    # Columns of tables that were ignored, by file.
    ignored: tuple[tuple[str, tuple[str, ...]], ...] = ()
    warnings: tuple[str, ...] = ()  # What is doubtful about the measured runs, one line each

    @cached_property
    def rows(self) -> tuple[ComparedValue, ...]:
        """One row for every quantity of every run that is compared."""
        return values_of(self.comparison.pairs)

    @cached_property
    def splits(self) -> tuple[Split, ...]:
        """Runs grouped by split, parameters and region."""
        return splits(self.comparison.pairs)

    @property
    def tests(self) -> tuple[Split, ...]:
        """Those whose configuration no fit has seen."""
        return tuple(split for split in self.splits if split.region.is_test)

    @property
    def terms(self) -> tuple[ByTerm, ...]:
        """Useful time and losses in seconds, of runs that have efficiencies."""
        return by_term(self.splits)

    @property
    def baselines(self) -> Baselines | None:
        """Plain extrapolations of the same runs; None where there is nothing to extrapolate."""
        return compare_baselines(self.tests, self.comparison.training)

    def __repr__(self) -> str:
        runtime = summary(self.rows)["runtime"]
        told = "no tests"
        if runtime["rows"]:
            told = (
                f"median error of the runtime {100 * runtime['median_error']:.1f} %, "
                f"{runtime['covered']} of {plural(runtime['intervals'], 'interval')} contain the "
                "measurement"
            )
        return cut(
            f"<Validation of {self.subject.application} on {self.subject.machine}: "
            f"{plural(len(self.comparison.measured), 'run')}, {told}>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the document, schema ``popmodel/validate/1``, without provenance."""
        about, made, rows, terms = self.subject, self.comparison, self.rows, self.terms
        disturbed = any(run.disturbed for run in made.measured)
        baselines = self.baselines
        said = verdict(
            self.splits, made.defaults, made.left_out, terms, baselines, disturbed=disturbed
        )
        noise = 0.0 if about.calibration is None else about.calibration.noise
        return document(
            SCHEMA,
            verdict=said,
            application=about.application,
            machine=about.machine,
            preset=about.preset,
            noisy=about.noisy,
            not_modelled=about.not_modelled,
            measured=[run for run in made.measured if run.window is not None],
            ignored=[{"file": file, "columns": columns} for file, columns in self.ignored],
            warnings=self.warnings,
            left_out=made.left_out,
            training=made.training and {**made.training.to_dict(), "noise": noise},
            splits=self.splits,
            rows=rows,
            summary=summary(rows),
            regions=by_region(rows),
            by_metric=by_metric(rows),
            by_term=errors_by_term(terms),
            terms=terms,
            decisions=self.decisions,
            baselines=baselines,
        )


def validate_runs(
    about: Subject,
    runs: Sequence[MeasuredRow],
    fitted: Sequence[MeasuredRow] = (),
    *,
    all_runs: bool = False,
    ignored: Sequence[tuple[str, tuple[str, ...]]] = (),
    warnings: Sequence[str] = (),
) -> ValidatedRuns:
    """Compare runs with what is predicted of them; `fitted` are those that it was fitted to."""
    made = compare_runs(about, runs, fitted, all_runs=all_runs)
    chosen = decisions(splits(made.pairs), about.choose)
    return ValidatedRuns(about, made, chosen, tuple(ignored), tuple(warnings))
