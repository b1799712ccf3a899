#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "space/expression.h"

namespace krigtune::space {

enum class Operator {
  kNumber,  ///< a literal; true and false are 1 and 0
  kText,    ///< a literal
  kName,
  kOr,
  kAnd,
  kEqual,
  kNotEqual,
  kLessEqual,
  kGreaterEqual,
  kLess,
  kGreater,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kNot,
  kNegate,
  kMin,
  kMax,
};

/// The kind of a part of an expression, as far as its text determines it.
enum class Kind { kCondition, kNumber, kText, kAny };

struct Expression::Node {
  Operator op = Operator::kNumber;
  Kind kind = Kind::kNumber;
  double number = 0.0;
  std::string text = {};  ///< a name or a text
  std::vector<Node> children = {};
  std::size_t at = 0;  ///< position in the text, in characters from 0
};

/// Returns whether `op` is one of the six comparisons, kEqual to kGreater.
bool is_comparison(Operator op);

/// Refuses operands without meaning: text in a sum, a number as a condition, text compared with a number. `kinds` are
/// the kinds of the children. Throws UserError "at character 15: ...".
void check_operands(const Expression::Node& node, const std::vector<Kind>& kinds);
/// Throws UserError if `kind` is a number or text, because a condition is required.
void check_condition(const Expression::Node& node, Kind kind);

/// Returns the kind of an expression, given the kinds of its names; `kind_of_name` may throw for unknown names. Throws
/// UserError for operands without meaning.
Kind kind_of(const Expression::Node& node, const std::function<Kind(const Expression::Node& name)>& kind_of_name);

/// Throws UserError "at character 15: what; hint".
[[noreturn]] void fail_at(std::size_t at, const std::string& what, const std::string& hint);

/// Computes + - * / %. Returns NaN if the result is undefined (division by zero); later operations keep the NaN.
double arithmetic(Operator op, double a, double b);
/// Compares two numbers. Every comparison with an undefined number is false, also !=.
bool compare(Operator op, double a, double b);

struct Token {
  enum class Is { kEnd, kNumber, kText, kName, kSymbol } is = Is::kEnd;
  std::string_view text;  ///< as written; a quoted text without its quotes
  double number = 0.0;
  std::size_t at = 0;  ///< position in characters, from 0
};

/// Splits an expression into tokens, with one token of look-ahead. `text` must outlive it. Throws UserError "at
/// character 15: ..." for invalid characters, and suggests the operator that was probably meant.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : text_(text) { advance(); }

  const Token& next() const { return next_; }
  bool next_is(std::string_view symbol) const { return next_.is == Token::Is::kSymbol && next_.text == symbol; }
  /// Moves on to the token after next().
  void advance();

 private:
  Token number() const;
  Token quoted() const;
  Token name() const;
  Token symbol() const;

  std::string_view text_;
  std::size_t end_ = 0;  ///< end of next_
  Token next_;
};

}  // namespace krigtune::space
