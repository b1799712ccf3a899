// Precedence climbing (Richards 1979): one loop for all binary operators, one recursion for operators that bind
// tighter.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "core/text.h"
#include "space/expression_syntax.h"

namespace krigtune::space {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool goes_on_name(char c) { return begins_name(c) || is_digit(c) || c == '.'; }

// Longer symbols first: the first match is used.
constexpr std::array<std::string_view, 17> kSymbols = {"==", "!=", "<=", ">=", "&&", "||", "<", ">", "+",
                                                       "-",  "*",  "/",  "%",  "!",  "(",  ")", ","};

struct Foreign {
  std::string_view written;
  std::string_view fix;
};
// Symbols of other languages; longer ones first.
constexpr std::array kForeignSymbols = {
    Foreign{"===", "write =="},
    Foreign{"!==", "write !="},
    Foreign{"<=>", "write <=, == or >="},
    Foreign{"**", "there are no powers: write a * a"},
    Foreign{"//", "write /"},
    Foreign{"=<", "write <="},
    Foreign{"=>", "write >="},
    Foreign{"<>", "write !="},
    Foreign{"<<", "write * 2"},
    Foreign{">>", "write / 2"},
    Foreign{"=", "write =="},
    Foreign{"&", "write &&"},
    Foreign{"|", "write ||"},
    Foreign{"^", "there are no powers: write a * a"},
    Foreign{"~", "write !"},
    Foreign{"\xE2\x89\xA4", "write <="},
    Foreign{"\xE2\x89\xA5", "write >="},
    Foreign{"\xE2\x89\xA0", "write !="},
    Foreign{"[", "there are no lists: write a == 1 || a == 2"},
    Foreign{"?", "there is no choice: write (a && b) || (!a && c)"},
    Foreign{";", "join conditions with &&"},
};
constexpr std::array kForeignWords = {
    Foreign{"and", "write &&"},
    Foreign{"or", "write ||"},
    Foreign{"not", "write !"},
    Foreign{"mod", "write %"},
    Foreign{"xor", "write !="},
    Foreign{"is", "write =="},
    Foreign{"in", "there are no lists: write a == 1 || a == 2"},
    Foreign{"if", "an implication is !a || b"},
    Foreign{"AND", "write &&"},
    Foreign{"OR", "write ||"},
    Foreign{"NOT", "write !"},
    Foreign{"True", "write true"},
    Foreign{"False", "write false"},
};

// Returns the whole character, which may have several bytes.
std::string_view character_at(std::string_view text, std::size_t at) {
  std::size_t length = 1;
  while (at + length < text.size() && (static_cast<unsigned char>(text[at + length]) & 0xC0U) == 0x80U) ++length;
  return text.substr(at, length);
}

}  // namespace

void Tokens::advance() {
  std::size_t at = end_;
  while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t' || text_[at] == '\n' || text_[at] == '\r')) ++at;
  end_ = at;
  if (at == text_.size()) {
    next_ = {Token::Is::kEnd, {}, 0.0, at};
    return;
  }
  const char first = text_[at];
  const bool fraction = first == '.' && at + 1 < text_.size() && is_digit(text_[at + 1]);
  if (is_digit(first) || fraction) {
    next_ = number();
    end_ = at + next_.text.size();
  } else if (first == '\'' || first == '"') {
    next_ = quoted();
    end_ = at + next_.text.size() + 2;
  } else {
    next_ = begins_name(first) ? name() : symbol();
    end_ = at + next_.text.size();
  }
}

Token Tokens::number() const {
  Token token{Token::Is::kNumber, {}, 0.0, end_};
  const char* begin = text_.data() + end_;
  const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), token.number);
  const auto length = static_cast<std::size_t>(stop - begin);
  std::size_t all = length;
  while (end_ + all < text_.size() && goes_on_name(text_[end_ + all])) ++all;
  token.text = text_.substr(end_, all);
  if (error != std::errc() || !std::isfinite(token.number)) {
    fail_at(end_, fmt::format("the number {} is out of range", token.text), "write a number up to 1e308");
  }
  if (all != length) {
    fail_at(end_, fmt::format("'{}' is not a number", token.text), "write 65536 or 6.5e4; names begin with a letter");
  }
  return token;
}

