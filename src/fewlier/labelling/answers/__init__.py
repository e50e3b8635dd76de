"""Answers, kept in a file before anything else happens.

Read in this order: answer, identity, journal, labels, ledger, merge.
"""
