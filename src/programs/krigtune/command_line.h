#pragma once
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "programs/manual/manual.h"

namespace krigtune::cli {

/// Variables that begin with KRIGTUNE_, by name.
using Environment = std::map<std::string, std::string>;

/// In characters.
struct TerminalSize {
  int width = 80;
  int height = 24;
};

/// What a program has from outside; tests bring their own. All that it names must outlive it.
struct Console {
  std::ostream& out;  ///< results
  std::ostream& err;  ///< progress and warnings
  const Clock& clock;
  std::filesystem::path program;      ///< the running executable: krigtune-bench is looked for beside it
  std::string typed_as = "krigtune";  ///< argv[0]: for lines that are to be typed again
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colors = false;  ///< on a terminal; off where NO_COLOR is set
  int width = 80;       ///< of the terminal, in characters
  /// The terminal's size now, which the user may change; empty: always 24 lines of `width`.
  TerminalSize (*terminal_size)() = nullptr;
  Environment environment = {};
};

/// The console of this process. `clock` must outlive it.
Console process_console(const Clock& clock, const std::string& typed_as);

/// The program `krigtune`. `arguments`: without the program's name. Returns the exit code (0, 1, 2, 3, 4 or 130);
/// throws nothing. This is the one place where errors end.
int run_command_line(const std::vector<std::string>& arguments, const Console& console);

/// The help of all commands in Markdown: docs/cli.md.
std::string command_line_reference();

/// One for the program and one for each command.
std::vector<manual::Page> manual_pages();

}  // namespace krigtune::cli
