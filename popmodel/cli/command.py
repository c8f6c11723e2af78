"""How a Python function becomes a command: its parameters are the options, its docstring the help.

A verb is one function for Python and for the command line. A parameter whose annotation is
``Annotated[TYPE, option(...)]`` can be given on the command line: its text, as well as the value
that Python gives (`verb`), is read by the function that is named there. The others are for Python
alone. What is left out has the function's default.
The function returns a `popmodel.reports.result.Result`, which is written as ``--format`` and ``-o``
say, or None where it has written everything itself. A parameter named ``arguments`` gets the
command line as it was typed.
"""

from __future__ import annotations

import builtins
import inspect
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from typing import Any, TypeAlias, TypeVar

import typer

from popmodel.base.errors import PopmodelError
from popmodel.base.values import dataclass
from popmodel.cli.completion import Words, metric_ids
from popmodel.reports import formats
from popmodel.reports.result import Result

Read: TypeAlias = Callable[[str, Any], Any]
"""From the option as a message names it, and its text (several: a list) or value, to the value."""
Function = TypeVar("Function", bound=Callable[..., Any])


def as_is(name: str, given: Any) -> Any:  # noqa: ARG001 (a reader's signature)
    """What was given."""
    return given


@dataclass(frozen=True)
class CommandParameter:
    """How a parameter of a function is given on a command line."""

    kind: str  # argument, option or flag
    metavar: str
    help: str
    read: Read = as_is
    name: str = ""  # the option, where it is not the parameter's name with dashes
    short: str = ""  # such as -o
    several: bool = False
    hidden: bool = False
    # What a shell completes: words, suffixes of files (.toml), what gives words (completion.py);
    # by default the words of a metavar such as a|b.
    complete: Sequence[str | Words] = ()


def argument(
    metavar: str,
    help: str,
    read: Read = as_is,
    *,
    several: bool = False,
    complete: Sequence[str | Words] = (),
) -> CommandParameter:
    """Stands without a name; `[NAME]` may be left out."""
    return CommandParameter("argument", metavar, help, read, several=several, complete=complete)


def option(
    metavar: str,
    help: str,
    read: Read = as_is,
    *,
    name: str = "",
    several: bool = False,
    hidden: bool = False,
    short: str = "",
    complete: Sequence[str | Words] = (),
) -> CommandParameter:
    """An option with a value; `several`: may be repeated, and all texts are read together."""
    return CommandParameter("option", metavar, help, read, name, short, several, hidden, complete)


def flag(help: str, *, name: str = "", hidden: bool = False) -> CommandParameter:
    """An option without a value."""
    return CommandParameter("flag", "", help, name=name, hidden=hidden)


def declared(function: Callable[..., Any]) -> dict[str, CommandParameter]:
    """The parameters of a function that a command line can give, by name."""
    names = _Names(vars(builtins) | vars(sys.modules[function.__module__]))
    found: dict[str, CommandParameter] = {}
    for name, annotation in function.__annotations__.items():
        if annotation.startswith("Annotated["):
            (found[name],) = eval(annotation, {}, names).__metadata__
    return found


def verb(function: Function) -> Function:
    """A function whose values are read, when Python calls it, as a command line's texts are."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(function).bind(*args, **kwargs)
        for name, mark in declared(function).items():
            if (value := bound.arguments.get(name)) is not None:
                bound.arguments[name] = mark.read(name, value)
        return function(*bound.args, **bound.kwargs)

    return call  # type: ignore[return-value]


class _Names(dict[str, Any]):
    """Names of a module; types that it imports for mypy only do not matter here."""

    def __missing__(self, name: str) -> Any:
        return _AnyType


class _Subscriptable(type):
    def __getitem__(cls, _: Any) -> Any:
        return cls


class _AnyType(metaclass=_Subscriptable):
    pass


def summary(function: Callable[..., Any]) -> str:
    """The first sentence of a function's docstring."""
    words = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
    sentence, full_stop, _ = words.partition(". ")
    return f"{sentence}." if full_stop else words


def command_of(function: Callable[..., Any], settings: Mapping[str, Any]) -> Callable[..., Any]:
    """A function as typer takes it: every parameter a text, help from the docstring.

    `settings` are what the verb's module says: FORMATS (names of formats), CONDITIONS (whether
    ``--fail-if`` applies), RESOURCES (whether those below apply), from_output (from ``-o``,
    ``--format`` and the texts of parameters to values of parameters).
    """
    function = inspect.unwrap(function)
    own = declared(function)
    defaults = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
    }
    names: Sequence[str] = settings.get("FORMATS", formats.NAMES)
    writes = "output" not in own
    used = settings.get("RESOURCES", False)
    extra = _common(names, writes=writes, conditions=bool(settings.get("CONDITIONS")))
    extra |= _RESOURCES if used else {}

    def command(ctx: typer.Context, **given: Any) -> None:
        from popmodel.cli.fail_if import read_conditions
        from popmodel.cli.output import target
        from popmodel.cli.progress import shown

        common = {name: given.pop(name) for name in extra}
        wanted = (common.get("output"), common.get("format"))
        named = settings.get("from_output", _nothing)(*wanted, given)
        force = bool(common.get("force"))
        goal = target(
            ctx.obj,
            common.get("output"),
            common.get("format"),
            force=force,
            names=names,
            whole=bool(common.get("all_")),
        )
        conditions = read_conditions(common.get("fail_if") or ())
        values = {
            name: own[name].read(_label(name, own[name]), text)
            for name, text in given.items()
            if text is not None and text != [] and text is not False
        }
        values |= named
        if "arguments" in defaults:  # what the command line was, for a result that states it
            values["arguments"] = tuple(ctx.obj)
        if "force" in defaults and "force" not in own:  # writes a file of its own
            values["force"] = force
        with _resources(common) if used else nullcontext():
            with shown():
                result = function(**values)
            if result is not None:
                goal.show(result, conditions)
        if result is not None and result.exit_status:
            raise typer.Exit(result.exit_status)

    parameters = [inspect.Parameter("ctx", _ANY, annotation=typer.Context)]
    for name, mark in {**own, **extra}.items():
        parameters.append(_typer_parameter(name, mark, defaults.get(name)))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    command.marks = {**own, **extra}  # type: ignore[attr-defined]
    command.__doc__ = re.split(r"\n\s*Parameters\n\s*-----", inspect.getdoc(function) or "")[0]
    return command


