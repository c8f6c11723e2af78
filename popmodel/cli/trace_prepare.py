"""What ``popmodel trace`` prepares for runs that others start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from popmodel.base.errors import UsageError
from popmodel.cli.options import choice
from popmodel.cli.trace_target import DEFAULT, checked, merging, target_of, tracer

if TYPE_CHECKING:
    from popmodel.tracer.commands import Settings


def build(
    arguments: Sequence[str], words: Sequence[str], output: str | None, format: str | None
) -> None:
    """Build the tracer, and say where it is."""
    from popmodel.api.trace import built
    from popmodel.cli.output import target
    from popmodel.reports.trace import BUILT
    from popmodel.tracer.commands import understand

    if output is not None:
        raise UsageError(f"-o {output}: not valid with --build-only", "leave -o out")
    goal = target(arguments, None, format, force=False)
    library = tracer(understand(words) if words else None)
    goal.write(built(library), BUILT)


def print_environment(
    arguments: Sequence[str], output: str | None, settings: Settings, *, force: bool
) -> None:
    """Print the variables that a program needs to be traced."""
    from popmodel.base.shell import join, quote
    from popmodel.cli.streams import remark, write_out
    from popmodel.tracer import raw_directory
    from popmodel.tracer.commands import variables

    target = checked(output or DEFAULT, force=force)
    library = tracer(None)
    raw = raw_directory.of_output(target)
    raw_directory.create(raw, force=force, reuse=True)
    given = variables(library.path, raw, settings)
    write_out("".join(f"{name}={quote(value)}\n" for name, value in given.items()))
    line = f"mpirun -n 4 env $({join(('popmodel', *arguments))}) ./app"
    if any(quote(value) != value for value in given.values()):
        line = f"eval {line}"  # what a command prints is split at blanks, quoted or not
    remark(f"set them for the program only: {line}")
    remark(f"after the run: {merging(raw, target)}")


def write_script(
    words: Sequence[str],
    system: str,
    sizes: Mapping[str, int | None],
    output: str | None,
    settings: Settings,
    *,
    force: bool,
) -> None:
    """Write a job script."""
    from popmodel.base.shell import join, visible
    from popmodel.cli.streams import remark, warn_of_packaged, write_out
    from popmodel.tracer import run as script
    from popmodel.tracer.commands import understand

    choice("--script", system, script.SYSTEMS)
    command = understand(words)
    target = target_of(output, command, force=force)
    library = tracer(command)
    warn_of_packaged(library.mpi)
    job = script.TracedJob(
        command,
        nodes=sizes["--nodes"] or 1,
        ranks=sizes["--ranks"],
        threads=sizes["--threads"],
        settings=settings,
    )
    made_for = None if library.mpi is None else library.mpi.name
    path = script.write(job, library.path, target, mpi=made_for, force=force)
    write_out(f"{visible(str(path))}\n")
    remark(f"to submit: {join(['sbatch', str(path)])}")
    remark("after the job: the end of its output shows the command that merges the trace")
