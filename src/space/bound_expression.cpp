// Partial evaluation. The residue of an operation consists of the residues of its unbound operands, then what is known
// about the others (one folded word for associative operations), then a mask that tells them apart. It can be decoded
// from its end, so two assignments have the same residue only if every later evaluation treats them equally.
#include "space/bound_expression.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "space/ranges.h"

namespace krigtune::space {
namespace {

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53
constexpr double kLargestTree = 1e5;

bool is_many(BoundOp op) { return op >= BoundOp::kSum && op <= BoundOp::kOr; }
bool is_whole(double value) { return value == std::trunc(value) && std::abs(value) <= kExactIntegers; }

std::uint64_t word(const BoundRange& determined) {
  constexpr std::uint64_t kAbsentWord = 0x7ff8000000000001ULL;  // a NaN of its own, as no calculation makes it
  constexpr std::uint64_t kUndefinedWord = 0x7ff8000000000002ULL;
  if (determined.absent) return kAbsentWord;
  if (determined.undefined) return kUndefinedWord;
  return std::bit_cast<std::uint64_t>(determined.low + 0.0);  // -0 and 0 are one
}

double largest_magnitude(const BoundRange& extent) { return std::max(std::abs(extent.low), std::abs(extent.high)); }

}  // namespace

bool Domain::integral() const { return !continuous && std::all_of(values.begin(), values.end(), is_whole); }

int BoundExpressions::constant(double value) {
  Node node;
  node.number = value;
  node.extent = BoundRange::exactly(value);
  node.integral = is_whole(value);
  return add(std::move(node));
}

int BoundExpressions::absent() {
  Node node;
  node.op = BoundOp::kAbsent;
  node.extent = {0.0, 0.0, false, false, true};
  return add(std::move(node));
}

int BoundExpressions::variable(BoundOp op, std::size_t variable) {
  const Domain& domain = domains_[variable];
  Node node;
  node.op = op;
  node.variable = variable;
  const bool digit = op == BoundOp::kDigit;
  node.extent = {digit ? 0.0 : domain.low, digit ? static_cast<double>(domain.values.size()) - 1.0 : domain.high, true,
                 false, false};
  node.integral = digit || domain.integral();
  return add(std::move(node));
}

int BoundExpressions::add(Node node) {
  nodes_.push_back(std::move(node));
  return static_cast<int>(nodes_.size()) - 1;
}

bool BoundExpressions::may_join(const Node& node, int operand) const {
  const Node& inner = nodes_[static_cast<std::size_t>(operand)];
  if (inner.op != node.op) return false;
  if (node.op != BoundOp::kSum && node.op != BoundOp::kProduct) return true;
  return node.integral;  // every partial result is a whole number below 2^53
}

int BoundExpressions::node(BoundOp op, const std::vector<int>& operands) {
  Node node;
  node.op = op;
  const auto at = [&](int operand) -> const Node& { return nodes_[static_cast<std::size_t>(operand)]; };
  const auto each_is_whole = [&](int operand) { return at(operand).integral; };
  double magnitude = op == BoundOp::kProduct ? 1.0 : 0.0;
  node.extent = is_many(op) ? identity(op) : BoundRange{};
  for (const int operand : operands) {
    const double largest = largest_magnitude(at(operand).extent);
    magnitude = op == BoundOp::kProduct ? magnitude * std::max(1.0, largest) : magnitude + largest;
    node.size += at(operand).size;
    if (is_many(op)) node.extent = combine(op, node.extent, at(operand).extent);
  }
  if (node.size > kLargestTree) throw UserError("the conditions refer to each other too often", "make them simpler");
  const bool whole = op != BoundOp::kDivide && std::all_of(operands.begin(), operands.end(), each_is_whole);
  node.integral = whole && magnitude < kExactIntegers;
  for (const int operand : operands) {
    const bool join = is_many(op) && may_join(node, operand);
    const std::vector<int> inner = join ? at(operand).operands : std::vector<int>{operand};
    node.operands.insert(node.operands.end(), inner.begin(), inner.end());
  }
  if (!is_many(op)) node.extent = extent_of(node);
  if (node.extent.determined() && node.extent.number) return constant(node.extent.low);
  return add(std::move(node));
}

BoundRange BoundExpressions::extent_of(const Node& node) const {
  const auto extent = [&](std::size_t i) { return nodes_[static_cast<std::size_t>(node.operands[i])].extent; };
  if (node.op == BoundOp::kSelect) {
    return extent(0).determined() ? extent(extent(0).may_hold() ? 1 : 2) : either(extent(1), extent(2));
  }
  return node.operands.size() == 1 ? combine(node.op, extent(0)) : combine(node.op, extent(0), extent(1));
}

std::vector<std::size_t> BoundExpressions::variables_of(int root) const {
  std::vector<bool> reached(nodes_.size(), false);
  std::vector<bool> read(domains_.size(), false);
  std::vector<int> open = {root};
  while (!open.empty()) {
    const auto at = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (reached[at]) continue;
    reached[at] = true;
    const Node& node = nodes_[at];
    if (node.op == BoundOp::kVariable || node.op == BoundOp::kDigit) read[node.variable] = true;
    open.insert(open.end(), node.operands.begin(), node.operands.end());
  }
  std::vector<std::size_t> variables;
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (read[i]) variables.push_back(i);
  }
  return variables;
}

