"""Tables in files and folders: read in batches, sampled, and written whole or not at all.

Read in this order: atomic, reading, text, parquet, folder, streams, reservoir, sampling, writing.
"""
