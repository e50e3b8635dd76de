"""How far a row is from normal rows, compared with labelled anomalies.

Read in this order: coordinates, nearest, space, left_out, view, part.
"""
