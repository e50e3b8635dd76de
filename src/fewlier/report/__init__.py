"""Pictures of a detector and its scores: plots for Python, and a page about scored rows.

Read in this order: plots, sketches, facts, figures, page.
"""
