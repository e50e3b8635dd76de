"""The score of a row: its parts, and the model that adds them up.

Read in this order: part, selection, ensemble, space, nearest, neighbours, nodes, trees, model,
held_out.
"""
