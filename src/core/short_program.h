#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace krigtune {

/// Strings in the form that exec needs.
class CStrings {
 public:
  explicit CStrings(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  CStrings(const CStrings&) = delete;
  CStrings& operator=(const CStrings&) = delete;

  char* const* get() const { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

/// Returns a program's name and its arguments.
CStrings command_line(const std::filesystem::path& program, const std::vector<std::string>& arguments);

/// Names the program in the environment of programs that a loader of their own has started (scripts/dist).
inline constexpr const char* kProgramVariable = "KRIGTUNE_PROGRAM";
/// Returns the path by which this program can be started again: `running`, the file that the kernel runs, unless that
/// is a loader (ld-linux-*.so); then `named`, the value of kProgramVariable.
std::filesystem::path program_path(const std::filesystem::path& running, const char* named);
/// Returns program_path of this process; empty if /proc is not mounted.
std::filesystem::path own_program();

/// What a short program printed, and how it ended.
struct EndedProgram {
  int error = 0;     ///< errno if it could not be started
  int status = 0;    ///< as waitpid returns it
  std::string text;  ///< the beginning of what it printed to the stream that was read, at most 64 KiB

  bool succeeded() const { return error == 0 && status == 0; }
};

enum class Stream { kOut, kErr };

/// Runs one of our own programs until its end, and reads one of its two streams; the other is /dev/null. It is for a
/// quick look at what a program can do here: there is no time limit, and no signal is passed on. Trials are run by
/// trial::run_process.
EndedProgram run_short_program(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                               Stream read);

/// Returns how a program ended that did not succeed and printed nothing, as in "it was ended by signal 9".
std::string how_it_ended(const EndedProgram& ended);

}  // namespace krigtune
