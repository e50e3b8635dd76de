"""What a model file holds of an object, and the checks of what it says.

An object that is saved has a method `state()`, which returns a `State`, and a class method
`from_state(state, ...)`, its inverse, which checks everything before anything is built: a file
may be damaged, or hostile. Nothing else describes what a file holds of it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, final

import numpy as np
import numpy.typing as npt

from fewlier.errors import FormatError

Json: TypeAlias = dict[str, Any]
Arrays: TypeAlias = Mapping[str, npt.NDArray[Any]]


@final
@dataclass(frozen=True)
class State:
    """What a file holds of one object: JSON values, arrays by name, and the states of its parts."""

    record: Json
    arrays: Arrays = field(default_factory=dict)
    parts: Mapping[str, "State"] = field(default_factory=dict)

    def values(self, what: str, names: Iterable[str]) -> list[Any]:
        """Return the values of a record that must have exactly these names, in this order."""
        return fields_of(self.record, what, names)

    def array(self, name: str, dtype: npt.DTypeLike, shape: tuple[int | None, ...]) -> Any:  # noqa: ANN401 - of any type
        """Return an array that must have this type and shape; None stands for any length."""
        found = self.arrays.get(name)
        if found is None:
            raise FormatError(f"array {name!r} is missing.")
        is_shape = len(found.shape) == len(shape)
        is_shape = is_shape and all(
            n is None or n == m for n, m in zip(shape, found.shape, strict=True)
        )
        require(
            found.dtype == np.dtype(dtype) and is_shape,
            f"array {name!r} is {found.dtype} {found.shape}, not {np.dtype(dtype)} {shape}.",
        )
        require(bool(np.isfinite(found).all()), f"array {name!r} holds NaN or infinity.")
        return found


def require(is_right: bool, otherwise: str) -> None:
    """Raise a `FormatError` that says what is wrong."""
    if not is_right:
        raise FormatError(otherwise)


def fields_of(record: object, what: str, names: Iterable[str]) -> list[Any]:
    """Return the values of a JSON object that must have exactly the fields `names`, in order."""
    names = list(names)
    if not isinstance(record, dict) or set(record) != set(names):
        found = sorted(map(str, record)) if isinstance(record, dict) else type(record).__name__
        raise FormatError(f"{what} must be a record of {names}; got {found}.")
    return [record[name] for name in names]


def is_finite_float(value: object) -> bool:
    """Whether a JSON value is a float, which is never written without a point, and finite."""
    return isinstance(value, float) and math.isfinite(value)


def is_positive(value: object) -> bool:
    """Whether a JSON value is a finite float above zero."""
    return is_finite_float(value) and value > 0  # type: ignore[operator] # it is a float


def is_count(value: object, least: int = 0, most: int = 2**31 - 1) -> bool:
    """Whether a JSON value is an integer within bounds."""
    return type(value) is int and least <= value <= most
