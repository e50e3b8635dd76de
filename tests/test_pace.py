"""How long a fit takes, from its second epoch."""

import pytest
from factories import FEATURES, payments, small

from fewlier import pace
from fewlier.pace import Pace, duration
from fewlier.training import stack

ROWS = payments(60)


@pytest.mark.parametrize(
    ("max_epochs", "told"), [(1, []), (2, []), (3, [9.0]), (6, [18.0])], ids=str
)
def test_a_fit_is_measured_once_by_its_second_epoch(max_epochs, told, monkeypatch):
    now, n_epochs, judge = [0.0], [0], stack._Stack._judge

    def slowly(self):
        now[0] += 3.0 if n_epochs[0] else 50.0
        n_epochs[0] += 1
        return judge(self)

    monkeypatch.setattr(pace.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(stack._Stack, "_judge", slowly)
    found = []
    detector = small(max_epochs=max_epochs, patience=None)
    detector.fit(ROWS[FEATURES], ROWS["fraud"], on_epoch=Pace(found.append))
    assert found == told


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
