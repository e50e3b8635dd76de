"""Names and extent of the paper's experiments: which there are, and what each consists of."""

from typing import Final, NamedTuple

from fewlier_bench.reproduction.protocol import PAPER_PROTOCOL

# Experiments, each a file of results. LAMBDAS holds single lambdas, and is filled with PAPER.
PAPER = "paper"
LAMBDAS = "lambdas"
THREE_VALIDATION = "three_validation_anomalies"
DEDUPLICATED = "deduplicated"
TIMES = "times"
EXPERIMENTS = (PAPER, LAMBDAS, THREE_VALIDATION, DEDUPLICATED, TIMES)

# The paper's ten methods in its order, and one that is not the paper's: the default detector.
UNSUPERVISED = ("LOF", "OCSVM", "IF", "VAE", "MADE")
SUPERVISED = ("KNN", "SVM", "RF", "NN", "Proposed")
METHODS = (*UNSUPERVISED, *SUPERVISED)
EXTRA: Final = "fewlier"

# Methods that are trained together, and that the variants of the experiments are about.
RANKING = ("MADE", "Proposed")

KS = PAPER_PROTOCOL.splits.n_labelled


class Design(NamedTuple):
    """What an experiment consists of: its methods, numbers of labelled anomalies, and splits."""

    methods: tuple[str, ...]
    anomalies: tuple[int, ...]
    n_splits: int = PAPER_PROTOCOL.splits.n_splits


DESIGNS = {
    PAPER: Design((*METHODS, EXTRA), KS),
    THREE_VALIDATION: Design(RANKING, (1, 5)),  # with three that train nothing would change
    DEDUPLICATED: Design(RANKING, (3,)),
    TIMES: Design(("Proposed",), (3,), 1),
}


def lambda_name(lam: float) -> str:
    """Return what a single lambda is called among the methods.

    >>> lambda_name(1e4)
    'lambda=10000'
    """
    return f"lambda={lam:g}"
