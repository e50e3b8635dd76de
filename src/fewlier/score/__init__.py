"""The score of a row: its parts, and the model that adds them up.

Read in this order: part, selection, passes, ensemble, coordinates, space, nearest, left_out,
view, neighbours, bagged, nodes, steps, supervised, trees, ranges, odd_cells, scorer, model,
held_out.
"""
