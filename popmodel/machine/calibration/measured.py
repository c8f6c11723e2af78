"""All results of several launches, by what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from popmodel.machine.samples import Launch, Result


class Measured:
    """Finds the results of a job over all launches.

    Parameters
    ----------
    launches : sequence of Launch
        Of one machine.
    level : str, optional
        Only launches of the MPI program with this thread level.
    """

    def __init__(self, launches: Sequence[Launch]) -> None:
        self.launches = launches
        self._found: dict[str, list[tuple[Launch, Result]]] = {}
        for launch in launches:
            for result in launch.results:
                self._found.setdefault(result.job, []).append((launch, result))

    def results(self, job: str, **wanted: Any) -> list[Result]:
        """Measured results of a job with these parameters; one per launch as a rule."""
        return [
            result
            for _, result in self._found.get(job, ())
            if result.absent is None and _has(result, wanted)
        ]

    def at_level(self, multiple: bool, job: str, **wanted: Any) -> list[Result]:
        """The same, of launches with or without full thread support."""
        return [
            result
            for launch, result in self._found.get(job, ())
            if result.absent is None
            and _has(result, wanted)
            and (launch.header.get("mpi", {}).get("thread_level") == "multiple") == multiple
        ]

    def reason(self, job: str, **wanted: Any) -> str | None:
        """Why a job with these parameters is absent; None if it was not tried or was measured."""
        reasons = [result.absent for _, result in self._found.get(job, ()) if _has(result, wanted)]
        return reasons[0] if reasons and all(reasons) else None

    def values(self, job: str, key: str, **wanted: Any) -> list[Any]:
        """Values that a parameter takes in the measured results of a job, in order."""
        found = {
            result.params[key] for result in self.results(job, **wanted) if key in result.params
        }
        return sorted(found)

    def __iter__(self) -> Iterator[Result]:
        for found in self._found.values():
            yield from (result for _, result in found)


def _has(result: Result, wanted: dict[str, Any]) -> bool:
    return all(result.params.get(key) == value for key, value in wanted.items())
