"""A model behind HTTP: rows in, scores and reasons out.

Read in this order: limits, rows, arrow, metrics, model, log, answers, app, server.
"""
