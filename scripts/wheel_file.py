"""usage: wheel_file.py [--cuda] PROGRAMS WHEEL VERSION

Writes a wheel (PEP 427) with the metadata of pyproject.toml: the modules of src/python, and the folder PROGRAMS as the package's
_program. --cuda: the wheel krigtune-cuda, which adds PROGRAMS to that. The same input makes the same bytes. It needs Python 3.11.
"""
import base64
import hashlib
import pathlib
import sys
import tomllib
import zipfile

WHEEL = """Wheel-Version: 1.0
Generator: krigtune
Root-Is-Purelib: false
Tag: {tag}
"""


ROOT = pathlib.Path(__file__).parents[1]


def read_project(version, cuda):
    """The metadata of one of the two wheels. What krigtune-cuda does not say itself is as in krigtune."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        settings = tomllib.load(file)
    project = settings["project"]
    if not cuda:
        return project
    own = settings["tool"]["krigtune-cuda"]
    return {**project, **own, "dependencies": [f"krigtune=={version}", *own["dependencies"]], "optional-dependencies": {}, "scripts": {}}


def metadata(project, version, licences):
    """The file METADATA, with the fields that pyproject.toml has."""
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}",
             f"License-Expression: {project['license']}", *[f"License-File: {name}" for name in licences],
             f"Keywords: {','.join(project['keywords'])}", *[f"Classifier: {one}" for one in project["classifiers"]],
             f"Requires-Python: {project['requires-python']}", *[f"Requires-Dist: {one}" for one in project.get("dependencies", [])]]
    for extra, requirements in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *[f"Requires-Dist: {one}; extra == '{extra}'" for one in requirements]]
    lines.append(f"Description-Content-Type: {project['readme']['content-type']}")
    return "\n".join(lines) + "\n\n" + project["readme"]["text"].lstrip()


def entry_points(project):
    return "[console_scripts]\n" + "".join(f"{name} = {function}\n" for name, function in project["scripts"].items())


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.record = []

    def add(self, name, data, executable=False):
        info = zipfile.ZipInfo(name)  # of 1980, the same every time
        info.compress_type = zipfile.ZIP_DEFLATED
        info.create_system = 3  # Unix, or the permissions do not count
        info.external_attr = (0o100755 if executable else 0o100644) << 16
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(data)}")

    def add_folder(self, folder, prefix, suffixes=None):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and (suffixes is None or path.name.endswith(suffixes)):
                self.add(f"{prefix}/{path.relative_to(folder)}", path.read_bytes(), bool(path.stat().st_mode & 0o111))

    def close(self, info):
        self.record.append(f"{info}/RECORD,,")
        self.add(f"{info}/RECORD", ("\n".join(self.record) + "\n").encode())
        self.zip.close()


def main(programs, wheel_path, version, cuda=False):
    programs, wheel_path = pathlib.Path(programs), pathlib.Path(wheel_path)
    project = read_project(version, cuda)
    info = f"{project['name'].replace('-', '_')}-{version}.dist-info"
    wheel = Wheel(wheel_path)
    if not cuda:
        wheel.add_folder(ROOT / "src/python/krigtune", "krigtune", (".py", "py.typed"))
    for path in sorted(programs.iterdir()):
        if path.is_dir() and path.name != "licences":
            wheel.add_folder(path, f"krigtune/_program/{path.name}")
        elif path.name.startswith("krigtune"):
            wheel.add(f"krigtune/_program/{path.name}", path.read_bytes(), True)
    wheel.add_folder(programs / "licences", f"{info}/licenses")
    licences = sorted(path.name for path in (programs / "licences").iterdir())
    wheel.add(f"{info}/METADATA", metadata(project, version, licences).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(tag=wheel_path.stem.split("-", 2)[2]).encode())
    if project["scripts"]:
        wheel.add(f"{info}/entry_points.txt", entry_points(project).encode())
    wheel.close(info)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--cuda"]
    if len(words) != 3:
        sys.exit(__doc__)
    main(*words, cuda="--cuda" in sys.argv)
