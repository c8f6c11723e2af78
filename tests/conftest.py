"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run, however busy the machine is: a failure here is a failure
# everywhere. HYPOTHESIS_PROFILE=default tries new ones.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ROOT = Path(__file__).resolve().parent.parent


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


@pytest.fixture(autouse=True)
def _private_cache(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keep the caches of traces read in tests out of the user's cache directory."""
    monkeypatch.setenv("POPMODEL_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
