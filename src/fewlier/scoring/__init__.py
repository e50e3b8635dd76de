"""Rows with their scores, from batches, files and folders.

Read in this order: scored, batches, files, folders.
"""
