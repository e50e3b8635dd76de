"""Where the labels come from: a session that asks about one row at a time.

Read in this order: answers, session_table, background, asking, question, learner, session, page,
widget.
"""
