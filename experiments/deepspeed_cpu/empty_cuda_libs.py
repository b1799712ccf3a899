"""Empty stand-ins for the CUDA libraries that PyPI's torch wheel loads at import,
so that it runs on a machine without a GPU and without 3 GB of nvidia packages.
Every function in them answers "no device" (cudaErrorNoDevice, 100).

usage: empty_cuda_libs.py SITE_PACKAGES/torch/lib      (needs gcc, nm and readelf; 3 s; tried with torch 2.15.0)
"""
import os
import re
import subprocess
import sys
import tempfile

FAMILY = re.compile(r"lib(cuda|cudart|cublas|cublasLt|cudnn|cufft|cufile|cusparse|cusparseLt|cusolver|cupti|curand|"
                    r"nccl|nvrtc|nvshmem_host|nvJitLink|nvToolsExt)\.so")
SYMBOL = re.compile(r"(__cuda|cuda|cu[A-Z]|cublas|cudnn|cufft|curand|cufile|cuFile|cusparse|cusolver|cupti|nccl|nvrtc|"
                    r"nvJitLink|nvshmem|nvtx)")
TELLS_AN_ERROR = re.compile(r"(ErrorString|ErrorName|errorString|StatusString|StatusName|ResultString)$")
NO_DEVICE = 100


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def undefined_symbols(libraries):
    """CUDA symbol -> the version that its library must define ("" if none is required)."""
    defined, wanted = set(), {}
    for library in libraries:
        for line in output("nm", "-D", "--defined-only", library).splitlines():
            defined.add(line.split()[-1].split("@")[0])
        for line in output("nm", "-D", "--undefined-only", library).splitlines():
            symbol, _, version = line.split()[-1].partition("@")
            wanted.setdefault(symbol, set()).add(version.lstrip("@"))
    return {symbol: min(versions) for symbol, versions in wanted.items()
            if symbol not in defined and SYMBOL.match(symbol)}


def needed_libraries(libraries):
    needed = {name for library in libraries
              for name in re.findall(r"NEEDED.*\[(.*?)\]", output("readelf", "-d", library)) if FAMILY.match(name)}
    return sorted(needed, key=lambda name: (not name.startswith("libnccl"), name))


def distribute(symbols, needed):
    """Which library defines which symbols. A version names its library; the others go to the first library."""
    contents = {name: {} for name in needed}
    nvshmem = next((name for name in needed if name.startswith("libnvshmem")), needed[0])
    for symbol, version in symbols.items():
        library = nvshmem if version == "NVSHMEM" else version
        contents[library if library in contents else needed[0]][symbol] = version
    return contents


def source_of(symbol):
    if TELLS_AN_ERROR.search(symbol) or symbol == "ncclGetLastError":
        return f'const char* {symbol}(void) {{ return "no GPU"; }}'
    if symbol in ("cudaGetLastError", "cudaPeekAtLastError"):
        return f"int {symbol}(void) {{ return 0; }}"
    if symbol == "cudaGetDeviceCount":
        return f"int {symbol}(int* n) {{ if (n) *n = 0; return {NO_DEVICE}; }}"
    if symbol == "__cudaRegisterFatBinary":
        return f"static void* h; void* {symbol}(void* p) {{ return &h; }}"
    return f"int {symbol}(void) {{ return {0 if symbol.startswith('__cuda') else NO_DEVICE}; }}"


def build(path, symbols, scratch):
    source, versions = os.path.join(scratch, "stub.c"), os.path.join(scratch, "versions")
    with open(source, "w", encoding="utf-8") as file:
        file.write("\n".join(source_of(symbol) for symbol in sorted(symbols)) + "\n")
    soname = "-Wl,-soname," + os.path.basename(path)
    command = ["gcc", "-w", "-fno-builtin", "-shared", "-fPIC", soname, "-o", path, source]
    version = next((version for version in symbols.values() if version), None)
    if version:
        with open(versions, "w", encoding="utf-8") as file:
            file.write(f"{version} {{ global: *; }};\n")
        command.append("-Wl,--version-script," + versions)
    subprocess.run(command, check=True)


def main():
    folder = sys.argv[1]
    libraries = [os.path.join(folder, name) for name in sorted(os.listdir(folder))
                 if name.startswith("lib") and name.endswith(".so") and not FAMILY.match(name)]
    needed = needed_libraries(libraries)
    if not needed:
        return  # a wheel without CUDA
    with tempfile.TemporaryDirectory() as scratch:
        for name, symbols in distribute(undefined_symbols(libraries), needed).items():
            build(os.path.join(folder, name), symbols, scratch)


if __name__ == "__main__":
    main()
