"""Units of work whose first worker is killed."""

import os
import signal
from pathlib import Path
from typing import Any

from popmodel.traces.paraver.text_scan import _scan_apart


def doubled(number: int, marker: str = "", times: int = 1) -> int:
    """Twice a number; the worker is killed while the marker file has fewer than some bytes."""
    if marker:
        with Path(marker).open("a+") as file:
            file.write(".")
            file.flush()
            if Path(marker).stat().st_size <= times:
                os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def scan_apart(path: Path, layout: Any, part: tuple[int, int], target: Path) -> Any:
    """Scan a range of a trace; the first worker that has done one behind the first is killed."""
    found = _scan_apart(path, layout, part, target)
    marker = path.with_suffix(".killed")
    if part[0] and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return found
