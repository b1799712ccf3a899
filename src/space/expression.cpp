// Evaluation of expressions. Truth is Kleene's: unknown && false is false, unknown || true is true, and everything else
// that needs an unknown value is unknown. An undefined value (division by zero, text among numbers) is NaN, and every
// comparison with NaN is false.
#include "space/expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "space/expression_syntax.h"

namespace krigtune::space {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

struct Scalar {
  enum class Is { kUnknown, kNumber, kText } is = Is::kUnknown;
  double number = kUndefined;
  std::string_view text = {};

  static Scalar of(double number) { return {Is::kNumber, number, {}}; }
  static Scalar of(std::string_view text) { return {Is::kText, kUndefined, text}; }
  bool unknown() const { return is == Is::kUnknown; }
};

Scalar scalar_of(const Value* value) {
  if (value == nullptr) return {};
  if (const auto* text = std::get_if<std::string>(value)) return Scalar::of(*text);
  return Scalar::of(as_number(*value));
}

bool is_true(const Scalar& scalar) {
  return scalar.is == Scalar::Is::kNumber && scalar.number != 0.0 && !std::isnan(scalar.number);
}

Scalar compare(Operator op, const Scalar& a, const Scalar& b) {
  if (a.unknown() || b.unknown()) return {};
  if (a.is == Scalar::Is::kText && b.is == Scalar::Is::kText) {
    if (op == Operator::kEqual) return Scalar::of(a.text == b.text ? 1.0 : 0.0);
    if (op == Operator::kNotEqual) return Scalar::of(a.text != b.text ? 1.0 : 0.0);
  }
  return Scalar::of(compare(op, a.number, b.number) ? 1.0 : 0.0);
}

class Evaluator {
 public:
  explicit Evaluator(const Expression::Lookup& lookup) : lookup_(lookup) {}

  Scalar operator()(const Expression::Node& node) const {
    switch (node.op) {
      case Operator::kNumber:
        return Scalar::of(node.number);
      case Operator::kText:
        return Scalar::of(node.text);
      case Operator::kName:
        return scalar_of(lookup_(node.text));
      case Operator::kOr:
        return until(node, true);
      case Operator::kAnd:
        return until(node, false);
      case Operator::kNot: {
        const Scalar operand = (*this)(node.children[0]);
        return operand.unknown() ? operand : Scalar::of(is_true(operand) ? 0.0 : 1.0);
      }
      default:
        return is_comparison(node.op) ? compare(node.op, (*this)(node.children[0]), (*this)(node.children[1]))
                                      : number_of(node);
    }
  }

 private:
  // && ends at the first false, || at the first true.
  Scalar until(const Expression::Node& node, bool end) const {
    bool unknown = false;
    for (const Expression::Node& child : node.children) {
      const Scalar operand = (*this)(child);
      if (!operand.unknown() && is_true(operand) == end) return Scalar::of(end ? 1.0 : 0.0);
      unknown = unknown || operand.unknown();
    }
    return unknown ? Scalar{} : Scalar::of(end ? 0.0 : 1.0);
  }

  Scalar number_of(const Expression::Node& node) const {
    const Scalar first = (*this)(node.children[0]);
    if (first.unknown()) return {};
    double number = node.op == Operator::kNegate ? -first.number : first.number;
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      const Scalar next = (*this)(node.children[i]);
      if (next.unknown()) return {};
      number = arithmetic(node.op, number, next.number);
    }
    return Scalar::of(number);
  }

  const Expression::Lookup& lookup_;
};

void add_names(const Expression::Node& node, std::vector<std::string>& names) {
  if (node.op == Operator::kName && std::find(names.begin(), names.end(), node.text) == names.end()) {
    names.push_back(node.text);
  }
  for (const Expression::Node& child : node.children) add_names(child, names);
}

}  // namespace

bool is_comparison(Operator op) { return op >= Operator::kEqual && op <= Operator::kGreater; }

void fail_at(std::size_t at, const std::string& what, const std::string& hint) {
  throw UserError(fmt::format("at character {}: {}", at + 1, what), hint);
}

void check_condition(const Expression::Node& node, Kind kind) {
  if (kind == Kind::kNumber) fail_at(node.at, "a condition was expected, not a number", "compare it: ... <= 8");
  if (kind == Kind::kText) fail_at(node.at, "a condition was expected, not a text", "compare it: name == 'text'");
}

void check_operands(const Expression::Node& node, const std::vector<Kind>& kinds) {
  const bool logical = node.op == Operator::kOr || node.op == Operator::kAnd || node.op == Operator::kNot;
  for (std::size_t i = 0; logical && i < kinds.size(); ++i) check_condition(node.children[i], kinds[i]);
  if (logical) return;
  const auto text = std::find(kinds.begin(), kinds.end(), Kind::kText);
  if (text == kinds.end()) return;
  if (node.op != Operator::kEqual && node.op != Operator::kNotEqual) {
    fail_at(node.children[static_cast<std::size_t>(text - kinds.begin())].at,
            is_comparison(node.op) ? "texts have no order" : "a text cannot be calculated with",
            "texts can be compared with == and != only");
  }
  const Kind other = text == kinds.begin() ? kinds[1] : kinds[0];
  if (other == Kind::kNumber || other == Kind::kCondition) {
    fail_at(node.at, "a text is compared with a number", "compare texts with texts, numbers with numbers");
  }
}

Kind kind_of(const Expression::Node& node, const std::function<Kind(const Expression::Node& name)>& kind_of_name) {
  if (node.op == Operator::kName) return kind_of_name(node);
  std::vector<Kind> kinds;
  for (const Expression::Node& child : node.children) kinds.push_back(kind_of(child, kind_of_name));
  check_operands(node, kinds);
  return node.kind;
}

double arithmetic(Operator op, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kUndefined;
  switch (op) {
    case Operator::kAdd:
      return a + b;
    case Operator::kSubtract:
      return a - b;
    case Operator::kMultiply:
      return a * b;
    case Operator::kDivide:
      return b == 0.0 ? kUndefined : a / b;
    case Operator::kModulo:
      return b == 0.0 ? kUndefined : std::fmod(a, b);
    case Operator::kMin:
      return std::min(a, b);
    case Operator::kMax:
      return std::max(a, b);
    default:
      return kUndefined;
  }
}

bool compare(Operator op, double a, double b) {
  switch (op) {
    case Operator::kEqual:
      return a == b;
    case Operator::kNotEqual:
      return a < b || a > b;
    case Operator::kLessEqual:
      return a <= b;
    case Operator::kGreaterEqual:
      return a >= b;
    case Operator::kLess:
      return a < b;
    case Operator::kGreater:
      return a > b;
    default:
      return false;
  }
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  add_names(*root_, names);
  return names;
}

std::optional<bool> Expression::holds(const Lookup& lookup) const {
  const Scalar result = Evaluator(lookup)(*root_);
  return result.unknown() ? std::nullopt : std::optional(is_true(result));
}

std::optional<Value> Expression::value(const Lookup& lookup) const {
  if (root_->op == Operator::kName) {
    const Value* value = lookup(root_->text);
    return value == nullptr ? std::nullopt : std::optional(*value);
  }
  const Scalar result = Evaluator(lookup)(*root_);
  if (result.unknown()) return std::nullopt;
  if (result.is == Scalar::Is::kText) return Value(std::string(result.text));
  if (root_->kind == Kind::kCondition) return Value(is_true(result));
  return number_value(result.number);
}

}  // namespace krigtune::space
