"""The space in Python's terms becomes that of a session."""
import math
import pathlib
import unittest

import krigtune
from krigtune._space import is_session, session_json


class NumPyScalar:
    """What NumPy's scalars have in common."""

    ndim = 0

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class SpaceTest(unittest.TestCase):
    def test_ranges_and_lists(self):
        space = {"lr": krigtune.log(1e-5, 1e-2), "dropout": krigtune.real(0, 0.5, steps=6), "layers": krigtune.integer(1, 12),
                 "batch": krigtune.integer(8, 64, scale="log2", when="layers > 2"), "optimizer": ("adam", "sgd"),
                 "bias": [True, False], "width": range(1, 4), "raw": {"min": 1, "max": 3}}
        self.assertEqual(session_json(space)["space"], {
            "lr": {"type": "real", "min": 1e-5, "max": 1e-2, "scale": "log"},
            "dropout": {"type": "real", "min": 0, "max": 0.5, "steps": 6},
            "layers": {"min": 1, "max": 12},
            "batch": {"min": 8, "max": 64, "scale": "log2", "when": "layers > 2"},
            "optimizer": ["adam", "sgd"], "bias": [True, False], "width": [1, 2, 3], "raw": {"min": 1, "max": 3}})

    def test_objective_baseline_and_constraints(self):
        json = session_json({"a": [1, 2]}, direction="maximize", metric="score", baseline={"a": NumPyScalar(2)},
                            constraints=["a < 3"])
        self.assertEqual(json["objective"], {"metric": "score", "direction": "maximize"})
        self.assertEqual(json["baseline"], {"a": 2})
        self.assertEqual(json["constraints"], ["a < 3"])
        self.assertIsNone(session_json({"a": [1, 2]})["baseline"])

    def test_numpy_scalars_become_numbers(self):
        self.assertEqual(session_json({"a": [NumPyScalar(1), NumPyScalar(2.5)]})["space"]["a"], [1, 2.5])

    def test_other_values_are_refused(self):
        for values in ("adam", 3, None, b"ab"):
            with self.assertRaisesRegex(krigtune.InputError, "the parameter 'a' has the values .*; write a list"):
                session_json({"a": values})
        with self.assertRaisesRegex(krigtune.InputError, "use names"):
            session_json({"a": [object()]})
        with self.assertRaisesRegex(krigtune.InputError, "a set, whose values have no order; write a list"):
            session_json({"a": {"adam", "sgd"}})
        for values in ([1.0, math.nan], krigtune.real(0, math.inf), krigtune.log(math.nan, 1)):
            with self.assertRaisesRegex(krigtune.InputError, "is not a finite number"):
                session_json({"a": values})
        for space in ([1, 2], 3, None):
            with self.assertRaisesRegex(krigtune.InputError, "is neither a space nor a session"):
                session_json(space)

    def test_a_text_is_one_constraint(self):
        self.assertEqual(session_json({"a": [1, 2]}, constraints="a < 2")["constraints"], ["a < 2"])

    def test_a_session_is_not_a_space(self):
        session = {"space": {"a": krigtune.integer(1, 3)}, "objective": {"metric": "x", "direction": "minimize"}}
        self.assertTrue(is_session(session))
        self.assertTrue(is_session(pathlib.Path("session.json")))
        self.assertFalse(is_session({"space": [1, 2]}), "a parameter may have that name")
        self.assertFalse(is_session({"space": {"min": 1, "max": 2}}))
        self.assertEqual(session_json(session)["space"], {"a": {"min": 1, "max": 3}})
        self.assertEqual(session_json("session.json"), str(pathlib.Path("session.json").absolute()))
        with self.assertRaisesRegex(krigtune.InputError, "a session has its own objective"):
            session_json(session, direction="maximize")


if __name__ == "__main__":
    unittest.main()
