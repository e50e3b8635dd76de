"""Objects as a model file holds them, and back."""

import json

from fewlier.modelfile.state import State


def record_of(one):
    """Return what a file holds of an object that has no arrays."""
    return json.loads(json.dumps(one.state().flat()[0], allow_nan=False))


def read(cls, record, *more):
    """Read an object from a record, as a file does: all of it."""
    state = State({"one": record})
    found = cls.from_state(state.part("one"), *more)
    state.check_all_read()
    return found


def reread(one, *more):
    """Return an object as it comes back from a file."""
    record, arrays = State({"one": one.state()}).flat()
    state = State(json.loads(json.dumps(record, allow_nan=False)), arrays)
    found = type(one).from_state(state.part("one"), *more)
    state.check_all_read()
    return found
