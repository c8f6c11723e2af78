"""Build the site: ``python .ci/site/build.py [FOLDER]``, from what ``popmodel docs`` shows.

Needs the extra ``docs``. Warnings are errors: links that lead nowhere, headings out of order,
docstrings that cannot be read.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main as sphinx

import popmodel
from popmodel.cli.docs import pages

HERE = Path(__file__).parent
ROOT = HERE.parent.parent

INDEX = """\
# popmodel

How efficiently does my MPI + OpenMP program run, why, what would another network change, and which
split of processes and threads should I use next?

```{{toctree}}
:maxdepth: 1

{names}
python
```
"""


def sources(folder: Path) -> None:
    """Put the pages, an index and the reference into a folder."""
    known = {page.path.resolve(): page.name for page in pages()}
    for page in pages():
        here = page.path.parent

        def on_the_site(match: re.Match[str], here: Path = here) -> str:
            name = known.get((here / match[1]).resolve())
            return f"]({name}.md)" if name else match[0]

        text = re.sub(r"\]\(([^)\s#]+)\)", on_the_site, page.text())
        (folder / f"{page.name}.md").write_text(text)
    names = "\n".join(page.name for page in pages())
    (folder / "index.md").write_text(INDEX.format(names=names))
    (folder / "python.rst").write_text(reference())
    for one in (HERE / "conf.py", *(ROOT / "popmodel" / "docs").glob("*.png")):
        shutil.copy(one, folder)


def reference() -> str:
    """The page of the public names."""
    title = "Python: the functions of ``import popmodel``"
    lines = [title, "=" * len(title), ""]
    for name in sorted(set(popmodel.__all__) - {"__version__"}):
        kind = "class" if inspect.isclass(getattr(popmodel, name)) else "function"
        lines += [f".. auto{kind}:: popmodel.{name}", ""]
    return "\n".join(lines)


def main(target: Path) -> int:
    """Build the site into a folder; give Sphinx' exit status."""
    with tempfile.TemporaryDirectory() as work:
        sources(Path(work))
        return sphinx(["-q", "-W", "--keep-going", "-b", "html", work, str(target)])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else ROOT / "build" / "site"))
