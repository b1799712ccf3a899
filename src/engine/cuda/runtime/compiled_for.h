#pragma once
#include <string>
#include <string_view>

namespace krigtune::cuda {

/// Why a GPU of compute capability major.minor cannot run device code that was compiled for `targets`, as in
/// CMAKE_CUDA_ARCHITECTURES but with commas ("80-real,90a-real,90-virtual"), "compute capability 7.5 is older than what
/// this program was compiled for (8.0, 9.0)"; empty if it can. A cubin (real) runs on GPUs of its major version from
/// its minor version on, PTX (virtual) on all from its version on; with the suffix "a" on exactly that GPU, with "f"
/// within the major version (CUDA C++ Programming Guide, "Compute capabilities"; nvcc manual, "GPU feature list"). What
/// names no numbers ("native") is not judged: empty.
std::string why_not_compiled_for(std::string_view targets, int major, int minor);

/// Whether that GPU would run code of `targets` that may use what only Hopper has (wgmma, setmaxnreg): compute
/// capability 9.0, and 90a among the targets.
bool has_hopper_code(std::string_view targets, int major, int minor);

/// What this program's kernels were compiled for: the list that CMake was given.
std::string_view compiled_targets();

}  // namespace krigtune::cuda
