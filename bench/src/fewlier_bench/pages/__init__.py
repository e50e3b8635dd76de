"""From result rows to pages: statistics, printed tables, notes, generated parts of a document.

Read in this order: statistics, printed, rendering, footnotes, blocks, drawing.
"""
