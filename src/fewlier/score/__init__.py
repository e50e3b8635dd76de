"""The score of a row: its parts, and the model that adds them up.

Read in this order: limits, selection, space, nearest, neighbours, trees, model.
"""
