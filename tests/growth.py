"""How time grows with the size of an input."""

import time


def growth(function, small, large, repeats=5):
    """Return how many times longer a function takes on the large input than on the small one.

    The shortest of several runs counts, which other work on the machine lengthens least.
    """

    def seconds(value):
        started = time.perf_counter()
        function(value)
        return time.perf_counter() - started

    fastest = [min(seconds(value) for _ in range(repeats)) for value in (small, large)]
    return fastest[1] / fastest[0]
