#include "check/derivatives.h"

#include <bit>
#include <set>

namespace krigtune {
namespace {

/// An operand of a backward operation, in terms of the forward operation's operands.
struct Source {
  enum What : std::uint8_t { kValue, kDerivative, kTarget, kInPlace } what;
  std::size_t operand;     ///< whose value or derivative; kTarget: whose derivative is the result
  std::size_t target = 0;  ///< kInPlace: reads the derivative of `operand`, becomes that of `target`
};
constexpr auto kV = Source::kValue;
constexpr auto kD = Source::kDerivative;
constexpr auto kT = Source::kTarget;
constexpr auto kI = Source::kInPlace;

struct Backward {
  OpKind kind;
  std::vector<Source> operands;
};

std::vector<Backward> backward_of_attention(std::size_t operands) {
  Backward backward{OpKind::kAttentionBackward, {{kD, 1}, {kV, 0}, {kV, 1}, {kV, 2}, {kT, 0}}};
  for (std::size_t kept = 3; kept < operands; ++kept) backward.operands.push_back({kV, kept});
  return {backward};
}

std::vector<Backward> linear_backward(std::size_t operands) {
  Backward weight{OpKind::kLinearBackwardWeight, {{kD, 2}, {kV, 0}, {kT, 1}}};
  if (operands > 3) weight.operands.push_back({kT, 3});
  return {{OpKind::kLinearBackwardInput, {{kD, 2}, {kV, 1}, {kT, 0}}}, weight};
}

// Sums are not here: see passes_on.
std::vector<Backward> backward_of(const Operation& forward) {
  switch (forward.kind) {
    case OpKind::kEmbeddingForward:
      return {{OpKind::kEmbeddingBackward, {{kV, 0}, {kD, 2}, {kT, 1}}}};
    case OpKind::kPositionsForward:
      return {{OpKind::kPositionsBackward, {{kD, 0}, {kT, 1}}}};
    case OpKind::kLayerNormForward:
      return {{OpKind::kLayerNormBackward, {{kD, 3}, {kV, 0}, {kV, 1}, {kV, 4}, {kT, 0}, {kT, 1}, {kT, 2}}}};
    case OpKind::kRmsNormForward:
      return {{OpKind::kRmsNormBackward, {{kD, 2}, {kV, 0}, {kV, 1}, {kV, 3}, {kT, 0}, {kT, 1}}}};
    case OpKind::kLinearForward:
      return linear_backward(forward.operands.size());
    case OpKind::kAddBias:
      return {{OpKind::kBiasBackward, {{kD, 0}, {kT, 1}}}};
    case OpKind::kRotaryForward:
      return {{OpKind::kRotaryBackward, {{kI, 0, 0}}}};
    case OpKind::kAttentionForward:
      return backward_of_attention(forward.operands.size());
    case OpKind::kGeluForward:
      return {{OpKind::kGeluBackward, {{kV, 0}, {kI, 1, 0}}}};
    case OpKind::kSwigluForward:
      return {{OpKind::kSwigluBackward, {{kV, 0}, {kD, 1}, {kT, 0}}}};
    case OpKind::kDropoutForward:
      return {{OpKind::kDropoutBackward, {{kI, 0, 0}, {kV, 1}}}};
    default:
      return {};
  }
}

// Operands whose derivative is that of operand 0 afterwards.
std::vector<std::size_t> passes_on(OpKind kind) {
  switch (kind) {
    case OpKind::kPositionsForward:
    case OpKind::kAddBias:
    case OpKind::kVocabSumExp:
      return {0};
    case OpKind::kAdd:
      return {0, 1};
    default:
      return {};
  }
}

bool is_loss(OpKind kind) { return kind == OpKind::kCrossEntropy || kind == OpKind::kVocabCrossEntropy; }

std::uint64_t symbol_of(const Executed& rank) {
  std::uint64_t name = rank.place;
  for (const Symbols& value : rank.before) name = mixed(name, value.hash());
  for (const Symbols& value : rank.after) name = mixed(name, value.hash());
  return name;
}

}  // namespace

std::uint64_t SymbolicCall::result(const std::vector<std::uint64_t>& inputs, std::size_t operand) const {
  std::uint64_t name = mixed(static_cast<std::uint64_t>(kind), place);
  for (const std::int64_t size : {shape.batch, shape.seq, shape.heads, shape.kv_heads, shape.rows, shape.inner,
                                  shape.outer, static_cast<std::int64_t>(shape.site)}) {
    name = mixed(name, static_cast<std::uint64_t>(size));
  }
  name = mixed(mixed(name, std::bit_cast<std::uint64_t>(shape.dropout)), std::bit_cast<std::uint64_t>(scale));
  for (const std::uint64_t input : inputs) name = mixed(name, input);
  return mixed(name, operand);
}

bool Derivatives::records(const Operation& operation) {
  if (operation.phase != Phase::kForward) return false;
  if (is_collective(operation.kind)) return operation.group == Group::kTensor;
  return is_loss(operation.kind) || !passes_on(operation.kind).empty() || !backward_of(operation).empty();
}

void Derivatives::record(const Operation& operation, std::vector<Executed> ranks) {
  tape_.push_back({&operation, std::move(ranks)});
}

void Derivatives::differentiate() {
  for (auto entry = tape_.rbegin(); entry != tape_.rend(); ++entry) {
    if (is_collective(entry->operation->kind)) {
      through_collective(*entry);
      continue;
    }
    std::set<std::uint64_t> seen;
    for (const Executed& rank : entry->ranks) {
      if (seen.insert(symbol_of(rank)).second) through(*entry, rank);
    }
  }
  tape_.clear();
}

Symbols Derivatives::of(const Symbols& value) const {
  const auto found = of_.find(value.hash());
  return found == of_.end() ? Symbols(value.elems()) : found->second;
}

void Derivatives::add(const Symbols& value, const Symbols& derivative) {
  of_.try_emplace(value.hash(), value.elems()).first->second.add(derivative);
}

void Derivatives::through(const Entry& entry, const Executed& rank) {
  const Operation& forward = *entry.operation;
  if (is_loss(forward.kind)) return add(rank.before[0], rank.after[0]);
  for (const Backward& backward : backward_of(forward)) {
    std::vector<std::uint64_t> inputs;
    for (const Source& source : backward.operands) {
      if (source.what == kT) continue;
      const Symbols& value = rank.after[source.operand];
      inputs.push_back(source.what == kV ? value.hash() : of(value).hash());
    }
    const SymbolicCall call{backward.kind, forward.shape, 1.0, rank.place};
    for (std::size_t k = 0; k < backward.operands.size(); ++k) {
      const Source& source = backward.operands[k];
      if (source.what != kT && source.what != kI) continue;
      const Symbols& target = rank.before[source.what == kT ? source.operand : source.target];
      add(target, Symbols(target.elems(), call.result(inputs, k)));
    }
  }
  for (const std::size_t operand : passes_on(forward.kind)) add(rank.before[operand], of(rank.after[0]));
}

// Of the sum of all ranks' parts, each part's derivative is the sum's.
void Derivatives::through_collective(const Entry& entry) {
  const std::vector<Executed>& ranks = entry.ranks;
  const OpKind kind = entry.operation->kind;
  const auto parts = static_cast<std::int64_t>(ranks.size());
  const std::size_t stride = kind == OpKind::kAllGather ? 2 : 1;
  for (std::size_t k = 0; k < ranks.front().before.size(); k += stride) {
    Symbols joined;
    for (std::int64_t r = 0; r < parts; ++r) {
      const Symbols& after = ranks[static_cast<std::size_t>(r)].after[k];
      const std::int64_t part = after.elems() / parts;
      if (kind == OpKind::kReduceScatter) joined.append(of(after.part(r * part, part)));
    }
    for (std::int64_t r = 0; r < parts; ++r) {
      const Executed& rank = ranks[static_cast<std::size_t>(r)];
      const std::int64_t elems = rank.before[k].elems();
      if (kind == OpKind::kAllReduce) add(rank.before[k], of(rank.after[k]));
      if (kind == OpKind::kReduceScatter) add(rank.before[k], joined);
      if (kind == OpKind::kAllGather) add(rank.before[k], of(rank.after[k + 1]).part(r * elems, elems));
    }
  }
}

}  // namespace krigtune
