"""Pictures of results, drawn by matplotlib (the extra `pictures`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpybroker.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = (".svg", ".png")
WIDTH_INCHES, PANEL_INCHES = 8.0, 2.6
STYLE: Any = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "font.size": 9,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "kpybroker",  # the same results give the same file
}

Panel = Callable[["Axes"], None]
"""Draws one part of a picture."""


def check_picture(file: str | None) -> None:
    """Refuse, before the work begins, a picture that could not be written at its end. Raises `PipelineError`."""
    if file is None:
        return
    if Path(file).suffix not in KINDS:
        raise PipelineError(f"{file} is not a kind of picture that can be written.", f"Use {' or '.join(KINDS)}.", 2)
    if not Path(file).absolute().parent.is_dir():
        raise PipelineError(f"There is no folder for {file}.", "Make it first, or choose another.", 2)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PipelineError("A picture needs matplotlib.", "pip install 'kpybroker[pictures]'", 2) from None


def time_axis(axes: Axes) -> None:
    """Label the x axis, whose values are datetimes, with as much of them as changes."""
    from matplotlib import dates

    known: Any = dates
    locator = known.AutoDateLocator()
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(known.ConciseDateFormatter(locator))


def save_picture(file: str | None, *panels: Panel) -> None:
    """Draw the panels below each other into `file`, if there is one, and say where it is."""
    if file is None:
        return
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(WIDTH_INCHES, PANEL_INCHES * max(len(panels), 1)), layout="constrained")
        for number, panel in enumerate(panels, 1):
            panel(figure.add_subplot(len(panels), 1, number))
        figure.savefig(file, metadata={"Date": None} if Path(file).suffix == ".svg" else None)
    print(f"The picture is {file}")


def legend(axes: Axes) -> None:
    """The names of what is drawn, to the right, where they hide nothing."""
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
