"""fewlier on clusters: the engines share out rows, and each worker scores as one machine does.

Read in this order: ray, spark.
"""
