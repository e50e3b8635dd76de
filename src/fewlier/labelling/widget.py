"""Labelling in a notebook: the page of `fewlier label` as a widget, in the cell's output."""

from typing import TYPE_CHECKING, Any

from fewlier.errors import missing_package
from fewlier.files.atomic import PathLike
from fewlier.labelling.page.api import PageApi
from fewlier.labelling.page.app import read_static
from fewlier.labelling.session import Session

if TYPE_CHECKING:
    from anywidget import AnyWidget


def label(session: Session, *, model_path: PathLike | None = None) -> "AnyWidget":
    """Show a session, row by row, to be answered by keys; the answers go to the session.

    Parameters
    ----------
    session : Session
        What asks and learns. Its file of answers, if it has one, is written after every answer.
    model_path : path, optional
        Where the button "Save model" writes a detector.

    Examples
    --------
    >>> import numpy as np
    >>> from fewlier import Session
    >>> from fewlier.labelling.widget import label
    >>> session = Session(np.random.default_rng(0).normal(size=(200, 2)))
    >>> widget = label(session)  # as the last line of a cell it is shown
    >>> type(widget).__name__
    'LabelWidget'
    >>> session.close()
    """
    try:
        import anywidget
    except ImportError as error:
        needs = "Labelling in a notebook needs anywidget"
        raise missing_package(needs, error, "notebook") from error
    api = PageApi(session, model_path=model_path)

    def receive(widget: "AnyWidget", message: Any, _: Any) -> None:  # noqa: ANN401 - any JSON
        reply = api.reply(message["action"], message["body"])
        widget.send({"id": message["id"], "reply": reply})

    static = {"_esm": read_static("labelling.js"), "_css": read_static("labelling.css")}
    widget: AnyWidget = type("LabelWidget", (anywidget.AnyWidget,), static)()
    widget.on_msg(receive)
    return widget
