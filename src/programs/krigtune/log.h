#pragma once
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>

#include "programs/krigtune/command_line.h"

namespace krigtune::cli {

enum class Verbosity { kQuiet, kNormal, kVerbose };

/// Messages besides the results: on stderr, and in full with times in a file. Safe to use from several threads.
class Log {
 public:
  /// Opens the file at once, so that a session does not fail at its end because it cannot be written. Throws UserError
  /// that begins with `named`.
  Log(const Console& console, Verbosity verbosity, const std::optional<std::filesystem::path>& file,
      const std::string& named = "--log-file");
  ~Log();

  void error(const std::string& text);     ///< "krigtune: ..."
  void warning(const std::string& text);   ///< "krigtune: warning: ..."
  void progress(const std::string& text);  ///< omitted with -q
  void detail(const std::string& text);    ///< only with -v

  /// Returns whether one line can be rewritten: on a terminal, if not quiet.
  bool is_live() const;
  /// Returns the terminal's current width in columns; at least 20.
  int width() const;
  /// Replaces the live line if its text changes. Call it only if is_live(). An empty text removes the line.
  void status(const std::string& text);
  /// Removes the live line, because it is out of date.
  void end_status();

 private:
  void say(const std::string& text, bool shown);

  const Console& console_;
  Verbosity verbosity_;
  std::ofstream file_;
  std::mutex mutex_;    // guards the streams and status_
  std::string status_;  // the live line that is shown; empty: none
};

}  // namespace krigtune::cli
