"""Values that a shell completes: families, metrics, presets, signatures, files of a kind.

Nothing large is imported: a shell waits for the answer at every press of the key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

PACKAGE = Path(__file__).parent.parent
TRACES = (
    *(".prv", ".prv.gz", ".ti.txt", ".ti.txt.gz", ".ti", ".ti.gz"),
    *(".dim", ".dim.gz", ".goal", ".goal.gz"),
)
TABLES = (".csv", ".json", ".jsonl", ".txt")
PREDICTIONS = (".json",)
SIGNATURES = (".toml",)
PROFILES = (".json",)

Values: TypeAlias = Callable[[Any], Iterable[str]]
"""From click's context, what was read before, to the values of a parameter."""


def attach(verb: str, command: Any, item: type) -> None:
    """Let the parameters of a verb complete their values."""
    for parameter in command.params:
        values, suffixes = _of(verb, parameter)
        if values is not None or suffixes:
            complete = partial(_complete, item=item, values=values, suffixes=suffixes)
            parameter.shell_complete = complete


def _complete(
    ctx: Any, incomplete: str, *, item: type, values: Values | None, suffixes: Sequence[str]
) -> list[Any]:
    *before, last = incomplete.split(",")  # what takes several values has them between commas
    begin = "".join(f"{one}," for one in before)
    known = [] if values is None else list(dict.fromkeys(values(ctx)))
    found = [begin + value for value in known if value.startswith(last)]
    found += files(incomplete, suffixes)
    # One folder alone: the shell's own completion goes on behind it without a blank.
    if len(found) == 1 and found[0].endswith("/"):
        return []
    return [item(value) for value in found]


def _of(verb: str, parameter: Any) -> tuple[Values | None, Sequence[str]]:
    """Values of a parameter, and suffixes of files that it takes."""
    for key in ((verb, parameter.name), ("", parameter.name)):
        if key in _KNOWN:
            return _KNOWN[key]
    words = (parameter.metavar or "").strip("[]").split("|")
    if len(words) > 1 and all(word.replace("-", "").isalpha() for word in words):
        return partial(_constant, words), ()
    return None, ()


def files(incomplete: str, suffixes: Sequence[str]) -> list[str]:
    """Files that end in one of some suffixes, and folders, that begin as was typed."""
    if not suffixes:
        return []
    typed, _, name = incomplete.rpartition("/")
    begin = incomplete[: len(incomplete) - len(name)]
    try:
        entries = sorted(Path(typed or ("/" if begin else ".")).expanduser().iterdir())
    except OSError:  # no such directory: there is nothing to complete
        return []
    shown = [one for one in entries if name.startswith(".") or not one.name.startswith(".")]
    return [
        f"{begin}{one.name}{'/' if one.is_dir() else ''}"
        for one in shown
        if one.name.startswith(name) and (one.is_dir() or one.name.endswith(tuple(suffixes)))
    ]


def _constant(words: Sequence[str], _: Any) -> Sequence[str]:
    return words


def _stems(folder: Path, suffix: str) -> list[str]:
    return sorted(path.stem for path in folder.glob(f"*{suffix}"))


def _families(_: Any) -> list[str]:
    return [*_stems(PACKAGE / "efficiency" / "families", ".toml"), "all"]


def _metrics(_: Any) -> Iterator[str]:
    """Ids of metrics, then with their families: few begin with both."""
    found = [
        (path.stem, one["id"])
        for path in sorted((PACKAGE / "efficiency" / "families").glob("*.toml"))
        for one in tomllib.loads(path.read_text(encoding="utf-8"))["metric"]
    ]
    yield from (metric for _, metric in found)
    yield from (f"{family}.{metric}" for family, metric in found)


def _thresholds(ctx: Any) -> Iterator[str]:
    return (f"{metric}=" for metric in _metrics(ctx))


def _errors(ctx: Any) -> Iterator[str]:
    yield "error="
    yield from _thresholds(ctx)


