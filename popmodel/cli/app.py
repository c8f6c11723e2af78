"""The program: its verbs, their help, and how a command line becomes a call."""

from __future__ import annotations

import os
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from popmodel._version import __version__
from popmodel.base.errors import UsageError, did_you_mean

GROUPS = {
    "Understand a run": {
        "check": "Run a program and say what is wrong with its launch.",
        "trace": "Run a program and record a trace.",
        "metrics": "Compute the POP efficiencies of runs.",
        "inspect": "Show what a run does: iterations, phases, communication.",
        "whatif": "Tell what another network, node or faster region would change.",
        "report": "Write what is known of some runs as one HTML file, which needs no network.",
    },
    "Predict a run": {
        "machine": "Measure this machine; show, compare or check profiles.",
        "signature": "Find, show and check what a program does.",
        "predict": "Predict a run, or all splits of some cores, with 90 % intervals.",
        "validate": "Compare predictions with measured runs.",
        "study": "Find the best split for a program by a few small runs.",
    },
    "Around it": {
        "convert": "Write a trace as a program or as a timeline, or runs as a table.",
        "docs": "Show a page of the documentation, or explain a name on a screen.",
    },
}
"""The verbs with the first sentences of their help: to list them, none has to be imported."""
VERBS = tuple(verb for verbs in GROUPS.values() for verb in verbs)
"""In the order of the help.

Each is a module here with a function of the same name (see `popmodel.cli.command`) or, where its
first argument says what to do, `ACTIONS`: functions by that word, the first of which is meant where
there is none if `DEFAULT` says so; with `EXAMPLES`, `SUMMARY` beside ACTIONS, and where they apply
`FORMATS`, `CONDITIONS`, `RESOURCES`, `VERB` (a command class whose words are not read as usual),
and `RENAMED`: options of earlier versions with what they are called now. `OF_ACTION` says any of
these for one action.
"""

RENAMED: dict[str, str] = {
    "bench": "popmodel machine measure -o machine.json",
    "doctor": "popmodel machine check",
    "calibrate": "popmodel signature from APP RUN... -o fitted.toml",
    "explain": "popmodel docs NAME",
    "project": "popmodel predict RUN... --procs P",
    "sweep": "popmodel predict --cores N",
    "replay": "popmodel whatif TRACE --network ...",
    "sensitivity": "popmodel whatif TRACE",
    "communication": "popmodel inspect TRACE --show communication",
    "info": "popmodel inspect TRACE --show info",
    "phases": "popmodel inspect TRACE --show phases",
    "structure": "popmodel inspect TRACE --show structure",
}
"""Verbs of earlier versions, and what they are called now."""

HELP_WIDTH = 80
COMPLETING = "_POPMODEL_COMPLETE"
"""The variable by which a shell asks for completions."""

# typer brings its own copy of click since 0.16 or uses the installed one: its public exception
# leads to the right base classes in both cases.
ClickUsageError: type[Exception] = typer.BadParameter.__bases__[0]
ClickException: type[Exception] = ClickUsageError.__bases__[0]


_OF_FILES = {
    "trace": "metrics {}",
    "table": "predict {} --cores 64",
    "signature": "predict {} --cores 64",
    "source": "signature from {}",
}
"""What is asked most of a file."""


