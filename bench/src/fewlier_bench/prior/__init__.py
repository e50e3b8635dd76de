"""A network that learns from many tables how anomalies differ from normal rows.

It is given rows of a table, some of them labelled, and scores other rows of the same table without
being trained on it. Read in this order: cells, distances, network, tables, made_up, anomalies,
tasks, weigh, train.
"""
