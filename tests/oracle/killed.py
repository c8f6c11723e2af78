"""A unit of work whose first worker is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def doubled(number: int, marker: str = "", times: int = 1) -> int:
    """Twice a number; the worker is killed while the marker file has fewer than some bytes."""
    if marker:
        with Path(marker).open("a+") as file:
            file.write(".")
            file.flush()
            if Path(marker).stat().st_size <= times:
                os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number
