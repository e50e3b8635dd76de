"""From rows and labels to trained members.

Read in this order: objective, unlabelled, folds, batches, adam, stack, roles, history.
"""
