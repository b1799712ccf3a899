#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/shared_library.h"

namespace krigtune::cuda {

/// Names the folders that are tried first, separated by ':'.
inline constexpr const char* kLibraryVariable = "KRIGTUNE_CUDA_LIBRARIES";

/// Looks an environment variable up.
using Variable = std::function<std::optional<std::string>(const std::string& name)>;

/// Where NVIDIA's libraries may lie, in the order in which they are tried. Only folders that exist are listed.
struct LibraryFolders {
  std::vector<std::filesystem::path> named;  ///< by kLibraryVariable: before the loader's own places
  std::vector<std::filesystem::path> usual;  ///< after them: CUDA's folders, then Python's wheels
};
/// CUDA_HOME, CUDA_PATH, NCCL_ROOT, /usr/local/cuda*; wheels (site-packages/nvidia/*/lib) of VIRTUAL_ENV, CONDA_PREFIX,
/// each python3 on PATH, ~/.local, /usr/local and /usr. `root`: in place of "/", for tests.
LibraryFolders library_folders(const Variable& variable, const std::filesystem::path& root = "/");

/// A library that was opened, or why there is none.
struct FoundLibrary {
  engine::SharedLibrary library;  ///< null: not found
  std::string path;               ///< as the loader found it
  std::string missing;            ///< one line with the places that were tried; empty where it was found
};
/// Opens the first of `names` that can be opened, each in all places before the next name. `what`: for people.
FoundLibrary find_library(const std::string& what, const std::vector<std::string>& names,
                          const LibraryFolders& folders);
/// In the places of this process's environment.
FoundLibrary find_library(const std::string& what, const std::vector<std::string>& names);

/// Finds the functions of an opened library. The first one that it lacks makes it missing.
struct FunctionBinder {
  FoundLibrary& found;
  std::string what;    ///< the library's name, for people
  std::string needed;  ///< the oldest version that has all functions

  template <class Function>
  void operator()(const char* name, Function*& function) const {
    function = engine::find<Function>(found.library, name);
    if (function == nullptr && found.missing.empty()) {
      found.missing = what + " at " + found.path + " has no " + name + ": " + needed + " or newer is needed";
    }
  }
};

/// What fixes a library that is missing.
inline constexpr const char* kLibraryHint =
    "install it (pip install nvidia-cublas nvidia-nccl-cu13), or name its folder in KRIGTUNE_CUDA_LIBRARIES";

}  // namespace krigtune::cuda
