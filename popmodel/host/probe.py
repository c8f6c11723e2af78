"""Finds out how ranks are started here, by starting some.

Flags for root, for binding and for more ranks than the launcher has room for differ between makes
and versions, and whether they are needed depends on the machine. What worked is remembered beside
the built program.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from popmodel import files
from popmodel.documents import parse_json, read_shape, read_text
from popmodel.errors import FileError
from popmodel.host import hardware
from popmodel.host.build import build
from popmodel.host.failures import OUT_OF_TOUCH, LaunchError, explain, meaningful, quote
from popmodel.host.launchers import Way, call, ways
from popmodel.host.processes import TOOK_TOO_LONG, output_of
from popmodel.host.system_files import cpu_list
from popmodel.host.toolchain import Mpi
from popmodel.shapes import Items, Text, record
from popmodel.units import plural

_WAY = record({"launcher": Items(Text(), 1), "manner": Text()})
_HELLO = 60.0  # seconds for ranks to say hello, on a machine that is busy


def probe(mpi: Mpi, environment: Mapping[str, str] = os.environ) -> Way:
    """Find out how ranks are started: by starting two, or one on a machine of one core."""
    if not mpi.launchers:
        raise LaunchError(
            f"{mpi.name}: found neither mpirun nor mpiexec, and this is not a batch job",
            "run it in a job (popmodel bench --script slurm), or give the launcher: --launcher",
        )
    program = build("hello", mpi, environment)
    if (known := _recalled(program, mpi, environment)) is not None:
        return known
    ranks = min(2, hardware.here().usable_cores)
    failures: list[LaunchError] = []
    for way in ways(mpi):
        failure = hello(way, mpi, program, ranks, environment)
        if failure is None:
            _remember(program, mpi, environment, way)
            return way
        failures.append(failure)
        if failure.is_hang:
            break  # other flags do not make a launcher faster, and each would cost as long
    raise _told_apart(mpi, program, ranks, failures[0], environment)


def hello(
    way: Way, mpi: Mpi, program: Path, ranks: int, environment: Mapping[str, str]
) -> LaunchError | None:
    """Start ranks that say hello to each other; give what went wrong, or None."""
    begun = call(way, mpi, ranks, 1, environment)
    command = [*begun.words, str(program)]
    done = output_of(command, timeout=_HELLO, environment={**environment, **begun.environment})
    sizes = [int(size) for size in re.findall(r'"hello":\d+,"ranks":(\d+)', done.text)]
    if done.status == 0 and sizes == [ranks] * ranks:
        return None
    if done.status == TOOK_TOO_LONG:
        said = meaningful(done.text)[:-1]  # the last line is not its own: that time is over
        words = tuple(line for line in said if not line.startswith('{"hello"'))
        message = f"{way.name} did not start {plural(ranks, 'rank')} within {_HELLO:g} s"
        message += f": {quote(words)}" if words else "; it printed nothing"
        return LaunchError(message, OUT_OF_TOUCH, words, is_hang=True)
    if ranks > 1 and sizes and set(sizes) == {1}:
        return LaunchError(
            f"{way.name} started {len(sizes)} separate one-rank programs instead of "
            f"{plural(ranks, 'rank')}: it does not belong to {mpi.name}",
            "give the launcher of this MPI, for example --launcher 'srun --mpi=pmix'",
            meaningful(done.text),
        )
    return explain(done.status, done.text, command, ranks)


def forget(mpi: Mpi, environment: Mapping[str, str] = os.environ) -> None:
    """Forget how ranks are started: what worked once may have ceased to."""
    with suppress(OSError):
        _memory(build("hello", mpi, environment), mpi, environment).unlink()


def _told_apart(
    mpi: Mpi, program: Path, ranks: int, failure: LaunchError, environment: Mapping[str, str]
) -> LaunchError:
    """Say whether it is the number of ranks that is in the way."""
    if ranks == 1 or failure.is_hang:
        return failure
    for way in ways(mpi):
        plain = way.manner in ("free", "given")
        if plain and hello(way, mpi, program, 1, environment) is None:
            message = f"1 rank starts, {ranks} do not: {failure.message}"
            return LaunchError(message, failure.hint, failure.words)
    return failure


def _memory(program: Path, mpi: Mpi, environment: Mapping[str, str]) -> Path:
    """File beside the built program that remembers the way, for this kind of environment."""
    depends = [
        *map(shlex.join, mpi.launchers),
        str(os.geteuid()),
        os.uname().nodename,
        cpu_list(os.sched_getaffinity(0)),
        # What steers launchers is set in variables: another value may want another way.
        *(f"{name}={environment[name]}" for name in sorted(environment) if _steers(name)),
    ]
    key = hashlib.sha256("\0".join(depends).encode(errors="surrogateescape")).hexdigest()[:16]
    return program.with_name(f"way-{key}.json")


def _steers(name: str) -> bool:
    return name.startswith(("OMPI_", "PRTE_", "PMIX_", "HYDRA_", "I_MPI_", "MPIEXEC_", "SLURM_"))


def _recalled(program: Path, mpi: Mpi, environment: Mapping[str, str]) -> Way | None:
    path = _memory(program, mpi, environment)
    try:
        known = read_shape(parse_json(read_text(path), path), _WAY, path)
    except FileError:
        return None  # not there, or damaged: found out again
    way = Way(tuple(known["launcher"]), known["manner"])
    return way if way in ways(mpi) else None


def _remember(program: Path, mpi: Mpi, environment: Mapping[str, str], way: Way) -> None:
    with suppress(OSError):  # only costs finding it out again
        files.write_text(
            _memory(program, mpi, environment), json.dumps(asdict(way), allow_nan=False)
        )
