#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "core/error.h"
#include "core/json.h"
#include "trial/process.h"

namespace krigtune::trial {

/// Files that every program trial leaves in its directory.
struct TrialFiles {
  explicit TrialFiles(const std::filesystem::path& trial_dir) : dir(std::filesystem::absolute(trial_dir)) {}

  std::filesystem::path dir;
  std::filesystem::path config() const { return dir / "config.json"; }
  std::filesystem::path result() const { return dir / "result.json"; }
  std::filesystem::path standard_output() const { return dir / "stdout.log"; }
  std::filesystem::path standard_error() const { return dir / "stderr.log"; }
};

/// Writes config.json, cmd.txt and env.txt, and sets where `spec` sends its output. env.txt contains only variables
/// that can change a measurement, because run directories are passed on and a whole environment contains people's
/// tokens; it never contains kTokenVariable. For an adopted trial the files exist, and only `spec` is set.
void write_inputs(const TrialFiles& files, const Json& config, ProcessSpec& spec, bool adopted = false);

/// Writes exit.json if possible. `where`: the location from its place; "": left out.
void write_exit(const TrialFiles& files, const ProcessResult& result, const std::string& where = "");

/// Return the first or the last `bytes` of the file; "" if it does not exist or is not a regular file. Throw
/// EnvironmentError if the machine prevents reading, because the trial's outcome is then unknown.
std::string read_head(const std::filesystem::path& file, std::size_t bytes);
std::string read_tail(const std::filesystem::path& file, std::size_t bytes);
/// The most that is read of a file that a job writes: some hundred thousand lines.
inline constexpr std::size_t kMostJobFileBytes = std::size_t{1} << 22;

/// Returns the last 20 lines, but at most 8 KiB, because one endless line must not fill the journal.
std::string last_lines(std::string text);

/// A directory that is removed with its owner.
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

}  // namespace krigtune::trial
