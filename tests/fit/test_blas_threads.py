"""One thread for small systems: for as long as they are solved, and no longer."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fit.small import MACHINE, program, runs

from popmodel.base import arrays
from popmodel.base.arrays import BlasCalls, of_numpy, one_thread
from popmodel.fit import calibrate


@pytest.fixture
def library() -> Iterator[BlasCalls]:
    """The library of NumPy, with two threads."""
    found = of_numpy()
    if found is None:
        pytest.skip("NumPy is not from a wheel with OpenBLAS")
    before = found.threads()
    found.limit(2)
    yield found
    found.limit(before)


def test_there_is_one_thread_inside_and_as_many_as_before_outside(library: BlasCalls) -> None:
    with one_thread():
        assert library.threads() == 1
    assert library.threads() == 2


def test_an_error_leaves_as_many_as_before(library: BlasCalls) -> None:
    with pytest.raises(np.linalg.LinAlgError), one_thread():
        np.linalg.inv(np.zeros((2, 2)))
    assert library.threads() == 2


def test_one_thread_stays_one(library: BlasCalls) -> None:
    library.limit(1)
    with one_thread():
        assert library.threads() == 1
    assert library.threads() == 1


def test_a_calibration_solves_on_one_thread(
    library: BlasCalls, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    robust = calibrate.robust

    def watched(*given: object) -> object:
        seen.append(library.threads())
        return robust(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(calibrate, "robust", watched)
    calibrate.calibrate(program(), MACHINE, runs(program(), {}))
    assert seen == [1]
    assert library.threads() == 2


@pytest.mark.parametrize("name", ["libblas.so", "libscipy_openblas-1.so"])
def test_a_library_that_cannot_be_told_is_left_alone(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "numpy.libs"
    folder.mkdir()
    (folder / name).write_text("no library")
    monkeypatch.setattr(arrays.np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    of_numpy.cache_clear()
    try:
        assert of_numpy() is None
        with one_thread():
            assert np.linalg.inv(np.eye(2)).trace() == 2
    finally:
        of_numpy.cache_clear()
