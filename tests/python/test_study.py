"""Studies, with the program."""
import contextlib
import csv
import html
import io
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import types
import unittest
import warnings

import krigtune
from krigtune import _study

SPACE = {"x": list(range(10)), "mode": ["plain", "fast"]}


def parabola(configuration):
    return (configuration["x"] - 6) ** 2 + (0.5 if configuration["mode"] == "plain" else 0.0) + 1.0


class StudyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.directory = pathlib.Path(self.folder.name) / "run"
        warnings.simplefilter("error")

    def tearDown(self):
        self.folder.cleanup()

    def study(self, **options):
        study = krigtune.Study(SPACE, self.directory, **options)
        self.addCleanup(study.close)
        return study

    def rows(self):
        with open(self.directory / "trials.csv", newline="") as file:
            return list(csv.DictReader(file))

    def test_minimize_finds_the_best(self):
        with krigtune.minimize(parabola, SPACE, trials=15, seed=3) as study:
            best = study.best
        self.assertEqual(best.configuration, {"x": 6, "mode": "fast"})
        self.assertEqual(best.value, 1.0)
        self.assertLessEqual(best.lower_95, 1.0)

    def test_maximize_finds_the_largest(self):
        with krigtune.maximize(lambda c: -parabola(c), SPACE, trials=15) as study:
            self.assertEqual(study.best.configuration, {"x": 6, "mode": "fast"})
            self.assertEqual(study.direction, "maximize")

    def test_real_and_logarithmic_ranges(self):
        space = {"lr": krigtune.log(1e-5, 1e-1), "momentum": krigtune.real(0.0, 1.0)}
        tried = []

        def loss(configuration):
            tried.append(configuration)
            return 1 + (math.log10(configuration["lr"]) + 3) ** 2 + (configuration["momentum"] - 0.3) ** 2

        with krigtune.minimize(loss, space, trials=20) as study:
            self.assertLess(study.best.value, 1.1)
        self.assertTrue(all(1e-5 <= one["lr"] <= 1e-1 and 0 <= one["momentum"] <= 1 for one in tried))

    def test_ask_and_tell(self):
        study = self.study()
        trial = study.ask()
        self.assertEqual(trial.number, 0)
        self.assertEqual(trial["x"], trial.configuration["x"])
        self.assertIsNone(study.best)
        self.assertEqual(study.tell(trial, 2.5)["status"], "ok")
        self.assertEqual(study.tell(study.ask().number, {"value": 2.0, "loss": 3, "value_sem": 0.1, "peak_memory_bytes": 4096})["value"], 2)
        trials = study.trials
        self.assertEqual([one["status"] for one in trials], ["ok", "ok"])
        self.assertEqual(trials[1]["metrics"]["loss"], 3)
        self.assertEqual(trials[1]["value_sem"], 0.1)
        self.assertEqual(trials[1]["peak_memory_bytes"], 4096)
        with self.assertRaisesRegex(krigtune.InputError, "trial 0 is closed already: ok"):
            study.tell(0, 1.0)
        with self.assertRaisesRegex(krigtune.InputError, "is not a number; return a number"):
            study.tell(study.ask(), "fast")
        with self.assertRaisesRegex(krigtune.InputError, "the result {'loss': 3} has no 'value'; return a number"):
            study.tell(study.ask(), {"loss": 3})
        for wrong in (None, "0", 1.5, True, {"trial": 0}):
            with self.assertRaisesRegex(krigtune.InputError, "is no trial; give what ask"):
                study.tell(wrong, 1.0)

    def test_the_only_number_of_an_array_is_a_result(self):
        class Array:
            def __float__(self):
                raise TypeError("only scalars")

            def item(self):
                return 2.5

        study = self.study()
        self.assertEqual(study.tell(study.ask(), Array())["value"], 2.5)

    def test_several_at_once_and_the_end_of_the_space(self):
        study = self.study()
        trials = study.ask(50)
        self.assertEqual(len(trials), 20)
        self.assertEqual(len({json.dumps(trial.configuration) for trial in trials}), 20)
        self.assertIsNone(study.ask())

    def test_exceptions_are_failed_trials(self):
        def fails(configuration):
            if configuration["mode"] == "fast":
                raise ValueError("no fast mode here")
            return parabola(configuration)

        with krigtune.minimize(fails, SPACE, trials=12, directory=self.directory) as study:
            trials = study.trials
            self.assertEqual(study.best.configuration["mode"], "plain")
        failed = [one for one in trials if one["status"] == "failed"]
        self.assertTrue(failed)
        self.assertTrue(all(one["reason"] == "crash" and one["configuration"]["mode"] == "fast" for one in failed))
        self.assertIn("ValueError: no fast mode here", (self.directory / "journal.log").read_text())

    def test_running_out_of_memory_is_a_result_of_its_own(self):
        class OutOfMemoryError(RuntimeError):  # torch's class has this name, and so has CuPy's
            pass

        errors = [MemoryError(), OutOfMemoryError("CUDA"), RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
                  type("XlaRuntimeError", (RuntimeError,), {})("RESOURCE_EXHAUSTED: Out of memory")]
        wrapped = ValueError("a layer failed")
        wrapped.__cause__ = MemoryError()
        study = self.study()
        for error in [*errors, wrapped]:
            self.assertEqual(study.tell_error(study.ask(), error)["status"], "oom", repr(error))
        self.assertEqual(study.tell_error(study.ask(), ValueError("out of memory"))["status"], "failed")

    def test_memory_of_torch_is_freed_after_a_trial_that_ran_out(self):
        calls = []
        cuda = types.SimpleNamespace(is_available=lambda: True, empty_cache=lambda: calls.append("emptied"))
        sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)
        self.addCleanup(sys.modules.pop, "torch")

        def runs_out(configuration):
            if configuration["x"] > 4:
                raise MemoryError
            return parabola(configuration)

        with krigtune.minimize(runs_out, SPACE, trials=10) as study:
            count = sum(one["status"] == "oom" for one in study.trials)
        self.assertGreater(count, 0)
        self.assertEqual(len(calls), count)

    def test_other_exceptions_end_the_loop_and_the_trial_may_be_asked_again(self):
        def interrupted(configuration):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            krigtune.minimize(interrupted, SPACE, trials=5, directory=self.directory)
        with self.assertRaises(ZeroDivisionError):
            krigtune.minimize(lambda c: 1 / 0, SPACE, trials=5, directory=self.directory, catch=(ValueError,))
        study = self.study()
        self.assertEqual([(one["status"], one["reason"]) for one in study.trials],
                         [("failed", "interrupted"), ("failed", "crash")])

    def test_results_that_are_not_finite_are_failures(self):
        study = self.study()
        for value in (math.nan, math.inf, {"value": 1.0, "loss": math.nan}):
            told = study.tell(study.ask(), value)
            self.assertEqual((told["status"], told["reason"]), ("failed", "bad_result"))

    def test_a_search_without_any_success_says_why(self):
        with self.assertWarnsRegex(UserWarning, "no trial has succeeded; the last of 3 that failed: ZeroDivisionError: division by zero"):
            krigtune.minimize(lambda c: 1 / 0, SPACE, trials=3).close()
        with self.assertWarnsRegex(UserWarning, "the last of 2 that failed: its result is not finite"):
            krigtune.minimize(lambda c: math.nan, SPACE, trials=2).close()
        with self.assertRaisesRegex(krigtune.InputError, "3 is no function"):
            krigtune.minimize(3, SPACE, trials=3)

    def test_messages_may_have_any_characters(self):
        study = self.study()
        told = study.tell(study.ask(), status="failed", message="\ud800 is half of a character, ü and \x00 are not")
        self.assertEqual(told["status"], "failed")
        with self.assertRaisesRegex(krigtune.InputError, "did you mean 'mode'"):
            study.add({"x": 1, "mode": "fast", "mo\udfffde": 1}, 1.0)

    def test_seeds_and_trials_may_be_numpys(self):
        class Integer:  # what NumPy's integers have in common
            ndim = 0

            def __init__(self, value):
                self.value = value

            def item(self):
                return self.value

            __index__ = item

        study = self.study(seed=Integer(3))
        self.assertEqual(study.tell(Integer(study.ask().number), 1.0)["trial"], 0)

    def test_ctrl_c_ends_all_threads(self):
        study = self.study()
        begun, calls = threading.Event(), []
        main = threading.main_thread()

        def function(configuration):
            calls.append(configuration)
            if threading.current_thread() is main:
                begun.wait()
                raise KeyboardInterrupt
            begun.set()
            return 1.0

        with self.assertRaises(KeyboardInterrupt):
            study.run(function, trials=20, jobs=2)
        self.assertEqual(threading.active_count(), 1)
        self.assertLess(len(calls), 20)

    def test_a_directory_goes_on(self):
        for trials in (4, 9, 9):
            krigtune.minimize(parabola, SPACE, trials=trials, directory=self.directory).close()
            self.assertEqual(len(self.rows()), trials)
        study = krigtune.Study(directory=self.directory)
        self.addCleanup(study.close)
        self.assertEqual(len(study.trials), 9)
        self.assertEqual(study.metric, "value")
        with self.assertRaisesRegex(krigtune.InputError, "was begun with another session: /space/x was"):
            krigtune.Study({"x": [1, 2]}, self.directory)

    def test_trials_without_a_result_run_first(self):
        study = self.study()
        waiting = [trial.configuration for trial in study.ask(2)]
        study.close()
        seen = []

        def watched(configuration):
            seen.append(configuration)
            return parabola(configuration)

        krigtune.minimize(watched, SPACE, trials=3, directory=self.directory).close()
        self.assertEqual(seen[:2], waiting)
        self.assertEqual(len(seen), 3)

    def test_other_processes_may_share_the_directory(self):
        study = self.study()
        theirs = study.ask()
        seen = []
        with krigtune.Study(directory=self.directory) as other:
            other.run(lambda c: seen.append(c) or parabola(c), trials=5, shared=True)
        self.assertNotIn(theirs.configuration, seen)
        study.tell(theirs, 1.5)
        self.assertEqual(sum(one["status"] == "ok" for one in study.trials), 6)

    def test_threads(self):
        calls = iter(range(100))
        together = threading.Barrier(2, timeout=60)

        def meets(configuration):
            if next(calls) < 2:
                together.wait()  # the first two trials run at the same time, or this fails
            return parabola(configuration)

        with krigtune.minimize(meets, SPACE, trials=12, jobs=3, directory=self.directory, catch=()) as study:
            trials = study.trials
        self.assertEqual([one["status"] for one in trials], ["ok"] * 12)
        self.assertEqual(len({json.dumps(one["configuration"]) for one in trials}), 12)

    def test_threads_that_ask_and_tell_one_study(self):
        study = self.study()
        numbers, errors = [], []

        def work():
            try:
                for _ in range(4):
                    trial = study.ask()
                    numbers.append(trial.number)
                    study.tell(trial, parabola(trial.configuration))
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        self.assertEqual(sorted(numbers), list(range(16)))

    def test_an_exception_in_a_thread_is_raised(self):
        def fails(configuration):
            raise KeyError("x")

        with self.assertRaises(KeyError):
            krigtune.minimize(fails, SPACE, trials=9, jobs=3, catch=())

    def test_a_forked_process_has_a_program_of_its_own(self):
        study = self.study()
        study.tell(study.ask(), 3.0)
        child = os.fork()
        if child == 0:
            try:
                trial = study.ask()
                study.tell(trial, 2.0)
                study.close()
                os._exit(0 if trial.number == 1 else 1)
            finally:
                os._exit(2)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual([one["value"] for one in study.trials], [3.0, 2.0])
        self.assertEqual(study.ask().number, 2)

    def test_what_somebody_else_chose(self):
        study = self.study()
        study.add({"x": 6, "mode": "fast"}, 1.0, seconds=2.0)
        study.add({"x": 1, "mode": "fast"}, status="failed", message="it crashed")
        self.assertEqual(study.best.trial, 0)
        self.assertEqual(study.trials[0]["wall_s"], 2.0)
        for incomplete in (study.add, study.predict):
            with self.assertRaisesRegex(krigtune.InputError, "has no 'mode'; give all parameters"):
                incomplete({"x": 6})
        self.assertNotIn({"x": 6, "mode": "fast"}, [trial.configuration for trial in study.ask(18)])

    def test_predictions(self):
        study = self.study()
        one = {"x": 6, "mode": "fast"}
        self.assertIsNone(study.predict(one)["median"])
        study.run(parabola, trials=10)
        rows = study.predict([one, {"x": 0, "mode": "plain"}])
        self.assertEqual(study.predict(one), rows[0])
        self.assertLess(rows[0]["median"], rows[1]["median"])
        self.assertLess(rows[0]["lower_95"], rows[0]["upper_95"])

    def test_several_objectives(self):
        space = {"batch": [1, 2, 3, 4, 5, 6], "mode": ["lean", "fat"]}
        goals = [{"metric": "throughput", "direction": "maximize"}, {"metric": "peak_memory_bytes", "direction": "minimize"}]

        def measure(c):
            if c["batch"] == 6:
                raise MemoryError
            return {"throughput": 10 * c["batch"], "peak_memory_bytes": 1e9 * (c["batch"] + (3 if c["mode"] == "fat" else 0))}

        with krigtune.Study(space, self.directory, objectives=goals, prefer="throughput >= 0.55 best") as study:
            self.assertEqual(study.metrics, ["throughput", "peak_memory_bytes"])
            self.assertEqual(study.front, [])
            study.run(measure, trials=12)
            self.assertEqual([member["configuration"] for member in study.front],
                             [{"batch": batch, "mode": "lean"} for batch in (5, 4, 3, 2, 1)])
            self.assertEqual(study.front[0]["values"], {"throughput": 50, "peak_memory_bytes": 5e9})
            self.assertEqual(study.best.configuration, {"batch": 3, "mode": "lean"})
            row = study.predict({"batch": 2, "mode": "lean"})
            self.assertAlmostEqual(row["others"]["peak_memory_bytes"]["observed"], 2e9)
            ran = [one for one in study.trials if one["status"] == "ok"]
            self.assertTrue(all(one["metrics"]["peak_memory_bytes"] >= 1e9 for one in ran))

    def test_a_missing_objective_is_refused_and_the_trial_stays_open(self):
        goals = [{"metric": "speed", "direction": "maximize"}, {"metric": "watts", "direction": "minimize"}]
        with krigtune.Study(SPACE, self.directory, objectives=goals) as study:
            trial = study.ask()
            for result in (3.0, {"speed": 3.0}):
                with self.assertRaisesRegex(krigtune.InputError, "has no 'watts'"):
                    study.tell(trial, result)
            with self.assertRaisesRegex(krigtune.InputError, "watts is missing"):  # the program's own check
                study._call("tell", trial=trial.number, value=3.0)
            told = study.tell(trial, {"speed": 3.0, "watts": 250})
            self.assertEqual(told["values"], {"speed": 3.0, "watts": 250})

    def test_objectives_that_contradict_themselves(self):
        goals = [{"metric": "a", "direction": "maximize"}, {"metric": "b", "direction": "minimize"}]
        for options, said in ((dict(objectives=goals, metric="a"), "one objective"), (dict(prefer="a >= 1"), "several objectives"),
                              (dict(objectives=goals[:1]), "2 to 4"), (dict(objectives=["a", "b"]), "is not a dict")):
            with self.assertRaisesRegex(krigtune.InputError, said):
                krigtune.Study(SPACE, self.directory, **options)
        with self.assertRaisesRegex(krigtune.InputError, "minimize has one objective"):
            krigtune.minimize(parabola, SPACE, trials=3, objectives=goals)

    def test_the_files_are_there_at_the_end(self):
        krigtune.minimize(parabola, SPACE, trials=6, directory=self.directory, metric="loss").close()
        self.assertEqual([row["status"] for row in self.rows()], ["ok"] * 6)
        best = json.loads((self.directory / "best.json").read_text())
        self.assertEqual(best["objective"], {"metric": "loss", "direction": "minimize"})
        listed = subprocess.run([krigtune.program(), "results", self.directory, "--top", "1", "--format", "csv"],
                                capture_output=True, text=True, check=True).stdout
        self.assertIn(f"{best['value']:g}", listed)

    def test_a_temporary_directory_is_removed(self):
        study = krigtune.Study(SPACE)
        study.tell(study.ask(), 1.0)
        self.assertTrue((study.directory / "journal.log").exists())
        study.close()
        study.close()
        self.assertFalse(study.directory.exists())
        with self.assertRaisesRegex(krigtune.ProgramError, "the study is closed"):
            study.ask()

    def test_sessions_and_their_files(self):
        session = {"space": {"x": [1, 2, 3]}, "objective": {"metric": "score", "direction": "maximize"},
                   "runner": {"kind": "none"}}
        file = pathlib.Path(self.folder.name) / "session.json"
        file.write_text(json.dumps(session))
        for given in (session, file, str(file)):
            with krigtune.maximize(lambda c: {"score": c["x"]}, given, trials=3) as study:
                self.assertEqual(study.best.configuration, {"x": 3})
        with self.assertRaisesRegex(krigtune.InputError, "to maximize; call krigtune.maximize"):
            krigtune.minimize(parabola, session)
        with self.assertRaisesRegex(krigtune.InputError, "did you mean 'space'"):
            krigtune.Study({**session, "spac": 1})

    def test_warnings_of_the_program_are_pythons(self):
        study = self.study()
        study.ask()
        study.close()
        with self.assertWarnsRegex(UserWarning, "goes on with another search: /seed was 1, now 7"):
            krigtune.Study(SPACE, self.directory, seed=7).close()

    def test_plan_predicts_every_configuration(self):
        rows = krigtune.plan({
            "workload": {"model": {"preset": "gpt2-1.5b"}, "precision": "fp16", "train_batch_size": 64},
            "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "v100-32gb", "interconnect": "nvlink2"},
            "space": {"zero_stage": [0, 3], "micro_batch": [1, 2, 64]}, "runner": {"kind": "none"}})
        self.assertEqual({row["zero_stage"] for row in rows}, {0, 3})
        self.assertEqual({row["memory_verdict"] for row in rows} & {"fits"}, {"fits"})
        self.assertTrue(all(row["predicted_step_time_s"] > 0 for row in rows if row["memory_verdict"] == "fits"))
        with self.assertRaisesRegex(krigtune.InputError, "space"):
            krigtune.plan({"space": {}, "wrong": 1})
        with self.assertRaisesRegex(krigtune.InputError, "None is neither a space nor a session; write a dict"):
            krigtune.plan(None)

    def test_the_report_in_a_notebook(self):
        study = self.study()
        self.assertIn("no trial was asked yet", study._repr_html_())
        study.run(parabola, trials=5)
        shown = study._repr_html_()
        self.assertTrue(shown.startswith("<iframe srcdoc="))
        self.assertIn(html.escape("<html"), shown)
        file = study.report(pathlib.Path(self.folder.name) / "page.html")
        self.assertIn("<html", file.read_text())

    def test_trials_as_a_table(self):
        class DataFrame:
            def __init__(self, rows):
                self.rows = rows

            def drop(self, columns, errors):
                return self

        sys.modules["pandas"] = types.SimpleNamespace(DataFrame=DataFrame)
        self.addCleanup(sys.modules.pop, "pandas")
        study = self.study()
        study.tell(study.ask(), {"value": 1.5, "loss": 2.5})
        row, = study.to_dataframe().rows
        self.assertEqual((row["trial"], row["value"], row["metric_loss"]), (0, 1.5, 2.5))
        self.assertIn(row["mode"], SPACE["mode"])

    def test_progress_is_a_line_a_trial(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            krigtune.minimize(parabola, {"x": [6], "mode": ["fast", "plain"]}, trials=2, progress=True).close()
        lines = said.getvalue().splitlines()
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[1], r"^trial 1: 1(\.5)?  best 1$")

    def test_a_program_that_ends_says_so_and_nothing_is_lost(self):
        study = self.study()
        study.tell(study.ask(), 1.0)
        study._server._process.kill()
        with self.assertRaisesRegex(krigtune.ProgramError, "has ended with exit code -9; what was told is in the journal"):
            study.ask()
        self.assertEqual(len(krigtune.Study(directory=self.directory).trials), 1)

    def test_an_answer_that_was_not_read_is_not_taken_for_the_next(self):
        study = self.study()
        server = study._server
        server._process.stdin.write(b'{"id": 999, "method": "trials"}\n')
        self.assertEqual(study.ask().number, 0)

    def test_a_request_that_an_exception_tore_is_not_a_part_of_the_next(self):
        study = self.study()
        server = study._server
        server._process.stdin.write(b'{"id": 1, "meth')
        server._is_request_torn = True
        self.assertEqual([study.ask().number for _ in range(2)], [0, 1])

    def test_an_answer_that_an_exception_tore_is_not_a_part_of_the_next(self):
        class Interrupted:
            """Ctrl-C comes when a part of an answer was read."""

            def __init__(self, pipe):
                self.pipe = pipe

            def readline(self):
                self.pipe.read(20)
                raise KeyboardInterrupt

        study = self.study()
        process = study._server._process
        pipe, process.stdout = process.stdout, Interrupted(process.stdout)
        with self.assertRaises(KeyboardInterrupt):
            study.ask()
        process.stdout = pipe
        self.assertEqual([study.ask().number for _ in range(2)], [1, 2])

    def test_a_request_that_is_too_long_is_refused(self):
        study = self.study()
        with self.assertRaisesRegex(krigtune.InputError, "more than 16777216; send less at once"):
            study.predict({"x": 1, "mode": "x" * (1 << 24)})
        told = study.tell(study.ask(), status="failed", message="x" * (1 << 24))
        self.assertEqual(told["status"], "failed", "of a message the end counts")

    def test_a_missing_program_is_named(self):
        before = os.environ["KRIGTUNE_EXECUTABLE"]
        self.addCleanup(os.environ.__setitem__, "KRIGTUNE_EXECUTABLE", before)
        os.environ["KRIGTUNE_EXECUTABLE"] = "/nowhere/krigtune"
        with self.assertRaisesRegex(krigtune.ProgramError, "KRIGTUNE_EXECUTABLE: '/nowhere/krigtune' cannot be run"):
            krigtune.Study(SPACE)

    def test_the_module_runs_the_program(self):
        said = subprocess.run([sys.executable, "-m", "krigtune", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said, f"krigtune {krigtune.__version__}\n", "the version of the package is that of the program")
        self.assertEqual(subprocess.run([sys.executable, "-m", "krigtune", "nonsense"], capture_output=True).returncode, 2)

    def test_out_of_memory_is_recognised_by_name(self):
        self.assertFalse(_study.is_out_of_memory(RuntimeError("a shape is wrong")))
        self.assertFalse(_study.is_out_of_memory(None))


if __name__ == "__main__":
    unittest.main()
