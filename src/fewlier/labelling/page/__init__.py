"""The page that asks.

Read in this order: desk, guard, app.
"""
