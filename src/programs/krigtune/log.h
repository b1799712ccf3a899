#pragma once
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

#include "programs/krigtune/command_line.h"

namespace krigtune::cli {

enum class Verbosity { kQuiet, kNormal, kVerbose };

/// What is said beside the results: on stderr, and in full with times in a file. Safe from several threads.
class Log {
 public:
  /// Opens the file at once: a session must not find out at its end that it cannot be written. UserError that begins
  /// with `named`.
  Log(const Console& console, Verbosity verbosity, const std::optional<std::filesystem::path>& file,
      const std::string& named = "--log-file");
  ~Log();

  void error(const std::string& text);     ///< "krigtune: ..."
  void warning(const std::string& text);   ///< "krigtune: warning: ..."
  void progress(const std::string& text);  ///< not with -q
  void detail(const std::string& text);    ///< with -v

  /// True where one line can be rewritten: a terminal, not quiet.
  bool is_live() const;
  /// Of the terminal as it is now, in columns; at least 20.
  int width() const;
  /// Replaces the live line where it says something else; only where is_live(). Empty: takes it away.
  void status(const std::string& text);
  /// Takes the live line away: what it said holds no longer.
  void end_status();

 private:
  void say(const std::string& text, bool shown);

  const Console& console_;
  Verbosity verbosity_;
  std::ofstream file_;
  std::mutex mutex_;    // of the streams and of status_
  std::string status_;  // the live line that is shown; empty: none
};

}  // namespace krigtune::cli
