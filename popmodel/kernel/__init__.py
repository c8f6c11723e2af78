"""The compiled core; importing it without the core gives one line that says what to do."""

try:
    import popmodel.kernel._kernel as _kernel
except ImportError as error:  # the tree without an install, or a build for another Python
    raise ImportError(
        "popmodel's compiled core is missing: install the package "
        "(python -m pip install . or python -m pip install -e '.[test]')"
    ) from error

__all__ = ["_kernel"]
