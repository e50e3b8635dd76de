"""Studies of one question each: speed, memory, accuracy under some condition.

Read in this order: grid, busy, copies, certainty, dev_tables, discovery, expected_ranges,
kernel_in_memory, label_rounds, label_speed, large_files, other_readings, parts, planted_reasons,
repeated_kind, scale, speed, start, unlabelled_pools.
"""