Token Tokens::quoted() const {
  const std::size_t close = text_.find(text_[end_], end_ + 1);
  if (close == std::string_view::npos) {
    fail_at(end_, "the text does not end", fmt::format("close it with {}", text_[end_]));
  }
  return {Token::Is::kText, text_.substr(end_ + 1, close - end_ - 1), 0.0, end_};
}

Token Tokens::name() const {
  std::size_t length = 1;
  while (end_ + length < text_.size() && goes_on_name(text_[end_ + length])) ++length;
  const std::string_view name = text_.substr(end_, length);
  for (const Foreign& word : kForeignWords) {
    if (name == word.written) fail_at(end_, fmt::format("unknown operator '{}'", name), std::string(word.fix));
  }
  return {Token::Is::kName, name, 0.0, end_};
}

Token Tokens::symbol() const {
  const std::string_view rest = text_.substr(end_);
  for (const Foreign& foreign : kForeignSymbols) {
    const bool is_ours = rest.substr(0, 2) == "&&" || rest.substr(0, 2) == "||";
    const bool is_equal = rest.substr(0, 2) == "==" && rest.substr(0, 3) != "===";
    if (is_ours || is_equal || rest.substr(0, foreign.written.size()) != foreign.written) continue;
    fail_at(end_, fmt::format("unknown operator '{}'", foreign.written), std::string(foreign.fix));
  }
  for (const std::string_view symbol : kSymbols) {
    if (rest.substr(0, symbol.size()) == symbol) return {Token::Is::kSymbol, rest.substr(0, symbol.size()), 0.0, end_};
  }
  fail_at(end_, fmt::format("unexpected character '{}'", character_at(text_, end_)),
          "known: + - * / % == != <= >= < > && || ! ( ) , min max");
}

namespace {

// Far longer than any expression that people write. The recursion over the tree then needs less than a megabyte of
// stack.
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

// Returns "'x'", or "the end".
std::string shown(const Token& token) {
  return token.is == Token::Is::kEnd ? "the end" : fmt::format("'{}'", token.text);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(text) {}

  Expression::Node condition() {
    if (tokens_.next().is == Token::Is::kEnd) fail_at(0, "the condition is empty", "write for example zero_stage == 3");
    Expression::Node root = value();
    check_condition(root, root.kind);
    return root;
  }

  Expression::Node value() {
    Expression::Node root = binary(1);
    if (tokens_.next_is(")")) fail_at(tokens_.next().at, "')' has no '('", "drop it, or add '('");
    if (tokens_.next().is != Token::Is::kEnd) {
      fail_at(tokens_.next().at, fmt::format("an operator was expected, not {}", shown(tokens_.next())),
              "join conditions with && or ||");
    }
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
  bool left_in_parentheses_ = false;  ///< the last operand was in parentheses
};

}  // namespace

Expression Expression::parse(const std::string& text) {
  if (text.size() > kMostCharacters) {
    fail_at(kMostCharacters, fmt::format("the condition is longer than {} characters", kMostCharacters),
            "split it: all constraints must be true");
  }
  Expression expression;
  expression.text_ = text;
  expression.root_ = std::make_shared<const Node>(Parser(text).condition());
  return expression;
}

Expression Expression::parse_value(const std::string& text) {
  if (text.size() > kMostCharacters) {
    fail_at(kMostCharacters, fmt::format("the expression is longer than {} characters", kMostCharacters), "shorten it");
  }
  Expression expression;
  expression.text_ = text;
  expression.root_ = std::make_shared<const Node>(Parser(text).value());
  return expression;
}

}  // namespace krigtune::space
