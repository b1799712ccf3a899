#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "krigtune/core/error.h"

namespace krigtune {

/// A directory that goes with its owner.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "krigtune-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw EnvironmentError(
          fmt::format("no directory can be made in '{}'", std::filesystem::temp_directory_path().string()),
          "set TMPDIR to one that can be written");
    }
    path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace krigtune
