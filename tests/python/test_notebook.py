"""The tutorial notebook, docs/tutorial.ipynb: its cells run, and print what is stored in it."""
import json
import os
import pathlib
import tempfile
import unittest

import notebook

TUTORIAL = pathlib.Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


class NotebookTest(unittest.TestCase):
    def test_the_tutorial_runs_and_prints_what_it_says(self):
        tutorial = json.loads(TUTORIAL.read_text(encoding="utf-8"))
        self.addCleanup(os.chdir, os.getcwd())
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            outputs, names = notebook.run(tutorial)
            self.assertEqual(notebook.differences(tutorial, outputs), [],
                             f"if that is right: python3 tests/python/notebook.py --write {TUTORIAL}, in an empty folder")
            self.assertTrue((pathlib.Path(folder) / "runs/notebook/report.html").exists())
        best = names["best"]
        self.assertGreater(best.value, 2 * names["tokens_per_second"](names["today"])["value"])
        self.assertEqual({trial["status"] for trial in names["trials"]}, {"ok", "oom", "failed"})

    def test_every_cell_has_its_outputs_and_its_number(self):
        tutorial = json.loads(TUTORIAL.read_text(encoding="utf-8"))
        cells = notebook.code_cells(tutorial)
        self.assertEqual([cell["execution_count"] for cell in cells], list(range(1, len(cells) + 1)))
        self.assertTrue(all(cell["outputs"] for cell in cells[1:]))

    def test_numbers_may_vary_only_where_a_cell_says_so(self):
        def cell(text, *tags):
            return {"cell_type": "code", "id": "one", "metadata": {"tags": list(tags)}, "source": [],
                    "outputs": [{"output_type": "stream", "name": "stdout", "text": [text]}]}

        def differs(stored, now, *tags):
            return len(notebook.differences({"cells": [cell(stored, *tags)]}, [cell(now)["outputs"]]))

        self.assertEqual(differs("1.5 s", "1.5 s"), 0)
        self.assertEqual(differs("1.5 s", "1.6 s"), 1)
        self.assertEqual(differs("{'a': True} 172,939 1e-05", "{'a': False} 2 17", "varies"), 0)
        self.assertEqual(differs("1.5 s", "1.5 ms", "varies"), 1)

    def test_the_last_line_of_a_cell_is_shown(self):
        self.assertEqual(notebook.text_of(notebook.run_cell("x = 3\nx + 1", {})), "4")
        self.assertEqual(notebook.run_cell("x = 3", {}), [])


if __name__ == "__main__":
    unittest.main()
