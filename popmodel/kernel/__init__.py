"""The compiled core; importing it where it is missing or outdated gives one line that says why."""

from pathlib import Path

from popmodel.base.errors import PopmodelError

__all__ = ["CoreError", "_kernel"]

_HERE = Path(__file__).parent


class CoreError(PopmodelError, ImportError):
    """The compiled core is missing, or was built for another version of popmodel."""


def _missing(reason: ImportError) -> CoreError:
    if (_HERE / "CMakeLists.txt").exists():  # only sources have it
        return CoreError(
            f"{_HERE.parent} is the source tree of popmodel without its compiled core",
            "start Python in another directory, or build the core with: python -m pip install -e .",
        )
    return CoreError(
        f"the compiled core of popmodel cannot be loaded: {reason}",
        "install popmodel again, with the Python that runs it",
    )


try:
    import popmodel.kernel._kernel as _kernel
except ImportError as error:
    raise _missing(error) from error

# After an update of the sources an editable install still has the core of before: a call with other
# arguments would end in a TypeError that helps nobody.
if getattr(_kernel, "interface", None) != (_HERE / "_kernel.pyi").read_text():
    raise CoreError(
        "the compiled core of popmodel was built from an older version of the sources",
        "build it again: python -m pip install -e .",
    )
