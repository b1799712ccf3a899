#pragma once
#include <filesystem>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "programs/manual/manual.h"

namespace krigtune::cli {

/// The environment variables that begin with KRIGTUNE_, by name.
using Environment = std::map<std::string, std::string>;

/// Size in characters.
struct TerminalSize {
  int width = 80;
  int height = 24;
};

/// The connections of the program with the outside; tests provide their own. All referenced objects must outlive it.
struct Console {
  std::ostream& out;  ///< results
  std::ostream& err;  ///< progress and warnings
  const Clock& clock;
  std::filesystem::path program;      ///< the running executable; krigtune-bench is looked for beside it
  std::string typed_as = "krigtune";  ///< argv[0], for command lines that users can copy
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool colors = false;  ///< if stdout is a terminal and NO_COLOR is not set
  int width = 80;       ///< width of the terminal in characters
  /// Returns the terminal's current size, which the user may change. Null: always 24 lines of `width`.
  TerminalSize (*terminal_size)() = nullptr;
  Environment environment = {};
};

/// Returns the console of this process. `clock` must outlive it.
Console process_console(const Clock& clock, const std::string& typed_as);

/// Runs the program `krigtune`. `arguments` does not contain the program's name. Returns the exit code (0, 1, 2, 3, 4
/// or 130). Throws nothing: all errors are caught here.
int run_command_line(const std::vector<std::string>& arguments, const Console& console);

/// Returns the help of all commands as Markdown: docs/cli.md.
std::string command_line_reference();

/// Returns the manual pages of the program and of each command.
std::vector<manual::Page> manual_pages();

}  // namespace krigtune::cli
