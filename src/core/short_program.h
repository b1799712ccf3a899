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
