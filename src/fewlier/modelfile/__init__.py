"""A fitted detector as one safe file.

Read in this order: container, inspection, probes, file.
"""
