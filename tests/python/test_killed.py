"""Programs that tune are killed with -9 at random moments; what they told is never lost. The seed is fixed."""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import krigtune

KILLS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 8
SPACE = {"x": krigtune.integer(0, 40), "y": krigtune.real(0.0, 1.0)}

# Writes a line as soon as tell() has returned.
PROGRAM = """
import sys, krigtune
from test_killed import SPACE
with krigtune.Study(SPACE, sys.argv[1]) as study:
    while True:
        trial = study.ask()
        value = 1 + (trial["x"] - 20) ** 2 + trial["y"]
        study.tell(trial, value)
        print(trial.number, repr(value), flush=True)
"""


def wait_for_programs_of(mark):
    """Waits for krigtune to end, which answers its last request and sees the end of its input after its program is dead."""
    def runs(process):
        try:
            return mark.encode() in (process / "environ").read_bytes()
        except OSError:
            return False

    while any(runs(process) for process in pathlib.Path("/proc").glob("[0-9]*")):
        time.sleep(0.01)


class KilledTest(unittest.TestCase):
    def test_nothing_that_was_told_is_lost(self):
        chance = random.Random(5)
        told = {}
        with tempfile.TemporaryDirectory() as folder:
            directory = pathlib.Path(folder) / "run"
            for _ in range(KILLS):
                process = subprocess.Popen([sys.executable, "-c", PROGRAM, directory], stdout=subprocess.PIPE, text=True,
                                           cwd=pathlib.Path(__file__).parent, env={**os.environ, "KRIGTUNE_TEST_RUN": folder})
                for _ in range(chance.randrange(1, 12)):  # it runs at least so far
                    number, value = process.stdout.readline().split()
                    told[int(number)] = float(value)
                time.sleep(chance.random() * 0.05)  # any moment after that
                process.send_signal(signal.SIGKILL)
                for line in process.communicate()[0].splitlines():
                    number, value = line.split()
                    told[int(number)] = float(value)
                wait_for_programs_of(f"KRIGTUNE_TEST_RUN={folder}")
                with krigtune.Study(directory=directory) as study:
                    trials = {one["trial"]: one for one in study.trials}
                for number, value in told.items():
                    self.assertEqual(trials[number]["status"], "ok", number)
                    self.assertAlmostEqual(trials[number]["value"], value, places=12)
            self.assertGreaterEqual(len(told), KILLS)
            with krigtune.minimize(lambda c: 1 + (c["x"] - 20) ** 2 + c["y"], SPACE, trials=len(trials) + 2,
                                   directory=directory) as study:
                self.assertTrue(all(one["status"] == "ok" for one in study.trials), "the ones without a result were run")


if __name__ == "__main__":
    unittest.main()
