"""How long a fit takes, from its second epoch."""

import numpy as np
import pytest
from factories import FEATURES, payments, small

from fewlier import pace, training
from fewlier.pace import duration, seconds_to_fit

ROWS = payments(60)
X, Y = ROWS[FEATURES], ROWS["fraud"]


@pytest.mark.parametrize("max_epochs", [3, 30])
def test_a_fit_is_measured_by_its_second_epoch(max_epochs, monkeypatch):
    now, epochs, judge = [0.0], [], training._Stack._judge

    def slowly(self):
        epochs.append(now[0])
        now[0] += 50.0 if len(epochs) == 1 else 3.0
        return judge(self)

    monkeypatch.setattr(pace.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(training._Stack, "_judge", slowly)
    detector = small(max_epochs=max_epochs)
    assert seconds_to_fit(detector, X, Y) == 3.0 * max_epochs
    assert len(epochs) == 2
    assert not hasattr(detector, "model_")


def test_a_measured_fit_gives_the_same_detector():
    detector = small(max_epochs=3)
    seconds_to_fit(detector, X, Y)
    expected = small(max_epochs=3).fit(X, Y).anomaly_score(X)
    np.testing.assert_array_equal(detector.fit(X, Y).anomaly_score(X), expected)


@pytest.mark.parametrize("max_epochs", [1, 2])
def test_a_short_fit_is_measured_whole(max_epochs):
    detector = small(max_epochs=max_epochs)
    assert seconds_to_fit(detector, X, Y) >= detector.summary_.seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (59.6, "60 s"),
        (99.4, "99 s"),
        (100, "2 min"),
        (5900, "98 min"),
        (6300, "1.8 h"),
    ],
)
def test_a_duration_is_written_as_people_do(seconds, text):
    assert duration(seconds) == text
