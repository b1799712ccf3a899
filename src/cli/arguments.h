#pragma once
#include <boost/program_options.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace krigtune {

struct Command;

/// The options of one command as they were typed. Every value is kept as text and read by the one who asks for it, so
/// that all errors are of one form: UserError with the option, what is wrong, and what is right.
class Arguments {
 public:
  /// Throws UserError: unknown options with the nearest name, missing or superfluous operands.
  Arguments(const Command& command, const std::vector<std::string>& words);

  bool flag(const std::string& name) const;
  const std::string& operand() const { return operand_; }
  std::optional<std::string> text(const std::string& name) const;
  std::string text(const std::string& name, const std::string& fallback) const;
  std::vector<std::string> texts(const std::string& name) const;  ///< of an option that may be repeated
  std::vector<std::string> list(const std::string& name) const;   ///< "a,b,c"; absent: empty
  std::optional<std::int64_t> integer(const std::string& name, std::int64_t min, std::int64_t max) const;
  std::optional<double> positive_number(const std::string& name) const;
  /// What was typed after the command's name.
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;
  std::string operand_;
  boost::program_options::variables_map values_;
};

/// The options that every command has, then its own.
boost::program_options::options_description options_of(const Command& command);

/// An option with a value, for declarations: what(VALUE).
boost::program_options::value_semantic* value_named(const char* name);
boost::program_options::value_semantic* repeated_value_named(const char* name);

}  // namespace krigtune
