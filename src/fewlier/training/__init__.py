"""From rows and labels to trained members.

Read in this order: objective, unlabelled, batches, adam, stack, folds, roles, kept_rows, history.
"""