def _formulas(ctx: Any) -> Iterator[str]:
    yield "runtime"
    yield from _metrics(ctx)


def _names(ctx: Any) -> Iterator[str]:
    """What `popmodel explain` takes, as far as it is one word."""
    from popmodel.model.symbols import SYMBOLS

    yield from _families(ctx)[:-1]
    yield from _metrics(ctx)
    yield from SYMBOLS
    glossary = tomllib.loads((PACKAGE / "api" / "glossary.toml").read_text(encoding="utf-8"))
    yield from glossary["abbreviations"]
    yield from (one["name"] for one in glossary["term"] if " " not in one["name"])


def _signatures(_: Any) -> list[str]:
    return _stems(PACKAGE / "model" / "signature" / "bundled", ".toml")


def _parameters(ctx: Any) -> list[str]:
    """Parameters of the application that was named."""
    # Behind an option that waits for its value click has not yet told arguments apart.
    several = ctx.params.get("names") or ()
    own = ctx.params.get("app"), ctx.params.get("prediction")
    given = [*own, *several, *ctx.args, "stencil3d"]
    bundled = _signatures(ctx)
    named = next(str(one) for one in given if one in bundled or str(one).endswith(".toml"))
    path = Path(named)
    if named in bundled:
        path = PACKAGE / "model" / "signature" / "bundled" / f"{named}.toml"
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        return [f"{name}=" for name in document["params"]]
    except (OSError, ValueError, KeyError, TypeError):  # the command will say what is wrong with it
        return []


def _presets(_: Any) -> list[str]:
    return _stems(PACKAGE / "machines" / "presets", ".json")


def _networks(_: Any) -> Iterable[str]:
    from popmodel.network.network import PRESETS

    return PRESETS


def _readings(_: Any) -> Iterable[str]:
    from popmodel.network.network import READINGS

    return READINGS


def _what_if(_: Any) -> Iterable[str]:
    from popmodel.model.scale_factors import WHAT_IF

    return [f"{name}=" for name in WHAT_IF]


def _spreads(_: Any) -> Iterable[str]:
    from popmodel.model.scale_factors import SPREADS

    return [f"{name}=" for name in SPREADS]


def _pages(_: Any) -> list[str]:
    from popmodel.api.docs import pages

    return [page.name for page in pages()]


def _parts(_: Any) -> Iterable[str]:
    from popmodel.machines.parameter import PARTS

    return PARTS


_KNOWN: Mapping[tuple[str, str], tuple[Values | None, Sequence[str]]] = {
    ("", "trace"): (None, TRACES),
    ("", "traces"): (None, TRACES),
    ("", "measured"): (None, (*TRACES, *TABLES)),
    ("project", "runs"): (None, (*TRACES, *TABLES)),
    ("", "sources"): (None, (*TRACES, *TABLES)),
    ("", "prediction"): (_signatures, (*SIGNATURES, *PREDICTIONS)),
    ("", "app"): (_signatures, SIGNATURES),
    ("", "machine"): (_presets, PROFILES),
    ("", "profiles"): (_presets, PROFILES),
    ("", "network"): (_networks, ()),
    ("", "collectives"): (_readings, ()),
    ("", "family"): (_families, ()),
    ("", "fail_under"): (_thresholds, ()),
    ("", "formula"): (_formulas, ()),
    ("", "set_"): (_parameters, ()),
    ("", "what_if"): (_what_if, ()),
    ("", "imbalance"): (_spreads, ()),
    ("calibrate", "runs"): (None, (*TRACES, *TABLES)),
    ("signature", "names"): (_signatures, (*SIGNATURES, *TRACES)),
    ("signature", "against"): (None, TRACES),
    ("validate", "fail_under"): (partial(_constant, ("coverage=",)), ()),
    ("validate", "fail_over"): (_errors, ()),
    ("bench", "only"): (_parts, ()),
    ("explain", "name"): (_names, ()),
    ("docs", "page"): (_pages, ()),
}
"""By verb (or for all) and parameter."""
