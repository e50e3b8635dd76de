"""The score of a row: its parts, and the model that adds them up.

Read in this order: part, selection, ensemble, coordinates, space, nearest, left_out, view,
neighbours, bagged, nodes, steps, supervised, trees, ranges, model, held_out.
"""
