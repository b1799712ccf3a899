// Precedence climbing (Richards 1979): one loop for all binary operators, one recursion for what binds tighter.
#include <fmt/format.h>

#include <array>

#include "expression_node.h"
#include "expression_tokens.h"
#include "krigtune/core/text.h"

namespace krigtune {
namespace {

// Far beyond what a person writes; the stack of a recursion over the tree stays below a megabyte.
constexpr std::size_t kMostCharacters = 4000;
constexpr int kDeepest = 100;

struct BinaryOperator {
  std::string_view symbol;
  Operator op;
  int precedence;  ///< higher binds tighter
};
constexpr int kComparison = 3;
constexpr std::array kBinaryOperators = {
    BinaryOperator{"||", Operator::kOr, 1},
    BinaryOperator{"&&", Operator::kAnd, 2},
    BinaryOperator{"==", Operator::kEqual, kComparison},
    BinaryOperator{"!=", Operator::kNotEqual, kComparison},
    BinaryOperator{"<=", Operator::kLessEqual, kComparison},
    BinaryOperator{">=", Operator::kGreaterEqual, kComparison},
    BinaryOperator{"<", Operator::kLess, kComparison},
    BinaryOperator{">", Operator::kGreater, kComparison},
    BinaryOperator{"+", Operator::kAdd, 4},
    BinaryOperator{"-", Operator::kSubtract, 4},
    BinaryOperator{"*", Operator::kMultiply, 5},
    BinaryOperator{"/", Operator::kDivide, 5},
    BinaryOperator{"%", Operator::kModulo, 5},
};

const BinaryOperator* find_binary(const Token& token) {
  if (token.is != Token::Is::kSymbol) return nullptr;
  for (const BinaryOperator& binary : kBinaryOperators) {
    if (binary.symbol == token.text) return &binary;
  }
  return nullptr;
}

// "'x'", or "the end"
std::string shown(const Token& token) {
  return token.is == Token::Is::kEnd ? "the end" : fmt::format("'{}'", token.text);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(text) {}

  Expression::Node condition() {
    if (tokens_.next().is == Token::Is::kEnd) fail_at(0, "the condition is empty", "write for example zero_stage == 3");
    Expression::Node root = binary(1);
    if (tokens_.next_is(")")) fail_at(tokens_.next().at, "')' has no '('", "drop it, or add '('");
    if (tokens_.next().is != Token::Is::kEnd) {
      fail_at(tokens_.next().at, fmt::format("an operator was expected, not {}", shown(tokens_.next())),
              "join conditions with && or ||");
    }
    check_condition(root, root.kind);
    return root;
  }

 private:
  Expression::Node binary(int loosest) {
    Expression::Node left = unary();
    while (const BinaryOperator* found = find_binary(tokens_.next())) {
      if (found->precedence < loosest) break;
      const Token symbol = tokens_.next();
      if (found->precedence == kComparison && is_comparison(left.op) && !left_in_parentheses_) {
        fail_at(symbol.at, "comparisons do not chain", "write 1 <= a && a <= 8");
      }
      tokens_.advance();
      std::vector<Expression::Node> operands;
      operands.push_back(std::move(left));
      operands.push_back(binary(found->precedence + 1));
      left = made(found->op, symbol.at, std::move(operands));
      left_in_parentheses_ = false;
    }
    return left;
  }

  Expression::Node unary() {
    const Token first = tokens_.next();
    if (++depth_ > kDeepest) {
      fail_at(first.at, fmt::format("more than {} levels of nesting", kDeepest), "drop needless parentheses");
    }
    Expression::Node node;
    if (tokens_.next_is("!") || tokens_.next_is("-")) {
      tokens_.advance();
      node = made(first.text == "!" ? Operator::kNot : Operator::kNegate, first.at, {unary()});
      left_in_parentheses_ = false;
    } else {
      node = operand();
    }
    --depth_;
    return node;
  }

  Expression::Node operand() {
    const Token token = tokens_.next();
    left_in_parentheses_ = false;
    if (tokens_.next_is("(")) return parenthesised();
    switch (token.is) {
      case Token::Is::kNumber:
        tokens_.advance();
        return {Operator::kNumber, Kind::kNumber, token.number, {}, {}, token.at};
      case Token::Is::kText:
        tokens_.advance();
        return {Operator::kText, Kind::kText, 0.0, std::string(token.text), {}, token.at};
      case Token::Is::kName:
        tokens_.advance();
        if (tokens_.next_is("(")) return function(token);
        if (token.text == "true") return {Operator::kNumber, Kind::kCondition, 1.0, {}, {}, token.at};
        if (token.text == "false") return {Operator::kNumber, Kind::kCondition, 0.0, {}, {}, token.at};
        return {Operator::kName, Kind::kAny, 0.0, std::string(token.text), {}, token.at};
      default:
        fail_at(token.at, fmt::format("a name, a number or '(' was expected, not {}", shown(token)),
                "complete the expression");
    }
  }

  Expression::Node parenthesised() {
    const std::size_t open = tokens_.next().at;
    tokens_.advance();
    Expression::Node inner = binary(1);
    close(open);
    left_in_parentheses_ = true;
    return inner;
  }

  Expression::Node function(const Token& name) {
    if (name.text != "min" && name.text != "max") {
      fail_at(name.at, fmt::format("unknown function '{}'", name.text), suggestion(name.text, {"min", "max"}));
    }
    const std::size_t open = tokens_.next().at;
    tokens_.advance();
    if (tokens_.next_is(")")) fail_at(tokens_.next().at, fmt::format("'{}' has no arguments", name.text), "name some");
    std::vector<Expression::Node> arguments;
    arguments.push_back(binary(1));
    while (tokens_.next_is(",")) {
      tokens_.advance();
      arguments.push_back(binary(1));
    }
    close(open);
    left_in_parentheses_ = false;
    return made(name.text == "min" ? Operator::kMin : Operator::kMax, name.at, std::move(arguments));
  }

  void close(std::size_t open) {
    if (tokens_.next_is(")")) {
      tokens_.advance();
      return;
    }
    const Token& next = tokens_.next();
    if (next.is == Token::Is::kEnd) {
      fail_at(next.at, "')' is missing", fmt::format("close the '(' of character {}", open + 1));
    }
    fail_at(next.at, fmt::format("')' or an operator was expected, not {}", shown(next)),
            fmt::format("close the '(' of character {}", open + 1));
  }

  static Expression::Node made(Operator op, std::size_t at, std::vector<Expression::Node> children) {
    std::vector<Kind> kinds;
    for (const Expression::Node& child : children) kinds.push_back(child.kind);
    const bool condition = is_comparison(op) || op == Operator::kOr || op == Operator::kAnd || op == Operator::kNot;
    Expression::Node node{op, condition ? Kind::kCondition : Kind::kNumber, 0.0, {}, std::move(children), at};
    check_operands(node, kinds);
    return node;
  }

  Tokens tokens_;
  int depth_ = 0;
  bool left_in_parentheses_ = false;  ///< whether the operand that was read last stood in parentheses
};

}  // namespace

Expression Expression::parse(const std::string& text) {
  if (text.size() > kMostCharacters) {
    fail_at(kMostCharacters, fmt::format("the condition is longer than {} characters", kMostCharacters),
            "split it: all of the constraints must hold");
  }
  Expression expression;
  expression.text_ = text;
  expression.root_ = std::make_shared<const Node>(Parser(text).condition());
  return expression;
}

}  // namespace krigtune
