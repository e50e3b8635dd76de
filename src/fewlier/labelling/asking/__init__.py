"""Which row is worth asking about, and how many anomalies are left.

Read in this order: forest, remaining, worth, pool, insight, choice.
"""
