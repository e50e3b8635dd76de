"""What several test files build."""

from fewlier import AnomalyDetector


def small(**changes):
    """Return a detector that fits a few hundred rows in a second."""
    settings = {
        "hidden": (16,),
        "lambdas": (0, 10),
        "n_orderings": 2,
        "n_masks": 2,
        "max_epochs": 10,
        "learning_rate": 0.003,
        "false_alarm_rate": 0.2,
        "random_state": 0,
    }
    return AnomalyDetector(**settings | changes)
