"""Tables in files and folders: read in batches, sampled, and written whole or not at all.

Read in this order: atomic, text, parquet, reading, folder, streams, tally, reservoir, sampling,
writing.
"""
