"""The paper's 16 tables, ADGym's 28, and which rows train and test. Nothing here needs torch.

Read in this order: arff, catalogue, splits, few_labels, discovery, download, store, adgym.
"""

from fewlier_bench.data.catalogue import Entry, Variant, list_datasets
from fewlier_bench.data.splits import (
    PAPER,
    THREE_VALIDATION_ANOMALIES,
    PaperSplit,
    Protocol,
    make_paper_split,
    scale_columns,
)
from fewlier_bench.data.store import Dataset, get_datasets, hash_table, load_dataset

__all__ = [
    "PAPER",
    "THREE_VALIDATION_ANOMALIES",
    "Dataset",
    "Entry",
    "PaperSplit",
    "Protocol",
    "Variant",
    "get_datasets",
    "hash_table",
    "list_datasets",
    "load_dataset",
    "make_paper_split",
    "scale_columns",
]
