"""What answers say, as labels."""

from collections import Counter

import numpy as np

from fewlier.labelling.answers import Stack
from fewlier.table.labels import ANOMALY, NORMAL, Labels


def with_answers(before: Labels, answers: Stack) -> Labels:
    """Return labels with answers in their place; a skipped row keeps what it had."""
    codes = before.codes.copy()
    kinds = {row: before.kind(row) for row in np.flatnonzero(codes == ANOMALY).tolist()}
    for answer in answers:
        if answer.label is not None:
            codes[answer.row] = ANOMALY if answer.label else NORMAL
            kinds[answer.row] = answer.kind
    counts = Counter(kind for kind in kinds.values() if kind is not None)
    names = tuple(kind for kind, _ in counts.most_common())
    if not names:
        return Labels(codes)
    kind_of = np.full(len(codes), -1)
    for row, kind in kinds.items():
        if kind is not None and codes[row] == ANOMALY:
            kind_of[row] = names.index(kind)
    return Labels(codes, names, kind_of)
