"""The file that scripts/wheel_file.py writes, with programs that stand in for the real ones; scripts/wheel-check installs a real wheel."""
import base64
import configparser
import csv
import email
import hashlib
import io
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest
import zipfile

ROOT = pathlib.Path(__file__).parents[2]
NAME = "krigtune-1.2.3-py3-none-manylinux_2_28_x86_64.whl"
INFO = "krigtune-1.2.3.dist-info"


def write_programs(folder, files):
    """Files that stand in for programs: by their path a text and a mode."""
    for name, (text, mode) in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)


def write_wheel(*arguments):
    subprocess.run([sys.executable, ROOT / "scripts/wheel_file.py", *arguments, "1.2.3"], check=True)


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        programs = pathlib.Path(folder.name) / "programs"
        write_programs(programs, {
            "krigtune": ("#!/bin/sh\necho krigtune 1.2.3 \"$@\"\n", 0o755), "krigtune-bench": ("#!/bin/sh\n", 0o755),
            "README.md": ("a page", 0o644), "lib/libc.so.6": ("a library", 0o644), "libexec/krigtune": ("a program", 0o755),
            "licences/glibc": ("a licence", 0o644), "licences/krigtune": ("another", 0o644)})
        cls.wheels = []
        for attempt in ("one", "two"):
            wheel = pathlib.Path(folder.name) / attempt / NAME
            wheel.parent.mkdir()
            write_wheel(programs, wheel)
            cls.wheels.append(wheel)
        cls.folder = pathlib.Path(folder.name)

    def test_the_same_input_makes_the_same_bytes(self):
        self.assertEqual(self.wheels[0].read_bytes(), self.wheels[1].read_bytes())

    def test_the_record_names_every_file_with_its_hash(self):
        with zipfile.ZipFile(self.wheels[0]) as wheel:
            names = wheel.namelist()
            rows = list(csv.reader(io.StringIO(wheel.read(f"{INFO}/RECORD").decode())))
            self.assertEqual([row[0] for row in rows], names)
            for name, digest, size in rows[:-1]:
                data = wheel.read(name)
                self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("="))
                self.assertEqual(int(size), len(data))
        self.assertEqual(rows[-1], [f"{INFO}/RECORD", "", ""])
        for name in ("krigtune/__init__.py", "krigtune/optuna.py", "krigtune/ray.py", "krigtune/transformers.py", "krigtune/py.typed", "krigtune/_program/lib/libc.so.6",
                     f"{INFO}/licenses/glibc", f"{INFO}/METADATA", f"{INFO}/entry_points.txt"):
            self.assertIn(name, names)

    def test_its_tag_is_that_of_its_name(self):
        with zipfile.ZipFile(self.wheels[0]) as wheel:
            self.assertIn("\nTag: py3-none-manylinux_2_28_x86_64\n", wheel.read(f"{INFO}/WHEEL").decode())
            self.assertIn("\nVersion: 1.2.3\n", wheel.read(f"{INFO}/METADATA").decode())

    def test_its_metadata_are_those_of_pyproject(self):
        with open(ROOT / "pyproject.toml", "rb") as file:
            project = tomllib.load(file)["project"]
        with zipfile.ZipFile(self.wheels[0]) as wheel:
            metadata = email.message_from_bytes(wheel.read(f"{INFO}/METADATA"))
            scripts = configparser.ConfigParser()
            scripts.read_string(wheel.read(f"{INFO}/entry_points.txt").decode())
        self.assertEqual((metadata["Name"], metadata["Summary"], metadata["License-Expression"], metadata["Requires-Python"]),
                         (project["name"], project["description"], project["license"], project["requires-python"]))
        self.assertEqual(metadata.get_all("Classifier"), project["classifiers"])
        self.assertEqual(metadata.get_all("License-File"), ["glibc", "krigtune"])
        self.assertEqual(metadata.get_all("Provides-Extra"), list(project["optional-dependencies"]))
        self.assertIn("ray[tune]>=2.40; extra == 'ray'", metadata.get_all("Requires-Dist"))
        self.assertEqual(metadata.get_payload().strip(), project["readme"]["text"].strip())
        self.assertEqual(dict(scripts["console_scripts"]), project["scripts"])

    def test_the_sdist_has_the_version_of_cmake(self):
        with open(ROOT / "pyproject.toml", "rb") as file:
            version = tomllib.load(file)["tool"]["scikit-build"]["metadata"]["version"]
        found = re.search(version["regex"], (ROOT / version["input"]).read_text())
        init = (ROOT / "src/python/krigtune/__init__.py").read_text()
        self.assertIn(f'__version__ = "{found["value"]}"', init)

    def test_the_wheel_for_gpus_adds_a_program_and_needs_the_same_version(self):
        programs = self.folder / "cuda"
        write_programs(programs, {"krigtune-bench-cuda": ("a program", 0o755), "cuda/libfmt.so.9": ("a library", 0o644),
                                  "licences/cuda-runtime": ("a licence", 0o644)})
        path = self.folder / "krigtune_cuda-1.2.3-py3-none-manylinux_2_34_x86_64.whl"
        write_wheel("--cuda", programs, path)
        info = "krigtune_cuda-1.2.3.dist-info"
        with zipfile.ZipFile(path) as wheel, zipfile.ZipFile(self.wheels[0]) as other:
            names = wheel.namelist()
            metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
            self.assertEqual(set(names) & set(other.namelist()), set(), "uninstalling one must leave the other")
            self.assertIn("\nTag: py3-none-manylinux_2_34_x86_64\n", wheel.read(f"{info}/WHEEL").decode())
        self.assertEqual(names, ["krigtune/_program/cuda/libfmt.so.9", "krigtune/_program/krigtune-bench-cuda",
                                 *(f"{info}/{one}" for one in ("licenses/cuda-runtime", "METADATA", "WHEEL", "RECORD"))])
        self.assertEqual(metadata["Name"], "krigtune-cuda")
        self.assertEqual(metadata.get_all("Requires-Dist")[0], "krigtune==1.2.3")
        self.assertTrue(any(one.startswith("nvidia-cublas") for one in metadata.get_all("Requires-Dist")))
        self.assertIsNone(metadata["Provides-Extra"])

    def test_programs_may_be_run_and_are_found_first(self):
        with zipfile.ZipFile(self.wheels[0]) as wheel:
            modes = {one.filename: one.external_attr >> 16 & 0o777 for one in wheel.infolist()}
            for name in ("krigtune/_program/krigtune", "krigtune/_program/libexec/krigtune"):
                self.assertEqual(modes[name], 0o755)
            self.assertEqual(modes["krigtune/__init__.py"], 0o644)
            wheel.extractall(self.folder / "site")
        for name, mode in modes.items():
            (self.folder / "site" / name).chmod(mode)
        said = subprocess.run([sys.executable, "-m", "krigtune", "plan", "x"], capture_output=True, text=True,
                              env={"PYTHONPATH": str(self.folder / "site"), "PATH": "/usr/bin:/bin"}, check=True).stdout
        self.assertEqual(said, "krigtune 1.2.3 plan x\n")


if __name__ == "__main__":
    unittest.main()
