"""The test problems of problems.cpp for peers written in Python; all are minimised.

A point is its ordered columns as numbers in [0, 1] and its categories as indices. Both languages must give the values
of expected_values.csv.
"""
import csv
import math
import pathlib
from dataclasses import dataclass
from typing import Callable, Optional, Sequence


@dataclass
class Outcome:
    value: Optional[float]  # None: the evaluation failed
    constraints: Sequence[float] = ()  # feasible if all are <= 0


@dataclass
class Problem:
    name: str
    levels: Sequence[int]  # for each ordered column: k / (levels - 1); 0: continuous
    categories: Sequence[int]
    evaluations: int
    optimum: float
    evaluate: Callable[[Sequence[float], Sequence[int]], Outcome]


def branin(u, _):
    x, y = -5 + 15 * u[0], 15 * u[1]
    bowl = y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6
    return Outcome(bowl * bowl + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10)


ALPHA = (1.0, 1.2, 3.0, 3.2)
A6 = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
P6 = ((1312, 1696, 5569, 124, 8283, 5886), (2329, 4135, 8307, 3736, 1004, 9991),
      (2348, 1451, 3522, 2883, 3047, 6650), (4047, 8828, 8732, 5743, 1091, 381))
A3 = ((3, 10, 30), (0.1, 10, 35), (3, 10, 30), (0.1, 10, 35))
P3 = ((3689, 1170, 2673), (4699, 4387, 7470), (1091, 8732, 5547), (381, 5743, 8828))


def hartmann(u, a, p):
    rows = zip(ALPHA, a, p)
    return -sum(s * math.exp(-sum(ai * (ui - 1e-4 * pi)**2 for ai, pi, ui in zip(ar, pr, u))) for s, ar, pr in rows)


def hartmann6(u, _):
    return Outcome(hartmann(u, A6, P6))


def hartmann3_failing(u, _):
    return Outcome(None if u[0] + u[1] > 1.2 else hartmann(u, A3, P3))


def ackley4(u, _):
    x = [-5 + 10 * ui - shift for ui, shift in zip(u, (0.6, -1.4, 2.2, 0.4))]
    root = math.sqrt(sum(xi * xi for xi in x) / 4)
    waves = sum(math.cos(2 * math.pi * xi) for xi in x) / 4
    return Outcome(-20 * math.exp(-0.2 * root) - math.exp(waves) + 20 + math.e)


def mixed_bowls(u, c):
    x, y, g = u[0], u[1], u[2]
    offset = (0.3, 0.15, 0.0, 0.5)[c[0]]
    at_x = (0.2, 0.8, 0.35, 0.6)[c[0]]
    at_y = (0.7, 0.3, 0.55, 0.9)[c[0]]
    at_g = (2, 6, 5, 1)[c[0]] / 7
    valley = y - at_y - 0.4 * (g - at_g)
    ripple = 0.3 * (1 - math.cos(4 * math.pi * (x - at_x)))
    return Outcome(offset + 4 * (x - at_x)**2 + 3 * valley * valley + 2 * (g - at_g)**2 + ripple)


def mixed_ackley(u, c):
    x = [-5 + 10 * u[0] - 0.6, -5 + 10 * u[1] + 1.4, round(-5 + 10 * u[2]) - 2, (2, 0, 3, 1)[c[0]], (1, 3, 2, 0)[c[1]]]
    root = math.sqrt(sum(xi * xi for xi in x) / 5)
    waves = sum(math.cos(2 * math.pi * xi) for xi in x) / 5
    return Outcome(-20 * math.exp(-0.2 * root) - math.exp(waves) + 20 + math.e)


def gramacy(u, _):
    x, y = u
    wavy = 1.5 - x - 2 * y - 0.5 * math.sin(2 * math.pi * (x * x - 2 * y))
    return Outcome(x + y, (wavy, x * x + y * y - 1.5))


PROBLEMS = [
    Problem("branin", (0, 0), (), 25, 0.39788735772973816, branin),
    Problem("hartmann6", (0,) * 6, (), 60, -3.3223680114155147, hartmann6),
    Problem("ackley4", (0,) * 4, (), 50, 0.0, ackley4),
    Problem("mixed_bowls", (0, 0, 8), (4,), 40, 0.0, mixed_bowls),
    Problem("mixed_ackley", (0, 0, 11), (4, 4), 50, 0.0, mixed_ackley),
    Problem("gramacy", (0, 0), (), 40, 0.5997880520100676, gramacy),
    Problem("hartmann3_failing", (0, 0, 0), (), 40, -3.8627797873326624, hartmann3_failing),
]

# Problems that neither fail nor have constraints.
PLAIN = ["branin", "hartmann6", "ackley4", "mixed_bowls", "mixed_ackley"]
# Columns of the rows that every search writes, as in sanity.cpp.
HEADER = ["problem", "strategy", "seed", "evaluation", "best_regret"]


def check_expected_values():
    """Raises AssertionError if a problem of this file differs from expected_values.csv."""
    problems = {problem.name: problem for problem in PROBLEMS}
    with (pathlib.Path(__file__).parent / "expected_values.csv").open() as file:
        for row in csv.DictReader(file):
            u = [float(x) for x in row["ordered"].split()]
            outcome = problems[row["problem"]].evaluate(u, [int(c) for c in row["categories"].split()])
            expected = None if row["value"] == "failed" else float(row["value"])
            numbers = [float(c) for c in row["constraints"].split()]
            assert (outcome.value is None) == (expected is None), row
            if expected is None:
                continue
            assert len(numbers) == len(outcome.constraints), row
            for got, want in zip([outcome.value, *outcome.constraints], [expected, *numbers]):
                assert abs(got - want) <= 1e-12 * (1 + abs(want)), (row, got)
