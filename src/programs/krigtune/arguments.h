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

inline constexpr std::int64_t kMostTrials = 1'000'000;  ///< of a session, and of each run that is compared
inline constexpr std::int64_t kMostJobs = 1024;

/// The options of one command: as they were typed, else as the environment has them. Every value is kept as text and
/// read by the one who asks for it, so that all errors are of one form: UserError with the option or the variable, what
/// is wrong, and what is right.
class Arguments {
 public:
  enum class Origin { kNone, kTyped, kEnvironment };

  /// Throws UserError: unknown options with the nearest name, missing or superfluous operands.
  Arguments(const Command& command, const std::vector<std::string>& words, const Environment& environment);

  bool flag(const std::string& name) const;  ///< typed; the environment is not asked
  Origin origin(const std::string& name) const;
  /// What the value is called in errors: "--trials", or "KRIGTUNE_TRIALS" where it comes from there.
  std::string named(const std::string& name) const;
  const std::string& operand() const { return operand_; }  ///< empty where it may be left out and is
  std::optional<std::string> text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::vector<std::string> texts(const std::string& name) const;  ///< of an option that may be repeated
  std::vector<std::string> list(const std::string& name) const;   ///< "a,b,c"; absent: empty
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t min, std::int64_t max) const;
  std::optional<double> positive_number(const std::string& name) const;
  /// What follows "--", of a krigtune command that takes a command of the user's; empty: nothing.
  const std::vector<std::string>& users_command() const { return users_command_; }
  /// What was typed after the command's name.
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
  std::vector<std::string> users_command_;
  std::string operand_;
  boost::program_options::variables_map typed_;
  std::map<std::string, std::string> from_environment_;  // option, value: of those that were not typed
};

/// The options that every command has, then its own.
boost::program_options::options_description options_of(const Command& command);

/// What a value may be, for completion in the shell. Empty: not only these.
struct Words {
  std::vector<std::string> words = {};
  bool several = false;  ///< with commas between them
};

/// An option with a value, for declarations: what(VALUE). It may come from the environment too.
boost::program_options::value_semantic* value_named(const char* name, const Words& words = {});
/// One that makes sense for a single call only: never from the environment.
boost::program_options::value_semantic* typed_value_named(const char* name, const Words& words = {});
boost::program_options::value_semantic* repeated_value_named(const char* name);  ///< likewise

/// What it was declared with.
Words words_of(const boost::program_options::option_description& option);

/// "KRIGTUNE_LOG_FILE" for --log-file, where the environment may give it.
std::optional<std::string> variable_of(const boost::program_options::option_description& option);

/// A line for each KRIGTUNE_* variable that is no option of any command, with the nearest name.
std::vector<std::string> unknown_variables(const Environment& environment);

}  // namespace krigtune::cli