_RESOURCES = {
    "scratch": option(
        "DIR",
        "Folder for what of long traces does not fit into memory. Default: TMPDIR, or the folder "
        "of the trace where that lies in memory.",
    ),
    "workers": option(
        "N",
        "How many work at once: threads on one trace, processes on several. Default: the cores "
        "that may be used.",
    ),
    "executor": option(
        "EXECUTOR",
        "Who works instead: mpi4py (the ranks of mpi4py.futures), or a cluster of dask by its "
        "address (dask://HOST:PORT) or scheduler file.",
    ),
}
"""Options of the verbs that read traces."""


def _resources(common: Mapping[str, Any]) -> AbstractContextManager[Any]:
    from popmodel.cli.options import whole_number
    from popmodel.traces import workers
    from popmodel.traces.resources import resources

    number, named = common.get("workers"), common.get("executor")
    return resources(
        scratch=common.get("scratch"),
        workers=workers.usable_cores() if number is None else whole_number("--workers", number),
        executor=None if named is None else workers.executor_named("--executor", named),
    )


def _nothing(*_: Any) -> dict[str, Any]:
    return {}


_ANY = inspect.Parameter.POSITIONAL_OR_KEYWORD


def _common(names: Sequence[str], *, writes: bool, conditions: bool) -> dict[str, CommandParameter]:
    """The options of all verbs; none of one that prints a file as it is, which has no format."""
    if not names:
        return {}
    choices = "|".join(names) if len("|".join(names)) <= _LONGEST else "FORMAT"
    words = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
    screen = formats.TABLE.name in names
    default = f"by the suffix of -o{', else table' * screen}" if writes else "table"
    help = f"Output format: {words}. Default: {default}."
    found = {"format": option(choices, help, complete=names)}
    if writes:
        default = " Default: standard output (-)." if screen else ""
        where = f"Write to FILE ({formats.suffixes(names)}).{default}"
        found["output"] = option("FILE", where, short="-o")
        found["force"] = flag("Overwrite FILE if it exists.")
    if conditions:
        found["fail_if"] = option(
            "CONDITION",
            "Exit with status 3 if a value is below or above a limit, such as "
            "'parallel_efficiency < 0.8'. Can be repeated.",
            several=True,
            complete=("runtime", metric_ids),
        )
    if screen:
        found["all_"] = flag("Show everything; default: the answer, on 25 lines.", name="--all")
    return found


_LONGEST = 28


def _label(name: str, mark: CommandParameter) -> str:
    """A parameter as messages name it."""
    if mark.kind == "argument":
        return mark.metavar.strip("[]").removesuffix("...")
    return mark.name or f"--{name.strip('_').replace('_', '-')}"


def _typer_parameter(name: str, mark: CommandParameter, default: Any) -> inspect.Parameter:
    """A parameter as typer declares it: texts, or a flag; None is what is left out."""
    help = mark.help
    if isinstance(default, str | int | float) and default not in ("", False):
        help = f"{help} Default: {default}."
    if mark.kind == "argument":
        required = default is inspect.Parameter.empty
        kind: Any = list[str] if mark.several else str
        info = typer.Argument(
            ... if required else None, metavar=mark.metavar, help=help, show_default=False
        )
        return inspect.Parameter(
            name, _ANY, default=info, annotation=kind if required else kind | None
        )
    words = [_label(name, mark), *([mark.short] if mark.short else [])]
    if mark.kind == "flag":
        info = typer.Option(False, *words, help=help, show_default=False, hidden=mark.hidden)
        return inspect.Parameter(name, _ANY, default=info, annotation=bool)
    info = typer.Option(
        None, *words, metavar=mark.metavar, help=help, show_default=False, hidden=mark.hidden
    )
    kind = list[str] | None if mark.several else str | None
    return inspect.Parameter(name, _ANY, default=info, annotation=kind)


@dataclass(frozen=True)
class OfCommand(Result):
    """A result that is its document."""

    found: dict[str, Any]  # The document
    on_stderr: bool = False
    exit_status: int = 0
    files: tuple[str, ...] = ()  # That it rests on and that are not gone, as those of a run may be
    problem: PopmodelError | None = None  # What is wrong with it

    def to_dict(self) -> dict[str, Any]:
        """Return the document, without provenance."""
        return dict(self.found)

    def failure(self) -> PopmodelError | None:
        """What is wrong with it."""
        return self.problem
