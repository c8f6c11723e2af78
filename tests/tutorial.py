"""Follow the tutorial word by word: ``python tests/tutorial.py`` in a fresh clone.

Runs its commands (the blocks marked ``sh``) one after the other in one shell, which stops at the
first that fails, and says how long they took.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time

from console import ROOT

PAGE = ROOT / "popmodel" / "docs" / "tutorial.md"


def script() -> str:
    """All commands of the tutorial."""
    return "".join(re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))


def main() -> int:
    """Run them; give the exit status of the shell."""
    begin = time.monotonic()
    shell = ["bash", "-exo", "pipefail", "-c", "PS4='+ $SECONDS s: '\n" + script()]
    status = subprocess.run(shell, cwd=ROOT, check=False).returncode
    print(f"the tutorial took {time.monotonic() - begin:.0f} s, exit status {status}")
    return status


if __name__ == "__main__":
    sys.exit(main())
