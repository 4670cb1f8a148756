"""The core's random numbers, in Python integers."""

WORD = (1 << 64) - 1
GAMMA = 0x9E3779B97F4A7C15


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def derive(seed, key):
    return mix(seed ^ mix((key + GAMMA) & WORD))


class Rng:
    def __init__(self, seed):
        self.state = seed

    def ahead(self, n):
        return Rng((self.state + n * GAMMA) & WORD)

    def next(self):
        self.state = (self.state + GAMMA) & WORD
        return mix(self.state)

    def uniform(self):
        return (self.next() >> 11) * 2.0**-53

    def below(self, n):
        return ((self.next() >> 32) * n) >> 32
