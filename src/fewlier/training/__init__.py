"""From rows and labels to trained members.

Read in this order: objective, settings, unlabelled, folds, batches, adam, stack, plan, history.
"""
