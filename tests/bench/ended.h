#pragma once
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "core/files.h"
#include "core/json.h"

namespace krigtune {

/// The output of a program, and how it ended.
struct Ended {
  int exit_code = -1;  ///< -1: ended by a signal
  std::string out;
  std::string err;
  Json document() const { return Json::parse(out); }
};

/// Runs a shell command; its stderr goes through a file in `folder`.
inline Ended run_shell(const std::string& command, const std::filesystem::path& folder) {
  const std::filesystem::path errors = folder / "stderr.txt";
  Ended result;
  FILE* pipe = popen((command + " 2>'" + errors.string() + "'").c_str(), "r");
  std::array<char, 4096> block{};
  for (std::size_t n = 0; (n = fread(block.data(), 1, block.size(), pipe)) > 0;) result.out.append(block.data(), n);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result.err = read_text(errors);
  return result;
}

}  // namespace krigtune
