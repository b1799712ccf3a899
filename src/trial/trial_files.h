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

/// config.json, cmd.txt and env.txt, and where `spec` sends its output. Of the environment only what can change a
/// measurement, because run directories are passed on and a whole environment holds people's tokens; never
/// kTokenVariable.
/// Of an adopted trial they are there, and only `spec` is set.
void write_inputs(const TrialFiles& files, const Json& config, ProcessSpec& spec, bool adopted = false);

/// exit.json, where it can be written. `where`: as its place says it; "": not said.
void write_exit(const TrialFiles& files, const ProcessResult& result, const std::string& where = "");

/// The last or the first `bytes` of the file; "" where it is not there or is no file. Throws EnvironmentError where the
/// machine does not let it be read: what became of the trial is then not known.
std::string read_head(const std::filesystem::path& file, std::size_t bytes);
std::string read_tail(const std::filesystem::path& file, std::size_t bytes);
/// What is read at most of a file that a job writes: some hundred thousand lines.
inline constexpr std::size_t kMostJobFileBytes = std::size_t{1} << 22;

/// The last 20 lines, and no more than 8 KiB of them: one endless line must not fill the journal.
std::string last_lines(std::string text);

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

}  // namespace krigtune::trial
