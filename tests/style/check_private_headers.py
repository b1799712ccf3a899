#!/usr/bin/env python3
# usage: check_private_headers.py <root> <build directory> [<compiler option>...]
#   Compiles every header of the project alone, so that each has to include what it uses. Each is included twice, so that
#   a missing include guard shows too. The standard library, nlohmann/json and Eigen are an exception: a header need not
#   include what it uses of them. (The target style_headers makes none for public ones.) Headers that need
#   NVIDIA's are left out.
#
#   To compile each of several hundred headers by itself would take minutes, so those that include one another are compiled
#   in a row, the innermost first: what a header meets before it, it would have included anyway. clang does this, because
#   it reads precompiled headers faster than GCC.
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = ["include", "surrogate/include", "src", "surrogate/src", "tests"]
LEFT_OUT = re.compile(r"^(src/engine/cuda|src/programs/bench/cuda|tests/engine/(cuda_|fake_nccl))")
LIBRARIES = """algorithm array charconv chrono cmath condition_variable deque filesystem fstream functional map memory mutex
               numeric optional random set span sstream string thread unordered_map variant vector
               Eigen/Dense nlohmann/json.hpp"""
# Templates that many headers instantiate.
INSTANTIATIONS = """inline auto copies(nlohmann::ordered_json json, std::vector<std::string> texts, std::optional<std::string> text,
                                   std::map<std::string, std::string> map, std::vector<double> numbers, Eigen::MatrixXd matrix,
                                   std::vector<std::pair<std::string, std::variant<bool, long, double, std::string>>> values,
                                   std::function<void(std::string)> function) {
  return std::tuple(json, texts, text, map, numbers, matrix, values, function);
}
"""
# What CMake defines for sources that are compiled more than once.
DEFINITIONS = ["KRIGTUNE_KERNELS=kernels_plain", "KRIGTUNE_VECTOR_UNIT=plain", "KRIGTUNE_VECTOR_BYTES=16",
               "KRIGTUNE_GEMM_TILE_ROWS=4", "KRIGTUNE_GEMM_TILE_VECTORS=2", 'KRIGTUNE_TEST_DIR=""',
               'KRIGTUNE_BAD_SESSIONS=""', 'KRIGTUNE_ROOT=""', 'KRIGTUNE_EXPERIMENTS_DATA=""']


class Header:
    def __init__(self, path, name, includes):
        self.path, self.name, self.includes = path, name, includes
        self.closure = None  # the project's headers that it includes, and those that they include


def find_headers(root):
    """Returns {path: Header} of all headers that are checked."""
    headers, paths = {}, {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.h")):
            path = file.relative_to(root).as_posix()
            name = file.relative_to(root / folder).as_posix()
            if not LEFT_OUT.match(path):
                paths.setdefault(name, path)
                headers[path] = Header(path, name, re.findall(r'^#include ["<]([^">]+)[">]', file.read_text(), re.M))
    for header in headers.values():
        beside = os.path.dirname(header.path) + "/"
        found = [beside + name if beside + name in headers else paths.get(name) for name in header.includes]
        header.includes = [path for path in found if path is not None and path != header.path]
    return headers


def close(headers, path, open_paths=()):
    """Sets the closures of a header and of what it includes."""
    if path in open_paths:
        sys.exit(f"{path} includes itself, by way of {open_paths[-1]}")
    header = headers[path]
    if header.closure is None:
        below = [close(headers, include, open_paths + (path,)) | {include} for include in header.includes]
        header.closure = frozenset().union(*below)
    return header.closure


def rows_of(headers):
    """Returns lists that together have all headers. In each list, a header includes all those before it."""
    rows, left = [], sorted(headers, key=lambda path: (len(headers[path].closure), path))
    while left:
        row = [left.pop()]
        while inner := [path for path in left if path in headers[row[0]].closure]:
            row.insert(0, inner[-1])
            left.remove(inner[-1])
        rows.append(row)
    return rows


class Compiler:
    def __init__(self, root, build, options):
        self.precompiled = build / "libraries.pch"
        self.command = ["clang++", "-std=c++20", "-w", *options, *(f"-I{root / folder}" for folder in FOLDERS),
                        *(f"-D{text}" for text in DEFINITIONS)]

    def precompile(self):
        text = "".join(f"#include <{name}>\n" for name in LIBRARIES.split()) + INSTANTIATIONS
        errors = self.run(text, ["-fpch-instantiate-templates", "-x", "c++-header", "-", "-o", str(self.precompiled)])
        if errors:
            sys.exit("the headers of the libraries do not compile:\n" + errors)

    def errors_of(self, names):
        """Compiles these headers in this order, each twice. Returns what the compiler says if it fails."""
        text = "".join(f"#include <{name}>\n" * 2 for name in names)
        return self.run(text, ["-fsyntax-only", "-include-pch", str(self.precompiled), "-x", "c++", "-"])

    def run(self, text, options):
        done = subprocess.run(self.command + options, input=text, capture_output=True, text=True)
        return "" if done.returncode == 0 else done.stderr or f"exit code {done.returncode}\n"


def main():
    root, build = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    if not shutil.which("clang++"):
        print("skipped: there is no clang++ here")
        sys.exit(77)
    headers = find_headers(root)
    if not headers:
        sys.exit(f"no header below {root}: nothing would be checked")
    for path in headers:
        close(headers, path)
    build.mkdir(parents=True, exist_ok=True)
    compiler = Compiler(root, build, sys.argv[3:])
    compiler.precompile()
    rows = rows_of(headers)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(compiler.errors_of, [[headers[path].name for path in row] for row in rows]))
    for errors, row in zip(found, rows):
        if errors:
            print(f"{', '.join(row)}:\n" + "".join(errors.splitlines(True)[:12]))
    faults = sum(map(bool, found))
    print(f"{len(headers)} headers compiled alone, {len(rows)} times: {faults} with errors")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