class _FittingHelp:
    """Keeps the column of options narrow on a narrow terminal, so that the text has words."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, as wide as the terminal."""
        formatter.write_dl = partial(formatter.write_dl, col_max=min(30, formatter.width // 3))
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Verb(_FittingHelp, TyperCommand):
    """A verb, whose help fits the terminal, and whose options are given once."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 (typer's signature)
        """Options, then arguments by their names; typer has braces around them."""
        pieces = [str(self.options_metavar)]
        for one in self.params:
            if one.param_type_name == "argument":
                name = str(one.metavar)
                pieces.append(name + "..." * (one.nargs < 0 and "[" not in name))
        return pieces

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; click would keep the last one of several and drop the others."""
        if not ctx.resilient_parsing:  # completion takes what has been typed so far
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option, times in Counter[Any](given).items():
                if times > 1 and not (option.multiple or option.is_flag):
                    name = max(option.opts, key=len)
                    often = "twice" if times == 2 else f"{times} times"
                    raise UsageError(f"{name} is given {often}", _once(option))
        rest: list[str] = super().parse_args(ctx, args)
        return rest


class Verbs(_FittingHelp, TyperGroup):
    """Finds a verb's module when it is asked for, so that no verb pays for the others."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (typer's signature)
        """Names of the verbs, in the order of the help."""
        return list(VERBS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb that the arguments begin with; a misspelt one is answered by near names."""
        if args[0] in RENAMED:
            raise UsageError(f"'{args[0]}' has another name now", f"try {RENAMED[args[0]]}")
        if args[0] not in VERBS and not args[0].startswith("-"):
            hint = did_you_mean(args[0], VERBS, f"commands: {', '.join(VERBS)}")
            if os.path.isfile(args[0]):  # noqa: PTH113
                from popmodel.cli.inputs import kind_of

                hint = f"try popmodel {_OF_FILES[kind_of(args[0])].format(args[0])}"
            raise UsageError(f"unknown command '{args[0]}'", hint)
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb as typer's command, or None if there is no such verb."""
        if cmd_name not in VERBS:
            return None
        return _command(cmd_name, ctx.terminal_width or HELP_WIDTH, COMPLETING in os.environ)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (typer's signature)
        """Write what each verb does, as a whole: click's own list cuts it."""
        width = max(map(len, VERBS))  # all groups stand in line
        for title, verbs in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in verbs.items()])


class ActionGroup(_FittingHelp, TyperGroup):
    """A verb whose first word says what to do."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the word; the first action is meant where there is none."""
        module = import_module(f"popmodel.cli.{self.name}")
        names = list(module.ACTIONS)
        rest: list[str]
        if ctx.resilient_parsing:  # completion takes what has been typed so far
            rest = super().parse_args(ctx, args)
            return rest
        if args and args[0] not in names and not args[0].startswith("-"):
            hint = did_you_mean(args[0], names, f"choose one of {', '.join(names)}")
            raise UsageError(f"{self.name}: unknown action '{args[0]}'", hint)
        if not args and not getattr(module, "DEFAULT", False):
            raise UsageError(f"{self.name}: no action given", f"choose one of {', '.join(names)}")
        if getattr(module, "DEFAULT", False) and (not args or args[0] not in (*names, *_HELP)):
            args = [names[0], *args]
        rest = super().parse_args(ctx, args)
        return rest

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (typer's signature)
        """Write what each action does, as a whole: click's own list cuts it."""
        from popmodel.cli.command import summary

        actions = import_module(f"popmodel.cli.{self.name}").ACTIONS
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(function)) for name, function in actions.items()])


_HELP = ("-h", "--help")


@cache
def _command(verb: str, width: int, completing: bool) -> Any:
    """A verb as typer's command; to make it takes several times as long as a short call."""
    from popmodel.cli.command import command_of

    module = import_module(f"popmodel.cli.{verb}")
    examples = _examples(module.EXAMPLES, width)
    actions: dict[str, Any] = module.ACTIONS if hasattr(module, "SUMMARY") else {}
    single = typer.Typer(
        cls=ActionGroup, name=verb, add_completion=False, rich_markup_mode=None, epilog=examples
    )
    cls = getattr(module, "VERB", Verb)
    marks = {}  # of the parameters, by command
    if actions:
        single.callback(help=module.SUMMARY, context_settings={"help_option_names": list(_HELP)})(
            lambda: None
        )
        for name, function in actions.items():
            own = [one for one in module.EXAMPLES if one.startswith(f"popmodel {verb} {name}")]
            own_settings = getattr(module, "OF_ACTION", {}).get(name, {})
            made = command_of(function, {**vars(module), **own_settings})
            single.command(name, cls=cls, epilog=_examples(own, width))(made)
            marks[name] = made.marks  # type: ignore[attr-defined]
    else:
        made = command_of(getattr(module, verb), vars(module))
        single.command(verb, cls=cls, epilog=examples)(made)
        marks[verb] = made.marks  # type: ignore[attr-defined]
    command = get_command(single)
    if completing:
        from popmodel.cli.completion import attach

        click = ClickUsageError.__module__.rpartition(".")[0]
        item = import_module(f"{click}.shell_completion").CompletionItem
        for each in command.commands.values() if actions else [command]:  # type: ignore[attr-defined]
            attach(each, marks[str(each.name)], item)
    return command


def _once(option: Any) -> str:
    """What to do about an option that is given several times."""
    value, comma, more = str(option.metavar).partition(",")
    if comma and "..." in more:  # such as TIME,... or N[,N...]
        name, value = max(option.opts, key=len), value.removesuffix("[")
        return f"separate values by commas: {name} {value},{value}"
    return "leave one of them out"


