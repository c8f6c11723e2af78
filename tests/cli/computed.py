"""Results that several tests look at, each in its form, computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

COMPUTED: Mapping[str, Sequence[str]] = {
    "predict": ("popmodel.cli.predict._predict", "popmodel.cli.predict._project"),
}
"""By verb: what of the library computes its result."""

Known = dict[str, Any]
"""What has been computed."""


@contextmanager
def computed_once(verb: str, known: Known) -> Iterator[None]:
    """Have a verb take what is known already: its command line is read and its result written."""
    with pytest.MonkeyPatch.context() as patch:
        for path in COMPUTED.get(verb, ()):
            module, _, name = path.rpartition(".")
            found = import_module(module)
            patch.setattr(found, name, _once(path, getattr(found, name), known))
        yield


def _once(path: str, compute: Callable[..., Any], known: Known) -> Callable[..., Any]:
    """Have the same computed once: from equal arguments, and from files of equal content."""

    def recall(*positions: Any, **names: Any) -> Any:
        if names.get("output") is not None:  # it writes a file
            return compute(*positions, **names)
        asked = {name: value for name, value in names.items() if name != "step"}
        files = _files_in([*positions, *asked.values()])
        key = repr((path, positions, asked, files))
        assert " at 0x" not in key, "what has no text of its own may be taken for another"
        if key not in known:
            known[key] = compute(*positions, **names)
        return known[key]

    return recall


def _files_in(value: object) -> dict[str, str]:
    """The files that an argument names, with a digest of what is in them."""
    if isinstance(value, (list, tuple, dict)):
        values = value.values() if isinstance(value, dict) else value
        return {name: digest for one in values for name, digest in _files_in(one).items()}
    if isinstance(value, str) and Path(value).is_file():
        return {value: sha256(Path(value).read_bytes()).hexdigest()}
    return {}
