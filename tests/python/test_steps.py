"""What a training program reports of its steps: StepReporter, and the callback in a Trainer that stands in for Hugging Face's.
scripts/transformers-check has the real one."""
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import krigtune
from krigtune import _steps

VARIABLES = ("KRIGTUNE_STEPS_FILE", *_steps._RANKS)


class Callback:
    """What transformers.TrainerCallback has: an event for each of these, which do nothing."""

    def on_nothing(self, args, state, control, **others):
        pass

    on_init_end = on_train_begin = on_step_begin = on_substep_end = on_step_end = on_log = on_evaluate = on_save = on_train_end = on_nothing


sys.modules.setdefault("transformers", types.SimpleNamespace(TrainerCallback=Callback))
from krigtune.transformers import ReportStepsCallback  # noqa: E402


class Arguments:
    world_size, train_batch_size, gradient_accumulation_steps = 4, 2, 3
    hf_deepspeed_config = parallelism_config = None


class State:
    is_world_process_zero, num_input_tokens_seen, train_batch_size = True, 0, None


def train(callback, clock, steps=4, args=Arguments, model=None, seconds=2.0, tokens=0, loss=1.5, rank_zero=True, evaluates=False):
    """The events of the Trainer in their order."""
    state = State()
    state.is_world_process_zero = rank_zero

    def event(name, **others):
        getattr(callback, name)(args, state, object(), model=model, **others)

    event("on_init_end")
    event("on_train_begin")
    for _ in range(steps):
        event("on_step_begin")
        for _ in range(args.gradient_accumulation_steps):
            event("on_substep_end")
        clock.now_s += seconds
        state.num_input_tokens_seen += tokens
        event("on_step_end")
        event("on_log", logs={"loss": loss, "learning_rate": 1e-3})
        event("on_log", logs={"eval_loss": 3.0})
        if evaluates:
            clock.now_s += 100.0
            event("on_evaluate", metrics={})
            clock.now_s += 100.0
            event("on_save")
    event("on_train_end")


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def perf_counter(self):
        return self.now_s


class StepsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "steps.jsonl"
        before = {name: os.environ.pop(name, None) for name in VARIABLES}
        self.addCleanup(lambda: [os.environ.pop(name, None) if value is None else os.environ.update({name: value})
                                 for name, value in before.items()])
        os.environ["KRIGTUNE_STEPS_FILE"] = str(self.file)
        self.clock = Clock()
        self.addCleanup(setattr, _steps, "time", _steps.time)
        _steps.time = self.clock

    def lines(self):
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def steps(self):
        return [line for line in self.lines() if "step_time_s" in line]

    def test_a_step_is_a_line(self):
        train(ReportStepsCallback(), self.clock, steps=2, tokens=96)
        self.assertEqual(self.lines(), [
            {"iteration": 1, "step_time_s": 2.0, "samples": 24, "tokens": 96.0}, {"iteration": 1, "loss": "1.5"},
            {"iteration": 2, "step_time_s": 2.0, "samples": 24, "tokens": 96.0}, {"iteration": 2, "loss": "1.5"}])

    def test_outside_of_a_trial_it_does_nothing(self):
        del os.environ["KRIGTUNE_STEPS_FILE"]
        _steps.time = None  # not even the time is taken
        train(ReportStepsCallback(), self.clock)
        self.assertFalse(krigtune.StepReporter().active)
        self.assertFalse(self.file.exists())

    def test_only_rank_0_reports(self):
        for variable in _steps._RANKS:
            os.environ[variable] = "1"
            train(ReportStepsCallback(), self.clock)
            self.assertFalse(self.file.exists(), variable)
            del os.environ[variable]
        train(ReportStepsCallback(), self.clock, rank_zero=False)
        self.assertFalse(self.file.exists())
        os.environ["RANK"] = "0"
        os.environ["SLURM_PROCID"] = "3"  # of the launcher on its node
        train(ReportStepsCallback(), self.clock)
        self.assertEqual(len(self.steps()), 4)

    def test_evaluation_and_saving_are_no_part_of_a_step(self):
        train(ReportStepsCallback(), self.clock, evaluates=True)
        self.assertEqual([step["step_time_s"] for step in self.steps()], [2.0] * 4)

    def test_tokens_that_the_trainer_does_not_count(self):
        train(ReportStepsCallback(), self.clock, steps=1)
        self.assertNotIn("tokens", self.steps()[0])
        train(ReportStepsCallback(tokens_per_sample=100), self.clock, steps=1)
        self.assertEqual(self.steps()[1]["tokens"], 2400)

    def test_ranks_that_share_samples(self):
        class Sharing(Arguments):
            world_size = 16
            parallelism_config = types.SimpleNamespace(tp_size=2, cp_size=2, sp_size=1)

        train(ReportStepsCallback(), self.clock, steps=1, args=Sharing, tokens=1600)  # as 16 ranks count them
        self.assertEqual((self.steps()[0]["samples"], self.steps()[0]["tokens"]), (24, 400))
        train(ReportStepsCallback(), self.clock, steps=1, model=types.SimpleNamespace(_tp_size=4))
        self.assertEqual(self.steps()[1]["samples"], 6)

    def test_a_loss_that_is_not_a_number_is_reported_in_valid_json(self):
        train(ReportStepsCallback(), self.clock, steps=1, loss=float("nan"))
        self.assertEqual(json.loads(self.file.read_text().splitlines()[1], parse_constant=self.fail)["loss"], "nan")

    def test_the_gpu_has_finished_when_the_time_is_taken(self):
        done = []
        cuda = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, max_memory_reserved=lambda: 5 << 30,
                                     synchronize=lambda: done.append(self.clock.now_s))
        sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
        self.addCleanup(sys.modules.pop, "torch")
        train(ReportStepsCallback(), self.clock, steps=2)
        self.assertEqual(done, [1000.0, 1002.0, 1004.0])
        self.assertEqual([step["peak_memory_bytes"] for step in self.steps()], [5 << 30] * 2)

    def test_a_loop_of_ones_own(self):
        reporter = krigtune.StepReporter()
        self.assertTrue(reporter.active)
        for _ in range(3):  # where the first step begins is not known
            self.clock.now_s += 4.0
            reporter.step(samples=8)
        reporter.close()
        self.assertEqual(self.lines(), [{"iteration": 2, "step_time_s": 4.0, "samples": 8}, {"iteration": 3, "step_time_s": 4.0, "samples": 8}])


