"""A model behind HTTP: rows in, scores and reasons out.

Read in this order: limits, cells, arrow, answers, responses, counts, shelf, queue, guard, lines,
journal, inference, openapi, told, app, worker, server.
"""
