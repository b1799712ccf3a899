#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace krigtune::space {

/// What is known about a value while only some variables are bound: which kinds it may have, and its bounds as a
/// number. True and false are 1 and 0, and a text is the number of its word.
struct BoundRange {
  double low = 0.0;
  double high = 0.0;
  bool number = false;
  bool undefined = false;  ///< it may come from a division by zero
  bool absent = false;     ///< it may depend on a parameter that does not exist

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
  kSum,    ///< kSum to kOr take any number of operands
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
  kIsTrue,     ///< 1 if the operand is true, otherwise 0; never absent
  kOtherwise,  ///< the first operand or, if that is absent, the second (a constant)
  kSelect,     ///< the second operand if the first is true, otherwise the third; the first is never absent
};

/// The values of a variable, as numbers. A continuous variable has bounds only.
struct Domain {
  std::vector<double> values;
  double low = 0.0;
  double high = 0.0;
  bool continuous = false;
  bool integral() const;
};

/// The values of the variables that are bound.
struct Assignment {
  std::vector<int> digits;     ///< position in the domain, -1 if not bound; 0 for a bound continuous variable
  std::vector<double> values;  ///< values of the bound variables

  explicit Assignment(std::size_t variables) : digits(variables, -1), values(variables, 0.0) {}
  void bind(std::size_t variable, int digit, double value) {
    digits[variable] = digit;
    values[variable] = value;
  }
  void unbind(std::size_t variable) { digits[variable] = -1; }
};

/// What expressions with unbound variables still depend on among the bound ones, as words.
using Residue = std::vector<std::uint64_t>;

/// Expressions over numbered variables, stored in one arena: nodes are shared and refer to earlier nodes only.
class BoundExpressions {
 public:
  explicit BoundExpressions(std::vector<Domain> domains) : domains_(std::move(domains)) {}

  const std::vector<Domain>& domains() const { return domains_; }
  int constant(double value);
  int absent();
  /// Adds a kVariable or kDigit node.
  int variable(BoundOp op, std::size_t variable);
  /// Adds a node. A chain of one associative operation becomes a single node if the order of its operands cannot change
  /// the result: always for min, max, && and ||, and for sums and products of integers that are exact. Throws UserError
  /// if an expression becomes unreasonably large.
  int node(BoundOp op, const std::vector<int>& operands);
  /// Returns the variables that the expression reads, in ascending order.
  std::vector<std::size_t> variables_of(int root) const;

  /// Evaluates as far as the bound variables allow. If `residue` is given, appends what a later evaluation with more
  /// variables bound depends on among those bound now: two assignments of the same variables with the same residue have
  /// the same results from here on. Appends nothing if the value is determined. The bound operands of one operation
  /// become one word.
  BoundRange evaluate(int root, const Assignment& assignment, Residue* residue = nullptr) const;

 private:
  struct Node {
    BoundOp op = BoundOp::kConstant;
    double number = 0.0;
    std::size_t variable = 0;
    std::vector<int> operands = {};
    BoundRange extent = {};  ///< range over all assignments
    bool integral = false;   ///< whole numbers, small enough for exact sums
    double size = 1.0;       ///< number of nodes if the expression were a tree
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
