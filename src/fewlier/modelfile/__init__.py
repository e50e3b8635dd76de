"""A fitted detector as one safe file.

Read in this order: state, container, inspection, probes, file.
"""
