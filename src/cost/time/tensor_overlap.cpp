#include "cost/time/tensor_overlap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

#include "plan/op_traits.h"

namespace krigtune::cost {
namespace {

using plan::Operation;
using plan::OpId;
using schedule::OpKind;

bool is_tensor_collective(const Operation& operation) {
  return plan::is_collective(operation.kind) && operation.group == schedule::Group::kTensor;
}

bool is_product_of_linear(OpKind kind) {
  return kind == OpKind::kLinearForward || kind == OpKind::kLinearBackwardInput ||
         kind == OpKind::kLinearBackwardWeight;
}

class Pairing {
 public:
  explicit Pairing(const plan::StepPlan& plan) : plan_(plan), beside_(plan.operations.size()) {}

  void pair_independent() {
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const Operation& operation = plan_.operations[i];
      if (is_tensor_collective(operation) && operation.phase == schedule::Phase::kBackward) give(i, false);
    }
  }

  void pair_by_pieces() {
    for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
      const Operation& operation = plan_.operations[i];
      const bool in_parts = operation.kind == OpKind::kAllGather || operation.kind == OpKind::kReduceScatter;
      if (is_tensor_collective(operation) && in_parts && beside_[i].product < 0) give(i, true);
    }
  }

  std::vector<Beside> take() { return std::move(beside_); }

 private:
  // The nearest free product up to the next collective of the group: after what is gathered, before what is reduced.
  void give(std::size_t collective, bool dependent) {
    const Operation& exchange = plan_.operations[collective];
    const std::ptrdiff_t step = exchange.kind == OpKind::kAllGather ? 1 : -1;
    for (auto at = static_cast<std::ptrdiff_t>(collective) + step; in_window(at, exchange); at += step) {
      const auto id = static_cast<OpId>(at);
      const Operation& operation = plan_.operations[static_cast<std::size_t>(at)];
      if (!is_product_of_linear(operation.kind) || taken_.contains(id)) continue;
      if (touches(operation, exchange) != dependent) continue;
      taken_.insert(id);
      beside_[collective] = {id, dependent};
      return;
    }
  }

  bool in_window(std::ptrdiff_t at, const Operation& exchange) const {
    if (at < 0 || at >= std::ssize(plan_.operations)) return false;
    const Operation& operation = plan_.operations[static_cast<std::size_t>(at)];
    return !is_tensor_collective(operation) && operation.phase == exchange.phase && operation.layer == exchange.layer;
  }

  // Whether an operation accesses a buffer that the collective writes.
  static bool touches(const Operation& operation, const Operation& exchange) {
    std::set<plan::BufferId> written;
    for (const plan::Operand& operand : exchange.operands)
      if (operand.access != plan::Access::kRead) written.insert(operand.range.buffer);
    return std::ranges::any_of(operation.operands,
                               [&](const plan::Operand& operand) { return written.contains(operand.range.buffer); });
  }

  const plan::StepPlan& plan_;
  std::vector<Beside> beside_;
  std::set<OpId> taken_;
};

}  // namespace

std::vector<Beside> products_beside_collectives(const plan::StepPlan& plan, bool by_pieces) {
  Pairing pairing(plan);
  pairing.pair_independent();
  if (by_pieces) pairing.pair_by_pieces();
  return pairing.take();
}

double exposed_beside_s(double collective_s, double product_s, double slowdown) {
  if (product_s * slowdown <= collective_s) return collective_s - product_s;
  return collective_s * (1.0 - 1.0 / slowdown);
}

double exposed_by_pieces_s(double collective_s, double product_s, double slowdown, double ranks) {
  const double piece_s = collective_s / ranks;
  return piece_s + exposed_beside_s(collective_s - piece_s, product_s, slowdown);
}

}  // namespace krigtune::cost
