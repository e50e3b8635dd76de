"""Which row to ask about, and how many anomalies are left.

Read in this order: forest, remaining, kernel, pool, choice.
"""
