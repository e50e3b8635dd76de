"""What options name, opened and read."""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, overload

from fewlier.cli.screen import progress
from fewlier.errors import UserError
from fewlier.process.progress import Progress

if TYPE_CHECKING:
    from fewlier.density.base import DensitySettings
    from fewlier.detector import AnomalyDetector
    from fewlier.files.reading import TableFile
    from fewlier.table.label_column import LabelColumn


@contextmanager
def open_table_and_model(
    table: Path, model: Path, doing: str, if_stopped: str
) -> Iterator[tuple["TableFile", "AnomalyDetector", Progress]]:
    """Open a table, load a model and show progress.

    The table comes first: a wrong path is reported before torch is loaded.
    """
    from fewlier.files.folder import open_table

    with open_table(table) as file:
        from fewlier.detector import AnomalyDetector

        detector = AnomalyDetector.load(model)
        with progress(doing, if_stopped) as show:
            yield file, detector, show


def check_file_output(path: Path, what: str, *inputs: Path) -> None:
    """Refuse, before any work, a path that `what` cannot be written to."""
    from fewlier.files.reading import is_standard
    from fewlier.files.writing import check_output

    if is_standard(path):
        raise UserError(f"{what} must be written to a file; got standard output. Give -o a path.")
    check_output(path, *inputs)


@overload
def read_label(name: str, anomaly: list[str] | None, normal: list[str] | None) -> "LabelColumn": ...


@overload
def read_label(
    name: str | None, anomaly: list[str] | None, normal: list[str] | None
) -> "LabelColumn | None": ...


def read_label(
    name: str | None, anomaly: list[str] | None, normal: list[str] | None
) -> "LabelColumn | None":
    """Return the label column that the options describe."""
    from fewlier.table.label_column import LabelColumn

    if name is not None:
        return LabelColumn(name, tuple(anomaly or ()), tuple(normal or ()))
    for flag, values in (("--anomaly", anomaly), ("--normal", normal)):
        if values:
            raise UserError(f"{flag} must come with --label, the column to find the value in.")
    return None


def read_columns(declarations: list[str], ignored: list[str]) -> dict[str, str] | None:
    """Read ``visits=count`` or ``amount=1.234,5``, and ``id,note``, which are to be left out.

    The last equals sign separates: a name may contain one, a declaration may not.
    """
    kinds = dict.fromkeys(read_names(ignored), "ignore")
    for text in declarations:
        name, equals, kind = text.rpartition("=")
        if not equals:
            raise UserError(f"--column must be NAME=KIND, such as visits=count; got {text!r}.")
        if name in kinds:
            raise UserError(f"--column and --ignore must name a column once; got {name!r} again.")
        kinds[name] = kind
    return kinds or None


def read_missing(
    said: list[str], columns: Collection[str], label: str | None = None
) -> list[str] | dict[str, list[str]] | None:
    """Read ``-200``, which stands for a missing cell in every column, and ``age=0``, in one."""
    pairs = [text.rpartition("=") for text in said]
    everywhere = [value for name, _, value in pairs if not name]
    if len(everywhere) == len(pairs):
        return everywhere or None
    named = {name: [v for other, _, v in pairs if other == name] for name, _, _ in pairs if name}
    others = {name: None for name in columns if everywhere and name not in ("", label)}
    return {name: everywhere + named.get(name, []) for name in others | dict.fromkeys(named)}


def read_density(name: str, options: list[str]) -> "str | DensitySettings":
    """Read ``latent=5``, ``hidden=64,64`` or ``kind=nsf``: settings of the density of this name."""
    from fewlier import density

    settings = density.read_density(name)
    defaults, values = settings.get_params(), {}
    for text in options:
        size, equals, value = text.partition("=")
        if not equals or size not in defaults or size in values:
            raise UserError(
                f"--density-option must be NAME=VALUE, once for each of {', '.join(defaults)} of "
                f"--density {name}; got {text!r}."
            )
        values[size] = _value_like(defaults[size], value)
    return density.read_density(settings.set_params(**values)) if values else name


def _value_like(default: object, text: str) -> object:
    """Read a text as a number, numbers or text, as the default is."""
    if isinstance(default, str) or not re.fullmatch(r"[\d,]*", text):
        return text
    numbers = tuple(int(number) for number in text.split(",") if number)
    return numbers if isinstance(default, tuple) else numbers[0] if len(numbers) == 1 else text


def read_names(lists: list[str]) -> list[str]:
    """Read ``id,timestamp``, given once or more."""
    return [name.strip() for text in lists for name in text.split(",") if name.strip()]
