"""Fixtures shared by all tests, and what every test finds the same wherever the tests run."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from surroundings import (
    Leftovers,
    constants_of_loaded_modules_are_no_examples,
    neutral_environment,
    signals_as_at_a_terminal,
    steering,
)

# The same examples in every run, however slow the machine is: a failure here is a failure
# everywhere. HYPOTHESIS_PROFILE=thorough tries more of them, and new tries others each time
# (or those of --hypothesis-seed).
for profile, examples in (("repeatable", 20), ("thorough", 100), ("new", 100)):
    settings.register_profile(
        profile,
        derandomize=profile != "new",
        database=None,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
constants_of_loaded_modules_are_no_examples()
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ROOT = Path(__file__).resolve().parent.parent
MOST_WORKERS = 8

signals_as_at_a_terminal()
neutral_environment(os.environ)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the first cases of a test that is marked ``long(after=N)`` in the default run."""
    cases: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("long")
        if mark is not None and "after" in mark.kwargs:
            name = item.nodeid.partition("[")[0]
            cases[name] += 1
            if cases[name] <= mark.kwargs["after"]:
                item.own_markers.remove(mark)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Keep the tests of a file together unless --dist asks for something: they share builds."""
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:  # noqa: ARG001 (pytest's)
    """Workers of ``-n auto``: a login node has more cores than these tests should take."""
    return min(len(os.sched_getaffinity(0)), MOST_WORKERS)


@pytest.fixture(scope="session")
def shared_traces() -> Path:
    """The reference traces that may not be copied into the repository."""
    where = Path(os.environ.get("POPMODEL_SHARED", ROOT.parent / "shared" / "traces"))
    if not where.is_dir():
        pytest.skip(f"reference traces not found at {where}")
    return where


@pytest.fixture(scope="session")
def real_trace(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Finds a real trace by name: the repository's own, else one of the reference traces."""

    def find(name: str) -> Path:
        own = ROOT / "tests" / "data" / f"{name}.prv.gz"
        if own.exists():
            return own
        shared: Path = request.getfixturevalue("shared_traces")
        return shared / "paraver" / f"{name}.prv.gz"

    return find


@pytest.fixture(autouse=True, scope="session")
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Have compilers, launchers (Open MPI's sessions) and tests leave theirs where pytest does."""
    folder = tmp_path_factory.mktemp("t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(autouse=True)
def _private_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep what tests cache out of the user's cache directory; workers share what they build."""
    top = tmp_path_factory.getbasetemp()
    folder = top.parent if "PYTEST_XDIST_WORKER" in os.environ else top
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(folder / "cache"))


@pytest.fixture(autouse=True, scope="session")
def _leftovers() -> Leftovers:
    return Leftovers()


@pytest.fixture(autouse=True)
def _nothing_is_left(_leftovers: Leftovers) -> Iterator[None]:
    """What a test started ends with it: what has not is ended, and the test fails.

    Nor does it leave variables that steer what the next one starts.
    """
    before, variables = _leftovers.children(), steering(os.environ)
    yield
    left = _leftovers.end(before)
    assert not left, f"processes were left: {'; '.join(left)}"
    changed = steering(os.environ) - variables
    assert not changed, f"variables were left: {' '.join(sorted(changed))}"
