"""The score of a row: its parts, and the model that adds them up.

Read in this order: part, shares, member, ensemble, neighbours, learned, ranges, odd_cells,
scorer, model, held_out.
"""
