"""What a program needs of its machine: signals, threads, memory, progress, text on a screen.

Read in this order: escape, markup, memory, progress, signals, threads.
"""