BoundRange BoundExpressions::evaluate(int root, const Assignment& assignment, Residue* residue) const {
  const Node& node = nodes_[static_cast<std::size_t>(root)];
  switch (node.op) {
    case BoundOp::kConstant:
    case BoundOp::kAbsent:
      return node.extent;
    case BoundOp::kVariable:
      return assignment.digits[node.variable] < 0 ? node.extent : BoundRange::exactly(assignment.values[node.variable]);
    case BoundOp::kDigit:
      return assignment.digits[node.variable] < 0 ? node.extent : BoundRange::exactly(assignment.digits[node.variable]);
    default:
      break;
  }
  const std::size_t before = residue != nullptr ? residue->size() : 0;
  const BoundRange result = is_many(node.op) ? many(node, assignment, residue) : few(node, assignment, residue);
  if (residue != nullptr && result.determined()) residue->resize(before);
  return result;
}

BoundRange BoundExpressions::many(const Node& node, const Assignment& assignment, Residue* residue) const {
  constexpr std::size_t kWordBits = 64;
  BoundRange all = identity(node.op);
  BoundRange known = all;
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const BoundRange operand = evaluate(node.operands[i], assignment, residue);
    all = combine(node.op, all, operand);
    const bool decided = (node.op == BoundOp::kAnd && !all.may_hold() && !all.absent) ||
                         (node.op == BoundOp::kOr && !all.may_fail() && !all.absent);
    if (decided) return all;
    if (residue == nullptr) continue;
    if (operand.determined()) {
      known = combine(node.op, known, operand);
      mask |= std::uint64_t{1} << (i % kWordBits);
    }
    if (i % kWordBits == kWordBits - 1) residue->push_back(std::exchange(mask, 0));
  }
  if (residue != nullptr) residue->insert(residue->end(), {word(known), mask});
  return all;
}

BoundRange BoundExpressions::few(const Node& node, const Assignment& assignment, Residue* residue) const {
  if (node.op == BoundOp::kSelect) return select(node, assignment, residue);
  const BoundRange a = evaluate(node.operands[0], assignment, residue);
  if (node.operands.size() == 1) return combine(node.op, a);
  if (residue != nullptr && a.determined()) residue->push_back(word(a));
  const BoundRange b = evaluate(node.operands[1], assignment, residue);
  if (residue != nullptr) {
    if (b.determined()) residue->push_back(word(b));
    residue->push_back((a.determined() ? 1U : 0U) + (b.determined() ? 2U : 0U));
  }
  return combine(node.op, a, b);
}

BoundRange BoundExpressions::select(const Node& node, const Assignment& assignment, Residue* residue) const {
  const auto push = [&](std::uint64_t tag) {
    if (residue != nullptr) residue->push_back(tag);
  };
  const BoundRange condition = evaluate(node.operands[0], assignment, residue);
  if (condition.determined()) {
    const BoundRange chosen = evaluate(node.operands[condition.may_hold() ? 1 : 2], assignment, residue);
    push(condition.may_hold() ? 1 : 2);
    return chosen;
  }
  const BoundRange a = evaluate(node.operands[1], assignment, residue);
  if (a.determined()) push(word(a));
  const BoundRange b = evaluate(node.operands[2], assignment, residue);
  if (b.determined()) push(word(b));
  push(4U + (a.determined() ? 1U : 0U) + (b.determined() ? 2U : 0U));
  return either(a, b);
}

}  // namespace krigtune::space
