#pragma once
#include <boost/program_options.hpp>
#include <string>
#include <vector>

#include "programs/krigtune/arguments.h"
#include "programs/krigtune/command_line.h"
#include "programs/krigtune/log.h"

namespace krigtune::cli {

/// The environment of a command.
struct Context {
  const Console& console;
  const Arguments& arguments;
  Log& log;
};

/// One command. It needs one file and one line in the registry.
struct Command {
  const char* name;
  const char* operand;  ///< "SESSION", "DIR", in brackets if optional; "": none
  const char* summary;  ///< one line
  const char* details;  ///< paragraphs of --help
  void (*declare)(boost::program_options::options_description& options);
  int (*run)(const Context& context);  ///< returns the exit code
  /// If not empty, the user's own command may follow after "--", and with it or this option the operand may be left
  /// out.
  const char* command_option = "";
  /// The possible values of the operand, for completion. Empty: other values are possible too.
  std::vector<std::string> operand_words = {};
  /// Options that few need: only --help-all and the manual page show them.
  std::vector<std::string> rare_options = {};
};

Command ask_command();
Command compare_command();
Command completion_command();
Command diagnose_command();
Command doctor_command();
Command export_command();
Command help_command(const std::vector<Command>& others);  ///< `others`: the commands that it describes
Command init_command();
Command measure_command();
Command model_command();
Command plan_command();
Command predict_command();
Command recipes_command();
Command repair_command();
Command report_command();
Command results_command();
Command serve_command();
Command tell_command();
Command tune_command();
Command watch_command();

/// Returns all commands in the order of the help.
std::vector<Command> commands();

/// The exit codes of the program: docs/cli.md.
struct ExitCode {
  static constexpr int kDone = 0;
  static constexpr int kNoResult = 1;
  static constexpr int kBadInput = 2;
  static constexpr int kEnvironment = 3;
  static constexpr int kInternalError = 4;
  static constexpr int kInterrupted = 130;
};

/// What is wrong, for people, and the exit code that says of which kind it is.
struct Trouble {
  int exit_code = ExitCode::kInternalError;
  std::string message;
};
/// Describes the exception that is being handled, in the one place that knows them all. Call it in a catch block.
Trouble current_trouble();

std::string general_help();
/// What --help shows, on one screen of 80 columns and 40 lines, or what --help-all shows: every option, whole.
enum class HelpExtent { kUsual, kAll };
std::string help_of(const Command& command, HelpExtent extent);
std::string version_text();

// Parts of the help and of the manual pages.
std::string call_of(const Command& command);  ///< "tune SESSION", "doctor"
std::string purpose_text();
std::string precedence_text();
std::string exit_code_text();
std::string option_term(const boost::program_options::option_description& option);  ///< "-q, --quiet", "--out DIR"
std::string option_meaning(const boost::program_options::option_description& option);

}  // namespace krigtune::cli
