#include "engine/cuda/runtime/library_search.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace krigtune::cuda {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders_of(std::string_view list) {
  std::vector<fs::path> folders;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(':'), list.size());
    if (end > 0) folders.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return folders;
}

// Returns the entries of `folder` whose names begin with `prefix`, sorted.
std::vector<fs::path> entries(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().rfind(prefix, 0) == 0) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// Folders in the order in which they were added. Each is listed once, and only if it exists.
class Places {
 public:
  void add(const fs::path& folder) {
    std::error_code error;
    if (folder.empty() || !fs::is_directory(folder, error)) return;
    const fs::path real = fs::canonical(folder, error);
    if (error || std::find(real_.begin(), real_.end(), real) != real_.end()) return;
    real_.push_back(real);
    folders_.push_back(folder);
  }
  void add_toolkit(const fs::path& toolkit) {
    add(toolkit / "lib64");
    add(toolkit / "lib");
  }
  // Adds the libraries of the NVIDIA wheels of a Python that has its libraries in PREFIX/lib/python3.N. Debian calls
  // its site-packages dist-packages.
  void add_wheels(const fs::path& prefix) {
    for (const fs::path& python : entries(prefix / "lib", "python3")) {
      for (const char* packages : {"site-packages", "dist-packages"}) {
        for (const fs::path& wheel : entries(python / packages / "nvidia", "")) add(wheel / "lib");
      }
    }
  }
  std::vector<fs::path> take() { return std::move(folders_); }

 private:
  std::vector<fs::path> folders_;
  std::vector<fs::path> real_;
};

// Adds PREFIX for each PREFIX/bin/python3 on PATH, and for the file that it links to.
void add_pythons(const Variable& variable, Places& places) {
  for (const fs::path& folder : folders_of(variable("PATH").value_or(""))) {
    std::error_code error;
    const fs::path python = folder / "python3";
    if (!fs::exists(python, error)) continue;
    places.add_wheels(folder.parent_path());
    places.add_wheels(fs::canonical(python, error).parent_path().parent_path());
  }
}

std::string joined(const std::vector<fs::path>& folders) {
  std::string text;
  for (const fs::path& folder : folders) text += (text.empty() ? "" : ", ") + folder.string();
  return text;
}

std::string path_of(const engine::SharedLibrary& library) {
  link_map* map = nullptr;
  return dlinfo(library.get(), RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0 ? map->l_name : "";
}

// Opens the first file that exists and can be opened. `broken` receives why an existing file cannot be opened.
FoundLibrary open_in(const std::vector<fs::path>& folders, const std::string& name, std::string& broken) {
  for (const fs::path& folder : folders) {
    std::error_code error;
    const fs::path file = folder / name;
    if (!fs::exists(file, error)) continue;
    if (engine::SharedLibrary library = engine::open_library(file.c_str())) return {std::move(library), file, ""};
    const char* reason = dlerror();
    if (broken.empty() && reason != nullptr) broken = reason;
  }
  return {};
}

}  // namespace

LibraryFolders library_folders(const Variable& variable, const fs::path& root) {
  Places named;
  for (const fs::path& folder : folders_of(variable(kLibraryVariable).value_or(""))) named.add(folder);
  Places usual;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH", "NCCL_ROOT"}) {
    if (const auto toolkit = variable(name); toolkit && !toolkit->empty()) usual.add_toolkit(*toolkit);
  }
  for (const fs::path& toolkit : entries(root / "usr/local", "cuda")) usual.add_toolkit(toolkit);
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const auto prefix = variable(name); prefix && !prefix->empty()) usual.add_wheels(*prefix);
  }
  add_pythons(variable, usual);
  if (const auto home = variable("HOME"); home && !home->empty()) usual.add_wheels(fs::path(*home) / ".local");
  usual.add_wheels(root / "usr/local");
  usual.add_wheels(root / "usr");
  return {named.take(), usual.take()};
}

FoundLibrary find_library(const std::string& what, const std::vector<std::string>& names,
                          const LibraryFolders& folders) {
  std::string broken;
  for (const std::string& name : names) {
    FoundLibrary found = open_in(folders.named, name, broken);
    if (!found.library) {
      found.library = engine::open_library(name.c_str());
      if (found.library) found.path = path_of(found.library);
    }
    if (!found.library) found = open_in(folders.usual, name, broken);
    if (found.library) return found;
  }
  FoundLibrary none;
  if (!broken.empty()) {
    none.missing = fmt::format("{} cannot be opened: {}", what, broken);
    return none;
  }
  std::vector<fs::path> looked_in = folders.named;
  looked_in.insert(looked_in.end(), folders.usual.begin(), folders.usual.end());
  none.missing = fmt::format("{} was not found: no {} on LD_LIBRARY_PATH, in the system's library folders{}{}", what,
                             fmt::join(names, " or "), looked_in.empty() ? "" : ", or in ", joined(looked_in));
  return none;
}

FoundLibrary find_library(const std::string& what, const std::vector<std::string>& names) {
  const Variable environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  return find_library(what, names, library_folders(environment));
}

}  // namespace krigtune::cuda
