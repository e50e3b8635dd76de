"""Why a row scored as it did, column by column.

Read in this order: reason, expectation, explanation.
"""
