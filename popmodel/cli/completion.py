"""What a shell completes, as the parameters of verbs declare it (`complete` of a parameter).

Each function here gives the words of a kind, which are offered as far as they begin as was typed.
Nothing large is imported: a shell waits for the answer at every press of the key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

PACKAGE = Path(__file__).parent.parent
TRACES = (
    *(".prv", ".prv.gz", ".otf2", ".ti.txt", ".ti.txt.gz", ".ti", ".ti.gz"),
    *(".dim", ".dim.gz", ".goal", ".goal.gz"),
)
TABLES = (".csv", ".tsv", ".md", ".dat", ".txt", ".json", ".jsonl")

Words: TypeAlias = Callable[[Any], Iterable[str]]
"""From click's context, which has what was read before, to words."""


def attach(command: Any, marks: Mapping[str, Any], item: type) -> None:
    """Let the parameters of a command complete as its function declares them."""
    for parameter in command.params:
        mark = marks.get(parameter.name)
        if mark is not None and (words := mark.complete or _alternatives(mark.metavar)):
            parameter.shell_complete = partial(_complete, item=item, words=words)


def _alternatives(metavar: str) -> Sequence[str]:
    """The words of a metavar such as `auto|strong|weak`."""
    words = metavar.strip("[]").split("|")
    plain = len(words) > 1 and all(word.replace("-", "").isalpha() for word in words)
    return words if plain else ()


def _complete(ctx: Any, incomplete: str, *, item: type, words: Sequence[str | Words]) -> list[Any]:
    *before, last = incomplete.split(",")  # what takes several values has them between commas
    begin = "".join(f"{word}," for word in before)
    suffixes = [word for word in words if isinstance(word, str) and word.startswith(".")]
    values: list[str] = []
    for word in words:
        if not isinstance(word, str):
            values += word(ctx)
        elif word not in suffixes:
            values.append(word)
    found = [begin + value for value in dict.fromkeys(values) if value.startswith(last)]
    found += files(incomplete, suffixes)
    # One folder alone: the shell's own completion goes on behind it without a blank.
    if len(found) == 1 and found[0].endswith("/"):
        return []
    return [item(value) for value in found]


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


def _stems(folder: Path, suffix: str) -> list[str]:
    return sorted(path.stem for path in folder.glob(f"*{suffix}"))


def family_names(_: Any) -> list[str]:
    """Families of metrics."""
    return [*_stems(PACKAGE / "efficiency" / "families", ".toml"), "all"]


def metric_ids(_: Any) -> list[str]:
    """Ids of metrics, then with their families: few begin with both."""
    ids = [
        (path.stem, metric["id"])
        for path in sorted((PACKAGE / "efficiency" / "families").glob("*.toml"))
        for metric in read_toml(path)["metric"]
    ]
    return [*(id for _, id in ids), *(f"{family}.{id}" for family, id in ids)]


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file; the reader of these is not loaded by those who ask for nothing."""
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


def bundled_signatures(_: Any) -> list[str]:
    """Names of bundled signatures."""
    return _stems(PACKAGE / "model" / "signature" / "bundled", ".toml")


def signature_parameters(ctx: Any) -> list[str]:
    """Parameters of the signature that was named."""
    several = (one if isinstance(one, list | tuple) else (one,) for one in ctx.params.values())
    given = [str(word) for words in several for word in words]
    # Behind an option that waits for its value click has not yet told arguments apart.
    given += [*ctx.args, "stencil3d"]
    bundled = bundled_signatures(ctx)
    named = next(word for word in given if word in bundled or word.endswith(".toml"))
    path = Path(named)
    if named in bundled:
        path = PACKAGE / "model" / "signature" / "bundled" / f"{named}.toml"
    try:
        return [f"{name}=" for name in read_toml(path)["params"]]
    except (OSError, ValueError, KeyError, TypeError):  # the command will say what is wrong with it
        return []


def machine_presets(_: Any) -> list[str]:
    """Names of machine profiles that come with popmodel."""
    return _stems(PACKAGE / "machines" / "presets", ".json")


def network_names(_: Any) -> Iterable[str]:
    """Names of networks."""
    from popmodel.network.network import PRESETS

    return PRESETS


def collective_readings(_: Any) -> Iterable[str]:
    """Ways of reading the cost of collectives."""
    from popmodel.network.network import READINGS

    return READINGS


def what_if_factors(_: Any) -> Iterable[str]:
    """Factors of a prediction that can be set."""
    from popmodel.model.symbols import WHAT_IF

    return [f"{name}=" for name in WHAT_IF]


def spread_names(_: Any) -> Iterable[str]:
    """Spreads of work that can be set."""
    from popmodel.model.symbols import SPREADS

    return [f"{name}=" for name in SPREADS]
