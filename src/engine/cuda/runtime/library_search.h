#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/shared_library.h"

namespace krigtune::cuda {

/// The environment variable with the folders that are searched first, separated by ':'.
inline constexpr const char* kLibraryVariable = "KRIGTUNE_CUDA_LIBRARIES";

/// Returns the value of an environment variable, or nothing if it is not set.
using Variable = std::function<std::optional<std::string>(const std::string& name)>;

/// The folders that may contain NVIDIA's libraries, in the order in which they are searched. Only existing folders are
/// listed.
struct LibraryFolders {
  std::vector<std::filesystem::path> named;  ///< from kLibraryVariable; searched before the loader's own places
  std::vector<std::filesystem::path> usual;  ///< searched after them: CUDA's folders, then Python's wheels
};
/// Returns CUDA_HOME, CUDA_PATH, NCCL_ROOT and /usr/local/cuda*, followed by the wheels (site-packages/nvidia/*/lib) of
/// VIRTUAL_ENV, CONDA_PREFIX, each python3 on PATH, ~/.local, /usr/local and /usr. `root` replaces "/" in tests.
LibraryFolders library_folders(const Variable& variable, const std::filesystem::path& root = "/");

/// A library that was opened, or why there is none.
struct FoundLibrary {
  engine::SharedLibrary library;  ///< null: not found
  std::string path;               ///< of the file that the loader opened
  std::string missing;            ///< one line: why there is none, and the places tried; otherwise empty
};
/// Opens the first of `names` that can be opened. Each name is tried in all places before the next one. `what` is the
/// library's name in messages.
FoundLibrary find_library(const std::string& what, const std::vector<std::string>& names,
                          const LibraryFolders& folders);
/// Does the same in the places that this process's environment names.
FoundLibrary find_library(const std::string& what, const std::vector<std::string>& names);

/// Looks up the functions of an opened library. If a function does not exist, the library counts as missing, and the
/// first such function is the reason.
struct FunctionBinder {
  FoundLibrary& found;
  std::string what;    ///< the library's name in messages
  std::string needed;  ///< the oldest version that has all functions

  template <class Function>
  void operator()(const char* name, Function*& function) const {
    function = engine::find<Function>(found.library, name);
    if (function == nullptr && found.missing.empty()) {
      found.missing = what + " at " + found.path + " has no " + name + ": " + needed + " or newer is needed";
    }
  }
};

/// The hint of the error that reports a missing library.
inline constexpr const char* kLibraryHint =
    "install it (pip install nvidia-cublas nvidia-nccl-cu13), or name its folder in KRIGTUNE_CUDA_LIBRARIES";

}  // namespace krigtune::cuda
