#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace krigtune::space {

/// What is known of a value while only some variables are bound: the kinds that it may be, and its bounds as a number.
/// Truth is 1 and 0. A text is the number of its word.
struct BoundRange {
  double low = 0.0;
  double high = 0.0;
  bool number = false;
  bool undefined = false;  ///< by a division by zero
  bool absent = false;     ///< it depends on a parameter that does not exist

  static BoundRange exactly(double value) { return {value, value, true, false, false}; }
  static BoundRange truth(bool may_hold, bool may_fail, bool may_be_absent);
  bool determined() const { return int{number} + int{undefined} + int{absent} == 1 && (!number || low == high); }
  bool may_hold() const { return number && !(low == 0.0 && high == 0.0); }
  bool may_fail() const { return undefined || (number && low <= 0.0 && high >= 0.0); }
};

enum class BoundOp {
  kConstant,
  kAbsent,
  kVariable,
  kDigit,  ///< position of a variable's value in its domain
  kSum,    ///< these six: of any number of operands
  kProduct,
  kMin,
  kMax,
  kAnd,
  kOr,
  kDivide,
  kModulo,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kNot,
  kNegate,
  kHolds,      ///< 1 where the operand holds, else 0: never absent
  kOtherwise,  ///< the first operand, or the second (a constant) where it is absent
  kSelect,     ///< the second operand where the first one holds, else the third; the first is never absent
};

/// The values of a variable, as numbers. A continuous one has bounds only.
struct Domain {
  std::vector<double> values;
  double low = 0.0;
  double high = 0.0;
  bool continuous = false;
  bool integral() const;
};

/// Which variables have which values.
struct Assignment {
  std::vector<int> digits;     ///< position in the domain, -1: not bound. A continuous variable: 0 where bound
  std::vector<double> values;  ///< of those that are bound

  explicit Assignment(std::size_t variables) : digits(variables, -1), values(variables, 0.0) {}
  void bind(std::size_t variable, int digit, double value) {
    digits[variable] = digit;
    values[variable] = value;
  }
  void unbind(std::size_t variable) { digits[variable] = -1; }
};

/// What expressions with open variables still need to know of the bound ones, as words.
using Residue = std::vector<std::uint64_t>;

/// Expressions over numbered variables, in one arena: nodes are shared and point to earlier ones only.
class BoundExpressions {
 public:
  explicit BoundExpressions(std::vector<Domain> domains) : domains_(std::move(domains)) {}

  const std::vector<Domain>& domains() const { return domains_; }
  int constant(double value);
  int absent();
  /// kVariable, kDigit
  int variable(BoundOp op, std::size_t variable);
  /// Chains of one associative operation become one node, where the order of its operands cannot change the result:
  /// sums and products of integers that are exact, and min, max, && and || always. Throws UserError when an expression
  /// grows beyond reason.
  int node(BoundOp op, const std::vector<int>& operands);
  /// The variables that it reads, ascending.
  std::vector<std::size_t> variables_of(int root) const;

  /// The value as far as it is known. Appends to `residue` (where given) what an evaluation with more variables bound
  /// needs to know of those bound now: assignments of the same variables with the same residue go on alike. Nothing
  /// where the value is determined; bound operands of one operation are one word.
  BoundRange evaluate(int root, const Assignment& assignment, Residue* residue = nullptr) const;

 private:
  struct Node {
    BoundOp op = BoundOp::kConstant;
    double number = 0.0;
    std::size_t variable = 0;
    std::vector<int> operands = {};
    BoundRange extent = {};  ///< over all assignments
    bool integral = false;   ///< whole, and small enough for exact sums
    double size = 1.0;       ///< nodes of the tree that it stands for
  };

  int add(Node node);
  BoundRange extent_of(const Node& node) const;
  bool may_join(const Node& node, int operand) const;
  BoundRange many(const Node& node, const Assignment& assignment, Residue* residue) const;
  BoundRange few(const Node& node, const Assignment& assignment, Residue* residue) const;
  BoundRange select(const Node& node, const Assignment& assignment, Residue* residue) const;

  std::vector<Domain> domains_;
  std::vector<Node> nodes_;
};

}  // namespace krigtune::space
