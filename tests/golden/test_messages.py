"""Other tests ask for classes, fields and facts; how messages are worded is judged here alone."""

import pytest
from golden.messages import FILE, observe


@pytest.mark.slow
def test_messages_are_worded_as_they_were():
    advice = "python tests/golden/messages.py --write, and read what changed"
    assert observe() == FILE.read_text("utf-8"), advice
