#!/usr/bin/env python3
"""Coefficients of normal_tails.h (needs mpmath): prints the two arrays and the largest relative errors.

g(t) = (1 + t)^2 (1 - t R(t)) and r(t) = (1 + t) R(t), with Mills' ratio R = Phi(-t) / phi(t), are smooth on [0, inf]
and between 1 and 1.5 there. Each is interpolated at the Chebyshev nodes of w = (t - K) / (t + K), which takes [0, inf]
to [-1, 1], and written in powers of w: their coefficients add up to less than 3, so nothing is lost by that. K = 5 needs
the fewest terms, as trying K from 1.5 to 6 shows.
"""
from mpmath import chop, cos, erfc, exp, mp, mpf, pi, sqrt, taylor, chebyt

CENTRE = mpf(5)
NODES = 60


def mills(t):
    return sqrt(pi / 2) * exp(t * t / 2) * erfc(t / sqrt(mpf(2)))


def g(t):
    # 1 - t R is about 1 / t^2, and R has a relative error: of 150 digits, 50 remain at the largest t here, 1e4.
    return (1 + t) ** 2 * (1 - t * mills(t))


def r(t):
    return (1 + t) * mills(t)

def coefficients(f, degree):
    nodes = [cos(pi * (j + mpf(1) / 2) / NODES) for j in range(NODES)]
    values = [f(CENTRE * (1 + w) / (1 - w)) for w in nodes]
    powers = [mpf(0)] * (degree + 1)
    for k in range(degree + 1):
        projection = sum(v * cos(pi * k * (j + mpf(1) / 2) / NODES) for j, v in enumerate(values))
        term = projection * (1 if k == 0 else 2) / NODES
        for i, c in enumerate(taylor(lambda w: chebyt(k, w), 0, k)):
            powers[i] += term * chop(c, tol=mpf(10) ** -40)
    return [float(c) for c in powers]


def largest_error(f, powers):
    worst = 0.0
    for i in range(2000):
        t = 10.0 ** (-3 + 7 * i / 2000)
        w = (t - 5.0) / (t + 5.0)
        value = 0.0
        for c in reversed(powers):
            value = value * w + c
        worst = max(worst, abs(float(mpf(value) / f(mpf(t)) - 1)))
    return worst


def main():
    mp.dps = 150
    for name, f, degree in (("kImprovement", g, 24), ("kMills", r, 22)):
        powers = coefficients(f, degree)
        print(f"// {name}: relative error {largest_error(f, powers):.1e}")
        print(f"inline constexpr std::array<double, {degree + 1}> {name}{{")
        print(",\n".join(f"    {c:.17g}" for c in powers) + "};")


if __name__ == "__main__":
    main()
