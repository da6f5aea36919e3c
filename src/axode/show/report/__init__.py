"""One page about a mechanism and what it did: a file that needs nothing else, no network."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from axode.disk.atomic import write_atomically
from axode.errors import InvalidArgument, shortened
from axode.names import title_words
from axode.show.report.cell_player import check_run
from axode.show.report.report_page import page
from axode.show.style import need_matplotlib

if TYPE_CHECKING:
    from axode.model.model import Model
    from axode.results.trajectory import Trajectory
    from axode.symbolic.equations import Equations


def report(
    what: Any, path: str | PathLike[str], *, run: Trajectory | None = None, title: str | None = None
) -> Path:
    """Write a page about a mechanism: mobility, equations, parameters, and a run if there is one.

    The page holds a playback in three dimensions, plots, the audit of energy and constraints, and
    the numbers behind them. It opens from the file, without a network.

    Args:
        what: A `Mechanism`, its `Equations`, a `Model`, or a trajectory that knows its model; a
            model that was loaded from a file has no equations; the page notes it.
        path: Ends in `.html`.
        run: What it did, of one run.
        title: Title of the page; the mechanism's name in words unless given.

    Returns:
        The path.

    Raises:
        FileError: if it cannot be written.
        NotApplicable: if matplotlib, from the extra `report`, is not installed.
    """
    file = Path(path)
    if file.suffix.lower() not in (".html", ".htm"):
        raise InvalidArgument(f"a report is a page: '{file}' has to end in .html")
    need_matplotlib()
    equations, model = _sides(what)
    if run is None and hasattr(what, "resample"):
        run = what
    if run is not None:
        check_run(model, run, "report")
    text = page(equations, model, run, title or title_words(model.name))
    write_atomically(file, text.encode())
    return file


def _sides(what: Any) -> tuple[Equations | None, Model]:
    """Equations and model of whatever was given."""
    if hasattr(what, "resample"):
        if what.model is None:
            raise InvalidArgument(
                "a trajectory from a file does not know its model.\n"
                "  Remedy: run.report(path, model=model)"
            )
        what = what.model
    if hasattr(what, "derive"):
        what = what.derive()
    if hasattr(what, "compile"):
        return what, what.compile()
    if hasattr(what, "forward_dynamics"):
        return what.equations if what.has_equations else None, what
    raise InvalidArgument(
        "a report is about a mechanism, its equations, a model or a run, not about "
        f"{shortened(what)}"
    )
