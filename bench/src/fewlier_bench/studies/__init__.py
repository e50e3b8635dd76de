"""Studies of one question each: speed, memory, accuracy under some condition.

Read `grid` first, which they share. Then each is a command of its own, listed in `cli/studies.py`;
`browser` and `made_up` help some of them.
"""
