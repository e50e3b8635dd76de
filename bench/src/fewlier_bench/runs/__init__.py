"""Jobs that measure methods, on several processes, and the rows they leave in CSV files.

Read in this order: results, jobs, execution, on_ray, measuring, stacks.
"""
