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
/// "when", or the meaning of a placeholder in a command. The operators, loosest first:
///
///   condition  ||   &&   == != <= >= < >   + -   * / %   ! -   ( ) min(a, b, ...) max(a, b, ...)
///   names, numbers (1, 2.5, 1e6), true, false, 'text' or "text"
///
/// Comparisons do not chain. In arithmetic true and false are 1 and 0; texts only support == and !=.
///
/// Truth is three-valued (Kleene): a name with an unknown value makes a result unknown only if the result depends on
/// it, so `false && unknown` is false. The same evaluation therefore works for complete and for partial configurations.
class Expression {
 public:
  /// Returns the value of a name, or nullptr if it is unknown.
  using Lookup = std::function<const Value*(std::string_view name)>;

  /// Parses a condition; a bare number is not one. Throws UserError: "at character 15: ..." with the fix.
  static Expression parse(const std::string& text);
  /// Parses a value: a number, a truth value or a text.
  static Expression parse_value(const std::string& text);

  const std::string& text() const { return text_; }
  std::vector<std::string> names() const;  ///< each name once, in order of appearance
  /// Evaluates the condition; empty if unknown. Division by zero and comparing text with a number give false.
  std::optional<bool> holds(const Lookup& lookup) const;
  /// Evaluates the value; empty if unknown. A name has its own value, a comparison is true or false, and arithmetic
  /// gives a number: the integer 4 rather than 4.0, and NaN if it is undefined.
  std::optional<Value> value(const Lookup& lookup) const;

  struct Node;
  const Node& root() const { return *root_; }  ///< for use inside layer space

 private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace krigtune::space
