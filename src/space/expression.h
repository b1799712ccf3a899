#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "space/configuration.h"

namespace krigtune::space {

/// A condition or a value over parameters and facts of the job, parsed once: a constraint of the session, a parameter's
/// "when", or what a placeholder of a command stands for.
///
///   condition  ||   &&   == != <= >= < >   + -   * / %   ! -   ( ) min(a, b, ...) max(a, b, ...)   loosest first
///   names, numbers (1, 2.5, 1e6), true, false, 'text' or "text"
///
/// Comparisons do not chain. true and false are 1 and 0 in a calculation; texts know == and != only.
///
/// Truth is three-valued (Kleene): a name whose value is not known makes unknown what depends on it, and only that:
/// `false && unknown` is false. So one evaluation serves whole configurations and the beginnings of them.
class Expression {
 public:
  /// nullptr: not known.
  using Lookup = std::function<const Value*(std::string_view name)>;

  /// Throws UserError: "at character 15: ..." with the fix. It must be a condition, no bare number.
  static Expression parse(const std::string& text);
  /// The same for a value: a number, a truth or a text.
  static Expression parse_value(const std::string& text);

  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;  ///< each once, in order of appearance
  /// Empty: not known. Comparing text with a number, or a division by zero, holds not (false).
  std::optional<bool> holds(const Lookup& lookup) const;
  /// A name alone has the value that it has, a comparison is true or false, what is calculated a number: the integer 4,
  /// not 4.0, and NaN where it is undefined. Empty: not known.
  std::optional<Value> value(const Lookup& lookup) const;

  struct Node;
  const Node& root() const { return *root_; }  ///< for the layer itself

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace krigtune::space