def _examples(examples: Sequence[str], width: int) -> str | None:
    """Examples below a help; None where there are none."""
    # \b keeps the lines of the examples as they are. They stand four columns in.
    lines = [line for example in examples for line in _wrapped(example, width - 4)]
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)]) if lines else None


def _wrapped(example: str, width: int) -> list[str]:
    """An example, in several lines of a shell command where it is too long for one."""
    from popmodel.reports.renderers.text import shell_lines

    words = re.findall(r"(?:'[^']*'|\S)+", example)  # what stands in quotes is one
    return [example] if len(example) <= width else shell_lines(words, width)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"popmodel {__version__}")
        raise typer.Exit


def _callback(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 (its callback acts)
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Analyse and predict the performance of MPI + OpenMP programs.

    From a trace: how efficiently a run used its cores (POP metrics), where time is lost, and what
    another network would change. From a model: which split of processes and threads to use.
    """
    if ctx.invoked_subcommand is None:
        # As click does since 8.2: a call without a verb is wrong usage, answered by the help.
        typer.echo(ctx.get_help(), err=True)
        raise typer.Exit(2)


def run(arguments: Sequence[str]) -> int:
    """Do what a command line says."""
    program = _program(_help_width())
    if COMPLETING in os.environ:
        program.main(prog_name="popmodel")
    help_on_it = f"see {' '.join(['popmodel', *_verb(arguments)])} --help"
    try:
        with program.make_context("popmodel", list(arguments), obj=tuple(arguments)) as context:
            program.invoke(context)
    except typer.Exit as ended:
        return int(ended.exit_code)
    except UsageError as error:
        if error.hint:
            raise
        raise UsageError(error.message, help_on_it) from error
    except ClickUsageError as error:
        hint = _renamed(error, arguments) or _nearest(error, help_on_it)
        raise UsageError(_message(error), hint) from error
    except ClickException as error:
        raise UsageError(_message(error)) from error
    return 0


def _verb(arguments: Sequence[str]) -> list[str]:
    """The verb that a command line begins with, and its action."""
    words = [word for word in arguments[:1] if word in VERBS]
    actions = getattr(import_module(f"popmodel.cli.{words[0]}"), "ACTIONS", ()) if words else ()
    return words + [word for word in arguments[1:2] if word in actions]


def _renamed(error: Exception, arguments: Sequence[str]) -> str:
    """What an option of an earlier version is called now."""
    option = str(getattr(error, "option_name", ""))
    if not option or arguments[0] not in VERBS:
        return ""
    names = getattr(import_module(f"popmodel.cli.{arguments[0]}"), "RENAMED", {})
    return f"now {names[option]}" if option in names else ""


def _nearest(error: Any, otherwise: str) -> str:
    """The option that was meant by one that there is not."""
    wrong = getattr(error, "option_name", "")
    options = error.ctx.command.params if error.ctx else ()
    names = [name for option in options for name in option.opts if len(name) > 2]
    known = [name for name in names if name != "--force"]  # nobody is to overwrite by mistake
    return did_you_mean(wrong, known, otherwise) if wrong else otherwise


@cache
def _program(width: int) -> Any:
    """The program as typer's command, whose help is so wide."""
    app = typer.Typer(
        cls=Verbs, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=True
    )
    app.callback(
        invoke_without_command=True,
        subcommand_metavar="COMMAND ...",
        context_settings={
            "help_option_names": ["-h", "--help"],
            "terminal_width": width,
        },
        epilog="Options of a command: popmodel COMMAND --help",
    )(_callback)
    program = get_command(app)
    for parameter in program.params:  # typer's own text is in American spelling
        if parameter.name == "show_completion":
            parameter.help = "Print the completion script for the current shell."  # type: ignore[attr-defined]
    return program


def _help_width() -> int:
    """Width of the help. Click's own is never below 50 columns."""
    return max(min(shutil.get_terminal_size((HELP_WIDTH, 24)).columns, HELP_WIDTH) - 2, 30)


def _message(error: Exception) -> str:
    """Click's message in this program's style: no capital, no full stop."""
    text = str(error.format_message()).strip().rstrip(".")  # type: ignore[attr-defined]
    text = text.partition(" (Possible")[0].partition(" Did you mean")[0].rstrip(".")  # as a hint
    return text[:1].lower() + text[1:]
