"""Where the labels come from: a session that asks about one row at a time.

Read in this order: answers, usual, subject, background, fits, asking, question, session, page,
widget.
"""
