"""From result rows to pages: statistics, footnotes, generated parts of a document.

Read in this order: blocks, statistics, footnotes.
"""
