"""How ranks are started: what each launcher needs to be told.

Every launcher takes the number of ranks as ``-n``; all else differs. The *manner* says where ranks
go: ``bound`` to cores of their own, ``free`` on any core, ``crowded`` with more ranks than the
launcher believes there is room for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from popmodel.host.toolchain import Mpi, Words
from popmodel.values import dataclass

Manner = Literal["given", "bound", "free", "crowded"]


@dataclass(frozen=True)
class Way:
    """A way to start ranks."""

    launcher: Words  # Words that call the launcher
    manner: Manner  # Where the ranks go; ``given`` if the user's words say it

    @property
    def name(self) -> str:
        """The launcher's name for messages."""
        return Path(self.launcher[0]).name


@dataclass(frozen=True)
class Call:
    """A command with what it needs in its environment."""

    words: list[str]
    environment: dict[str, str]


def ways(mpi: Mpi) -> list[Way]:
    """List the ways to start ranks that are worth a try, the best first."""
    if mpi.is_launcher_given:
        return [Way(words, "given") for words in mpi.launchers]
    manners: tuple[Manner, ...] = ("bound", "free", "crowded")
    found = []
    for words in mpi.launchers:
        variants = [words]
        if Path(words[0]).name == "srun":
            # Which of its interfaces an MPI was built for cannot be seen from outside.
            variants += [(*words, "--mpi=pmix"), (*words, "--mpi=pmi2")]
        found += [Way(variant, manner) for variant in variants for manner in manners]
    return found


def call(way: Way, mpi: Mpi, ranks: int, threads: int, environment: Mapping[str, str]) -> Call:
    """Compose the beginning of a command that starts ranks; the program follows."""
    extra: dict[str, str] = {}
    flags: list[str] = []
    if mpi.library == "Open MPI" and os.geteuid() == 0:
        # Also for srun and the user's own words: they may call mpirun in a script.
        extra |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if way.manner == "given":
        pass
    elif way.name == "srun":
        flags = _srun(way.manner, threads)
    elif mpi.library == "Open MPI":
        flags = _open_mpi(way.manner, threads, mpi.version) + _exported(environment)
    elif mpi.library == "Intel MPI":
        extra |= {"I_MPI_PIN": "1" if way.manner == "bound" else "0"}
        if way.manner == "bound":
            extra["I_MPI_PIN_DOMAIN"] = "omp" if threads > 1 else "core"
    elif mpi.library in ("MPICH", "MVAPICH") and way.manner == "bound":
        flags = ["-bind-to", f"core:{threads}"]
    return Call([*way.launcher, *flags, "-n", str(ranks)], extra)


def _srun(manner: Manner, threads: int) -> list[str]:
    flags = {
        "bound": ["--cpu-bind=cores"],
        "free": ["--cpu-bind=none"],
        "crowded": ["--cpu-bind=none", "--overcommit"],
    }
    return [*flags[manner], "-c", str(threads)]


def _open_mpi(manner: Manner, threads: int, version: str) -> list[str]:
    if manner == "bound":
        return ["--map-by", f"slot:PE={threads}", "--bind-to", "core"]
    if manner == "free":
        return ["--bind-to", "none"]
    crowded = ["--map-by", ":OVERSUBSCRIBE"] if _major(version) >= 5 else ["--oversubscribe"]
    return [*crowded, "--bind-to", "none"]


def _exported(environment: Mapping[str, str]) -> list[str]:
    """Flags that take the variables of OpenMP to other nodes: Open MPI takes only its own."""
    names = sorted(name for name in environment if name.startswith("OMP_"))
    return [word for name in names for word in ("-x", name)]


def _major(version: str) -> int:
    first = version.partition(".")[0]
    return int(first) if first.isdigit() else 0
