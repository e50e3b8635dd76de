"""A fit: its parameters, the rows given, what the table holds, the model, its summary.

Read in this order: check, fit, recipe, kept_rows, summary, training_rows.
"""
