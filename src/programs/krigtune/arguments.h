#pragma once
#include <boost/program_options.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "programs/krigtune/command_line.h"

namespace krigtune::cli {

struct Command;

inline constexpr std::int64_t kMostTrials = 1'000'000;  ///< of a session, and of each run in a comparison
inline constexpr std::int64_t kMostJobs = 1024;

/// The options of one command, from the command line or else from the environment. Every value is kept as text and
/// converted by the caller that needs it, so that all errors have one form: UserError with the option or the variable,
/// what is wrong, and what is right.
class Arguments {
 public:
  enum class Origin { kNone, kTyped, kEnvironment };

  /// Throws UserError for unknown options (with the nearest name) and for missing or superfluous operands.
  Arguments(const Command& command, const std::vector<std::string>& words, const Environment& environment);

  bool flag(const std::string& name) const;  ///< from the command line only
  Origin origin(const std::string& name) const;
  /// Returns the name of the option for errors: "--trials", or "KRIGTUNE_TRIALS" if the environment set it.
  std::string named(const std::string& name) const;
  const std::string& operand() const { return operand_; }  ///< empty if it is optional and missing
  std::optional<std::string> text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::vector<std::string> texts(const std::string& name) const;  ///< for an option that may be repeated
  std::vector<std::string> list(const std::string& name) const;   ///< splits "a,b,c"; empty if absent
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t min, std::int64_t max) const;
  std::optional<double> positive_number(const std::string& name) const;
  /// Returns the words after "--" of a command that takes the user's own command, without a shell around them
  /// (jobs/command/shell_line.h); empty if there are none.
  const std::vector<std::string>& users_command() const { return users_command_; }
  const std::string& command_remark() const { return command_remark_; }  ///< how they were read; "" as they are
  /// Returns the words after the command's name.
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
  std::vector<std::string> users_command_;
  std::string command_remark_;
  std::string operand_;
  boost::program_options::variables_map typed_;
  std::map<std::string, std::string> from_environment_;  // option, value: of options that were not typed
};

/// Returns the options that every command has, followed by its own.
boost::program_options::options_description options_of(const Command& command);

/// The possible values of an option, for completion in the shell. Empty: other values are possible too.
struct Words {
  std::vector<std::string> words = {};
  bool several = false;  ///< separated by commas
};

/// Declares an option with a value: what(VALUE). The environment can set it too.
boost::program_options::value_semantic* value_named(const char* name, const Words& words = {});
/// Declares an option that makes sense for a single call only: the environment cannot set it.
boost::program_options::value_semantic* typed_value_named(const char* name, const Words& words = {});
boost::program_options::value_semantic* repeated_value_named(const char* name);  ///< the environment cannot set it

/// Returns the words with which the option was declared.
Words words_of(const boost::program_options::option_description& option);

/// Returns "KRIGTUNE_LOG_FILE" for --log-file. Empty if the environment cannot set the option.
std::optional<std::string> variable_of(const boost::program_options::option_description& option);

/// Returns a line for each KRIGTUNE_* variable that belongs to no option of any command, with the nearest name.
std::vector<std::string> unknown_variables(const Environment& environment);

}  // namespace krigtune::cli
