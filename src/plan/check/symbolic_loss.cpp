// The two ends of the symbolic run that differentiation does not see: which tokens go in, and what a loss over a split
// vocabulary needs of all ranks.
#include <fmt/format.h>

#include "check/symbolic_run.h"
#include "krigtune/plan/op_traits.h"

namespace krigtune {
namespace {

constexpr std::uint64_t kBatchSeed = 3;

}  // namespace

void SymbolicRun::load(std::size_t i, const Place& place, const SymbolicCall& call) {
  const std::int64_t batch = (steps_ * plan_.micro_steps + plan_.operations[i].micro_step) * plan_.ranks + place.data;
  for (std::size_t k = 0; k < 2; ++k) {
    const std::uint64_t name = call.result({kBatchSeed, unsigned_of(batch)}, k);
    Symbols values(plan_.operations[i].operands[k].range.elems, name);
    batch_[static_cast<std::size_t>(place.data)][k] = values;
    write(i, k, place, values);
  }
}

void SymbolicRun::expect(std::size_t i, std::size_t operand, const Place& place, const Symbols& value,
                         const std::string& what) {
  if (look(i, operand, place) == value) return;
  complain(i, plan_.operations[i].operands[operand].range.buffer, fmt::format("does not read {}", what));
}

void SymbolicRun::check_batch(std::size_t i, const Place& place) {
  const Operation& operation = plan_.operations[i];
  const std::size_t last = operation.operands.size() - 1;
  const OpTraits& traits = traits_of(operation.kind);
  const bool is_loss = traits.is_loss;
  const bool is_scaled = is_loss && operation.operands[last].access == Access::kRead;
  if (is_scaled) expect(i, last, place, control_, "the step's control");
  if (is_loss && is_scaled != (plan_.control >= 0)) {
    complain(i, operation.operands[last].range.buffer, "does not scale the loss as the plan says");
  }
  const auto& [tokens, targets] = batch_[static_cast<std::size_t>(place.data)];
  for (std::size_t k = 0; k < traits.operands.size(); ++k) {
    const std::string_view name = traits.operands[k].name;
    if (name == "tokens") expect(i, k, place, tokens, "the micro-step's tokens");
    if (name == "targets") expect(i, k, place, targets, "the micro-step's targets");
  }
}

// The largest logit of all ranks, then the sums over all ranks.
void SymbolicRun::check_split_loss(std::size_t i, const Place& place) {
  const auto data = static_cast<std::size_t>(place.data);
  const auto sum_of_all = [](const std::vector<Symbols>& ranks) {
    Symbols sum = ranks.front();
    for (std::size_t r = 1; r < ranks.size(); ++r) sum.add(ranks[r]);
    return sum;
  };
  const OpKind kind = plan_.operations[i].kind;
  const auto tensor = static_cast<std::size_t>(place.tensor);
  if (kind == OpKind::kVocabSumExp) {
    expect(i, 0, place, logits_[data][tensor], "the logits whose largest is known");
    std::vector<Symbols> names;
    for (const Symbols& top : tops_[data]) names.emplace_back(top.elems(), top.hash());
    const Symbols top = sum_of_all(names);
    expect(i, 2, place, Symbols(top.elems(), top.hash()), "the largest logits of all tensor ranks");
  }
  if (kind == OpKind::kVocabCrossEntropy) {
    expect(i, 0, place, exponentials_[data][tensor], "the exponentials that were summed");
    expect(i, 2, place, sum_of_all(sums_[data]), "the sums over all tensor ranks");
    expect(i, 3, place, sum_of_all(at_target_[data]), "the targets' logits, whose rank may be another");
  }
}

void SymbolicRun::check_uses() {
  for (const Place& place : world_) {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      // Gradients are there for the optimizer, all else that is kept for whoever comes after the step.
      if (!plan_.buffers[b].persistent || plan_.buffers[b].term == Term::kGradients) continue;
      for (const Piece& piece : memory(place, static_cast<BufferId>(b)).pieces()) {
        if (piece.writer >= 0) is_used_[static_cast<std::size_t>(piece.writer)] = true;
      }
    }
  }
  std::vector<std::size_t> last_use(plan_.buffers.size(), 0);
  for (std::size_t i = 0; i < plan_.operations.size(); ++i) {
    for (const Operand& operand : plan_.operations[i].operands) {
      last_use[static_cast<std::size_t>(operand.range.buffer)] = i;
    }
  }
  for (std::size_t i = 0; i < is_used_.size(); ++i) {
    const Operation& operation = plan_.operations[i];
    // Layers are computed again to their end, as frameworks do, though their last output is not needed.
    const bool is_end = operation.phase == Phase::kRecompute &&
                        last_use[static_cast<std::size_t>(operation.operands.front().range.buffer)] == i;
    if (!is_used_[i] && !is_end) findings_.add(i, "computes what nobody reads");
  }
}

}  // namespace krigtune
