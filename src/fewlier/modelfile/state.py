"""What a model file holds of an object, described once, and read back with checks.

An object that is saved has a method `state()`, which returns a `State`, and a class method
`from_state(state, ...)`, its inverse, which asks the state for every field and array by name and
says what each must be. A file may be damaged or hostile, so anything else is a `FormatError`, and
so is a field or an array that nobody asks for (`State.check_all_read`).
"""

import math
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeAlias, TypeVar, final

import numpy as np
import numpy.typing as npt

from fewlier.errors import FormatError

Json: TypeAlias = dict[str, Any]
Array: TypeAlias = npt.NDArray[Any]
Check: TypeAlias = Callable[[object], bool]
T = TypeVar("T")

MAX_INT = 2**31 - 1
"""Largest integer in a model file, hence of most parameters."""


def require(is_right: bool, otherwise: str) -> None:
    """Raise a `FormatError` that says what is wrong."""
    if not is_right:
        raise FormatError(otherwise)


@final
class State:
    """What a file holds of one object.

    Parameters
    ----------
    record : mapping
        JSON values by name. A value may also be the `State` of a part, or a list of such.
    arrays : mapping
        Arrays by name.
    name : str
        Where the object stands in the file, such as ``model.calibration``; messages name it.

    Examples
    --------
    >>> stored = State({"share": 0.5, "side": State({}, {"rows": np.zeros((2, 3))})}).flat()
    >>> stored[0]
    {'share': 0.5, 'side': {}}
    >>> state = State(*stored)
    >>> state.number("share", least=0), state.part("side").array("rows", "f8", (None, 3)).shape
    (0.5, (2, 3))
    """

    def __init__(
        self, record: Mapping[str, Any], arrays: Mapping[str, Array] | None = None, name: str = ""
    ) -> None:
        self.record, self.arrays, self.name = dict(record), dict(arrays or {}), name
        self._unread = {*self.record, *self.arrays}
        self._parts: list[State] = []

    def flat(self) -> tuple[Json, dict[str, Array]]:
        """Return nested JSON values, and all arrays under dotted names such as ``side.rows``."""
        arrays: dict[str, Array] = {}
        return _flatten(self, "", arrays), arrays

    def check_all_read(self) -> None:
        """Refuse fields and arrays, here or in a part, that nobody has asked for."""
        unknown = sorted(map(self._path, self._unread))
        require(not unknown, f"it holds {unknown[:5]}, which fewlier does not write.")
        for part in self._parts:
            part.check_all_read()

    # Fields

    def value(self, name: str) -> Any:  # noqa: ANN401 - a JSON value
        """Return a field, whatever it holds."""
        require(name in self.record, f"{self._path(name)!r} is missing.")
        self._unread.discard(name)
        return self.record[name]

    def has(self, name: str) -> bool:
        """Whether a field that may be null is not."""
        return self.value(name) is not None

    def number(self, name: str, least: float = -math.inf, most: float = math.inf) -> float:
        """Return a finite float, which JSON never writes without a point, within bounds."""
        expected = f"a finite number from {least:g} to {most:g}"
        return self._typed(float, name, lambda value: is_number(value, least, most), expected)

    def positive(self, name: str, below: float = math.inf) -> float:
        """Return a float above zero and below a bound."""
        expected = f"a number between 0 and {below:g}"
        return self._typed(float, name, lambda value: 0 < value < below, expected)

    def count(self, name: str, least: int = 0, most: int = MAX_INT) -> int:
        """Return an integer within bounds."""
        expected = f"an integer from {least} to {most}"
        return self._typed(int, name, lambda value: least <= value <= most, expected)

    def text(self, name: str, choices: Collection[str] | None = None) -> str:
        """Return a text, one of `choices` if there are any."""
        expected = "text" if choices is None else f"one of {', '.join(choices)}"
        return self._typed(str, name, lambda value: choices is None or value in choices, expected)

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        return self._typed(bool, name, lambda _: True, "true or false")

    def items(self, name: str, is_item: Check = lambda _: True, what: str = "") -> list[Any]:
        """Return a list whose items all pass a check."""
        return self._typed(list, name, lambda found: all(map(is_item, found)), f"a list {what}")

    def numbers(self, name: str) -> list[float]:
        """Return a list of finite floats."""
        return self.items(name, is_number, "of numbers")

    def counts(self, name: str, most: int = MAX_INT) -> list[int]:
        """Return a list of integers from 0 to `most`."""
        return self.items(name, lambda n: is_count(n, 0, most), f"of integers from 0 to {most}")

    def texts(self, name: str) -> list[str]:
        """Return a list of texts."""
        return self.items(name, is_text, "of texts")

    def mapping(self, name: str, is_value: Check, what: str) -> dict[str, Any]:
        """Return a record of names that are not known beforehand; its values pass a check."""
        return self._typed(
            dict, name, lambda found: all(map(is_value, found.values())), f"a record {what}"
        )

    # Parts

    def part(self, name: str) -> "State":
        """Return the state of a part."""
        return self._opened(name, self.value(name))

    def optional(self, name: str) -> "State | None":
        """Return the state of a part that may be null."""
        return self.part(name) if self.has(name) else None

    def parts(self, name: str) -> "Iterator[State]":
        """Return the states of a list of parts, one at a time."""
        listed = {str(number): value for number, value in enumerate(self.items(name))}
        parts = self._opened(name, listed)
        return map(parts.part, listed)

    # Arrays

    def array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> Array:
        """Return a copy of a finite array of this type and shape; None is any length."""
        found = self.arrays.get(name)
        if found is None:
            raise FormatError(f"array {self._path(name)!r} is missing.")
        self._unread.discard(name)
        is_shape = len(found.shape) == len(shape) and all(
            wanted in (None, n) for wanted, n in zip(shape, found.shape, strict=True)
        )
        require(
            found.dtype == np.dtype(dtype) and is_shape,
            f"array {self._path(name)!r} is {found.dtype} {list(found.shape)}, not "
            f"{np.dtype(dtype)} {['any' if n is None else n for n in shape]}.",
        )
        require(bool(np.isfinite(found).all()), f"{self._path(name)!r} holds NaN or infinity.")
        return found.copy()

    def flags(self, name: str, shape: tuple[int | None, ...]) -> npt.NDArray[np.bool_]:
        """Return an array of truth values, which a file holds as bytes."""
        found = self.array(name, np.uint8, shape)
        require(bool((found <= 1).all()), f"{self._path(name)!r} must hold 0 or 1.")
        return found.astype(np.bool_)

    def _path(self, name: str) -> str:
        return f"{self.name}.{name}" if self.name else name

    def _opened(self, name: str, value: object) -> "State":
        if not isinstance(value, dict):
            raise FormatError(f"{self._path(name)!r} must be a record; got {reprlib.repr(value)}.")
        arrays = self._grouped.get(name, {})
        self._unread -= {f"{name}.{key}" for key in arrays}
        self._parts.append(State(value, arrays, self._path(name)))
        return self._parts[-1]

    @cached_property
    def _grouped(self) -> dict[str, dict[str, Array]]:
        """The arrays of parts, by the first part of their dotted names."""
        groups: dict[str, dict[str, Array]] = {}
        for key, array in self.arrays.items():
            head, _, rest = key.partition(".")
            groups.setdefault(head, {})[rest] = array
        return groups

    def _typed(self, kind: type[T], name: str, is_right: Callable[[T], bool], expected: str) -> T:
        """Return a field of exactly this type that is right, else say what was expected."""
        value = self.value(name)
        if type(value) is not kind or not is_right(value):
            found = reprlib.repr(value)
            raise FormatError(f"{self._path(name)!r} must be {expected}; got {found}.")
        return value


def is_text(value: object) -> bool:
    """Whether a JSON value is text."""
    return isinstance(value, str)


def is_number(value: object, least: float = -math.inf, most: float = math.inf) -> bool:
    """Whether a JSON value is a finite float within bounds."""
    return isinstance(value, float) and math.isfinite(value) and least <= value <= most


def is_count(value: object, least: int = 0, most: int = MAX_INT) -> bool:
    """Whether a JSON value is an integer within bounds."""
    return type(value) is int and least <= value <= most


def _flatten(value: object, prefix: str, arrays: dict[str, Array]) -> Any:  # noqa: ANN401 - JSON
    """Return JSON values, and put the arrays of states among them into `arrays`."""
    if isinstance(value, list):
        return [_flatten(one, f"{prefix}{number}.", arrays) for number, one in enumerate(value)]
    if not isinstance(value, State):
        return value
    for name, array in value.arrays.items():
        array = np.ascontiguousarray(array)
        arrays[prefix + name] = array.view(np.uint8) if array.dtype == np.bool_ else array
    return {name: _flatten(one, f"{prefix}{name}.", arrays) for name, one in value.record.items()}
