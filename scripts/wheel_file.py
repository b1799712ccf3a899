"""usage: wheel_file.py PACKAGE PROGRAMS WHEEL VERSION

Writes a wheel (PEP 427): the modules in PACKAGE, and the folder PROGRAMS as the package's _program. The same input makes the same
bytes.
"""
import base64
import hashlib
import pathlib
import sys
import zipfile

METADATA = """Metadata-Version: 2.1
Name: krigtune
Version: {version}
Summary: Finds the fastest way to train a model on given GPUs, and tunes functions: Bayesian optimization
License: Apache-2.0
Keywords: bayesian optimization,hyperparameters,deepspeed,distributed training
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed
Requires-Python: >=3.9
Provides-Extra: optuna
Requires-Dist: optuna>=3.1; extra == 'optuna'
Description-Content-Type: text/markdown

{description}"""
WHEEL = """Wheel-Version: 1.0
Generator: krigtune
Root-Is-Purelib: false
Tag: {tag}
"""
ENTRY_POINTS = """[console_scripts]
krigtune = krigtune.__main__:main
krigtune-bench = krigtune.__main__:bench
"""
DESCRIPTION = """# krigtune

krigtune finds the fastest way to train your model on the GPUs you have, and tunes functions of your own:

```python
import krigtune

study = krigtune.minimize(lambda c: (c["x"] - 2) ** 2, {"x": krigtune.real(-5, 5)}, trials=20)
print(study.best)
```

The command `krigtune` is in this package too: `krigtune --help`.
"""


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


def main(package, programs, wheel_path, version):
    package, programs, wheel_path = pathlib.Path(package), pathlib.Path(programs), pathlib.Path(wheel_path)
    info = f"krigtune-{version}.dist-info"
    wheel = Wheel(wheel_path)
    wheel.add_folder(package, "krigtune", (".py", "py.typed"))
    for name in ("krigtune", "krigtune-bench"):
        wheel.add(f"krigtune/_program/{name}", (programs / name).read_bytes(), True)
    for folder in ("lib", "libexec"):
        wheel.add_folder(programs / folder, f"krigtune/_program/{folder}")
    wheel.add_folder(programs / "licences", f"{info}/licenses")
    wheel.add(f"{info}/METADATA", METADATA.format(version=version, description=DESCRIPTION).encode())
    wheel.add(f"{info}/WHEEL", WHEEL.format(tag=wheel_path.stem.split("-", 2)[2]).encode())
    wheel.add(f"{info}/entry_points.txt", ENTRY_POINTS.encode())
    wheel.close(info)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