# A training program: 0.05 s a step and 0.01 s a sample, slower steps at first; the batch of 8 runs out of memory.
PROGRAM = """
import argparse, sys, time
import krigtune
parser = argparse.ArgumentParser()
parser.add_argument("--mbs", type=int, default=1)
mbs = parser.parse_args().mbs
reporter = krigtune.StepReporter()
reporter.begin()
for step in range(200):
    if mbs == 8:
        sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    time.sleep(0.2 if step < 3 else 0.02)
    reporter.step(samples=mbs, tokens=64 * mbs)
"""


class TuneTest(unittest.TestCase):
    def tune(self, *words, program=PROGRAM):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "train.py").write_text(program)
        return subprocess.run([krigtune.program(), "tune", "--vary", "micro_batch=--mbs:1,2,4,8", *words, "--out", "run", "--", sys.executable,
                               "train.py", "--mbs", "1"], cwd=self.folder, capture_output=True, text=True)

    def rows(self):
        with open(self.folder / "run" / "trials.csv", newline="") as file:
            return {int(row["micro_batch"]): row for row in csv.DictReader(file)}

    def test_a_program_that_reports_is_tuned_without_a_regular_expression(self):
        for metric in ("tokens_per_second", "latency"):
            with self.subTest(metric):
                done = self.tune("--metric", metric, "--warmup-steps", "4", "--measure-steps", "6")
                self.assertEqual(done.returncode, 0, done.stderr)
                rows = self.rows()
                self.assertEqual(rows[8]["status"], "oom")
                best = json.loads((self.folder / "run" / "best.json").read_text())
                self.assertEqual(best["objective"]["metric"], metric)
                if metric != "latency":
                    self.assertEqual(best["configuration"]["micro_batch"], 4)
                for micro, row in rows.items():
                    if row["status"] == "ok":
                        step_s = float(row["metric_step_time_s"])
                        self.assertGreater(step_s, 0.019)  # it sleeps so long
                        self.assertAlmostEqual(float(row["metric_samples_per_s"]) * step_s / micro, 1.0, delta=0.2)
                        lines = next((self.folder / "run" / "trials").glob(f"{int(row['trial']):04d}*/steps.jsonl")).read_text().splitlines()
                        self.assertLess(len(lines), 200, "it was ended when enough was measured")

    def test_a_program_that_reports_nothing_is_told_how(self):
        done = self.tune("--metric", "throughput", program="print('trained')")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout + done.stderr, "the program reported no step")

    def test_what_does_not_fit_together_is_refused(self):
        self.assertRegex(self.tune("--metric", "throughput", "--final").stderr, "--final cannot be combined with --metric throughput")
        done = self.tune("--metric", "throughput", "--minimize")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
