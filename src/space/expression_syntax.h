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

/// What a part of an expression is, as far as its text says.
enum class Kind { kCondition, kNumber, kText, kAny };

struct Expression::Node {
  Operator op = Operator::kNumber;
  Kind kind = Kind::kNumber;
  double number = 0.0;
  std::string text = {};  ///< a name or a text
  std::vector<Node> children = {};
  std::size_t at = 0;  ///< character of the text, from 0
};

/// One of the six comparisons, kEqual to kGreater.
bool is_comparison(Operator op);

/// Refuses operands that can have no meaning: a text in a sum, a number as a condition, a text beside a number.
/// `kinds` are those of the children. Throws UserError "at character 15: ...".
void check_operands(const Expression::Node& node, const std::vector<Kind>& kinds);
/// A number or text where a condition must stand.
void check_condition(const Expression::Node& node, Kind kind);

/// What it is where names are what `kind_of_name` says, which may throw for a name that there is not. Throws UserError
/// for operands that can have no meaning.
Kind kind_of(const Expression::Node& node, const std::function<Kind(const Expression::Node& name)>& kind_of_name);

/// "at character 15: what; hint"
[[noreturn]] void fail_at(std::size_t at, const std::string& what, const std::string& hint);

/// Arithmetic of + - * / %: NaN where it is undefined (division by zero), as it is for every later operation.
double arithmetic(Operator op, double a, double b);
/// A comparison with what is undefined does not hold, != too.
bool compare(Operator op, double a, double b);

struct Token {
  enum class Is { kEnd, kNumber, kText, kName, kSymbol } is = Is::kEnd;
  std::string_view text;  ///< as written; of a text: without its quotes
  double number = 0.0;
  std::size_t at = 0;  ///< character, from 0
};

/// Cuts an expression into tokens, one ahead. `text` must outlive it.
/// Throws UserError "at character 15: ..." for what is no token, with the operator that was meant.
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
  std::size_t end_ = 0;  ///< of next_
  Token next_;
};

}  // namespace krigtune::space
