"""The results of all commands in Python: documents that can be read, tabulated and plotted.

A result has the same document, the same rows and the same screen as the command line; nothing
here computes a number.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from popmodel.base.errors import FileError, PopmodelError, UsageError, did_you_mean
from popmodel.base.values import NamedTuple, cut, dataclass

if TYPE_CHECKING:
    import pandas

    from popmodel.reports.views import Views
    from popmodel.runs.regression import ValueChange


@dataclass(frozen=True)
class Drawing:
    """An SVG drawing, which notebooks display.

    Examples
    --------
    >>> import popmodel
    >>> popmodel.predict(cores=64).plot()
    <Drawing: SVG, 576 x ... points>
    """

    svg: str  # The SVG source, also given by ``str(drawing)``

    def __repr__(self) -> str:
        head = self.svg.split("<svg", 1)[1].split(">", 1)[0]
        width, height = (float(head.split(f'{side}="', 1)[1].split("pt", 1)[0]) for side in _SIDES)
        return f"<Drawing: SVG, {width:.0f} x {height:.0f} points>"

    def __str__(self) -> str:
        return self.svg

    def _repr_svg_(self) -> str:
        return self.svg[self.svg.index("<svg") :]  # a notebook puts it into a page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing to a file, replacing an existing one."""
        save_text(path, self.svg)


_SIDES = (" width", " height")


def save_text(
    path: str | os.PathLike[str], text: str, read: Callable[[Path], object] | None = None
) -> None:
    """Write a text to a file, replacing an existing one."""
    from popmodel.base.files import write_bytes

    try:
        write_bytes(Path(path), text.encode(), read=read)
    except OSError as error:
        problem = f"cannot be written: {(error.strerror or str(error)).lower()}"
        raise FileError(path, problem, hint="choose another path") from error


class ResultValue(NamedTuple):
    """A number of a result, for conditions and for ``result[id]``."""

    id: str  # FAMILY.METRIC of an efficiency, else a name such as runtime
    value: float | None
    where: str = ""  # the run, where there are several
    why: str = ""  # why there is no value


class Result(ABC):
    """The result of a command.

    ``repr`` has one or a few lines; ``print`` shows the screen of the command, and notebooks what
    its page (``-o x.html``) shows without scripts.
    """

    on_stderr: bool = False
    """Whether it is shown on standard error, as standard output is the program's that was run."""
    exit_status: int = 0
    """Of the command, where nothing is wrong with the result: that of the program."""

    if TYPE_CHECKING:  # subclasses hold it or derive it

        @property
        def files(self) -> tuple[str, ...]:
            """The files that the result rests on."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the document of the command (``--format json``) without provenance."""

    families: tuple[str, ...] | None = None
    """Families of metrics that were asked for; None: those that fit."""

    @property
    def views(self) -> Views:
        """How the document is shown."""
        from popmodel.reports.registry import views_of

        views = views_of(self.shown_document())
        if self.families is None:
            return views
        return replace(views, blocks=partial(views.blocks, families=self.families))

    def __init_subclass__(cls) -> None:
        cls.__repr__ = cls.__repr__  # type: ignore[method-assign]  # a data class keeps it then

    def __repr__(self) -> str:
        """What the screen says first: doubts, and the answer."""
        from popmodel.reports.blocks import first_words, flat

        said = first_words(flat(self.views.blocks(self.shown_document()), brief=True))
        return cut(f"<{type(self).__name__}: {said}>")

    def shown_document(self) -> dict[str, Any]:
        """The document as the screen and the drawing show it."""
        return self.to_dict()

    def document_for(self, format_name: str) -> dict[str, Any]:
        """The document that is written in a format."""
        screen = format_name in ("table", "svg", "html")
        return self.shown_document() if screen else self.to_dict()

    def values(self) -> Sequence[ResultValue]:
        """The numbers that have an id: those that ``--fail-if`` and ``result[id]`` know."""
        return ()

    def __getitem__(self, id: str) -> float | tuple[float | None, ...] | None:
        """The value of an id, ``METRIC`` or ``FAMILY.METRIC``; of several runs, one for each.

        None is a value that is absent. Raises `UsageError` for an id that the result has not.
        """
        found = tuple(one.value for one in self.find(id))
        return found[0] if len(found) == 1 else found

    def find(self, id: str) -> list[ResultValue]:
        """The values of an id; of the first family where several have it; raises as indexing."""
        known = self.values()
        full = next((one.id for one in known if id in (one.id, one.id.rpartition(".")[2])), None)
        if full is None:
            ids = [name for one in known for name in (one.id.rpartition(".")[2], one.id)]
            raise UsageError(f"unknown value '{id}'", did_you_mean(id, dict.fromkeys(ids), ""))
        return [one for one in known if one.id == full]

    def changes(self, id: str) -> Sequence[tuple[str, ValueChange]]:
        """Changes of a value against earlier runs, each with where; those that can be told."""
        raise UsageError(
            f"--fail-if {id}: a limit with a sign is a change against earlier runs",
            "popmodel metrics RUN... --history FILE has them; else leave the sign out",
        )

    def failure(self) -> PopmodelError | None:
        """What is wrong with the result, which a command says after it was shown."""
        return None

    def to_dataframe(self) -> pandas.DataFrame:
        """Return the rows of ``--format csv`` as a pandas table.

        Quantities are in SI units and efficiencies fractions. ``popmodel docs tables`` says what
        the rows and columns of each result are.
        """
        import pandas

        from popmodel.reports.renderers.data import rows

        return pandas.DataFrame.from_records(list(rows(self.to_dict(), self.views)))

    def plot(self) -> Drawing:
        """Plot the result; notebooks display it, ``save(path)`` writes it."""
        from popmodel.reports.formats import SVG
        from popmodel.reports.renderers.text import Style

        return Drawing(SVG.render(self._stamped(), self.views, Style()))

    def __str__(self) -> str:
        from popmodel.reports.renderers.terminal import screen_text
        from popmodel.reports.renderers.text import Style

        return screen_text(self.views.blocks(self._stamped()), Style())

    def _repr_html_(self) -> str:
        from popmodel.reports.html.page import notebook

        return notebook(self._stamped(), self.views)

    def _stamped(self) -> dict[str, Any]:
        """The document with where it comes from."""
        from popmodel.base import provenance

        found = provenance.stamped(self.shown_document(), (), filter(os.path.isfile, self.files))
        command = f"popmodel.{type(self).__module__.rpartition('.')[2]}() in Python"
        return {**found, "provenance": {**found["provenance"], "command": command}}
