"""Where the labels come from: a session that asks about one row at a time.

Read in this order: answers, identity, journal, merge, ledger, told, usual, subject, background,
fits, forest, worth, pool, insight, choice, remaining, question, session, labelled, desk, guard,
page.
"""
