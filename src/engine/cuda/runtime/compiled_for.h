#pragma once
#include <string>
#include <string_view>

namespace krigtune::cuda {

/// Returns why a GPU of compute capability major.minor cannot run device code that was compiled for `targets`, for
/// example "compute capability 7.5 is older than what this program was compiled for (8.0, 9.0)"; empty if it can.
/// `targets` is written as in CMAKE_CUDA_ARCHITECTURES but with commas ("80-real,90a-real,90-virtual").
///
/// A cubin (real) runs on GPUs of its major version from its minor version on, and PTX (virtual) on all GPUs from its
/// version on. With the suffix "a" code runs on exactly that GPU, with "f" only within the major version (CUDA C++
/// Programming Guide, "Compute capabilities"; nvcc manual, "GPU feature list"). The result is also empty if a target is
/// not a number ("native"), because it cannot be judged.
std::string why_not_compiled_for(std::string_view targets, int major, int minor);

/// Returns whether that GPU runs code of `targets` that may use the features of Hopper alone (wgmma, setmaxnreg): its
/// compute capability is 9.0 and 90a is among the targets.
bool has_hopper_code(std::string_view targets, int major, int minor);

/// Returns the targets that this program's kernels were compiled for: the list that CMake was given.
std::string_view compiled_targets();

}  // namespace krigtune::cuda
