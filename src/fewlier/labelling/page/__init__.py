"""The page that asks.

Read in this order: api, guard, app.
"""
