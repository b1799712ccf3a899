// op_kind.h, as a table.
#include "check/operand_table.h"

#include <array>

#include "krigtune/plan/step_plan.h"

namespace krigtune {
namespace {

using S = const Shape&;
std::int64_t one(S) { return 1; }
std::int64_t control(S) { return kControlElementCount; }
std::int64_t rows(S s) { return s.rows; }
std::int64_t two_rows(S s) { return 2 * s.rows; }
std::int64_t inner(S s) { return s.inner; }
std::int64_t outer(S s) { return s.outer; }
std::int64_t tokens(S s) { return s.batch * s.seq; }
std::int64_t rows_inner(S s) { return s.rows * s.inner; }
std::int64_t two_rows_inner(S s) { return 2 * s.rows * s.inner; }
std::int64_t rows_outer(S s) { return s.rows * s.outer; }
std::int64_t outer_inner(S s) { return s.outer * s.inner; }
std::int64_t seq_inner(S s) { return s.seq * s.inner; }
std::int64_t head_outputs(S s) { return s.batch * s.seq * s.inner; }
std::int64_t qkv(S s) { return s.batch * s.seq * (s.inner + 2 * s.kv_heads * (s.heads > 0 ? s.inner / s.heads : 0)); }
std::int64_t logsumexp(S s) { return s.batch * s.heads * s.seq; }
std::int64_t probabilities(S s) { return s.batch * s.heads * s.seq * s.seq; }

constexpr Role kIn = Role::kInput;
constexpr Role kOut = Role::kOutput;
constexpr Role kPlace = Role::kInPlace;

OperandRules exactly(std::vector<OperandRule> rules) {
  const std::size_t count = rules.size();
  return {std::move(rules), count};
}

OperandRules all_of(std::vector<OperandRule> repeated) { return {{}, 0, std::move(repeated)}; }

OperandRules attention_forward() {
  return {{{kIn, qkv},
           {Role::kSet, head_outputs},
           {Role::kSet, logsumexp},
           {Role::kSet, probabilities},
           {Role::kSet, probabilities},
           {Role::kSet, probabilities}},
          3};
}

OperandRules attention_backward() {
  return {{{kIn, head_outputs},
           {kIn, qkv},
           {kIn, head_outputs},
           {kIn, logsumexp},
           {kOut, qkv},
           {kIn, probabilities},
           {kIn, probabilities},
           {kIn, probabilities}},
          5};
}

OperandRules norm_backward(std::int64_t (*stats)(S), bool bias) {
  std::vector<OperandRule> rules = {{kIn, rows_inner}, {kIn, rows_inner},  {kIn, inner},
                                    {kIn, stats},      {kOut, rows_inner}, {kOut, inner}};
  if (bias) rules.push_back({kOut, inner});
  return exactly(std::move(rules));
}

using Table = std::array<OperandRules, kOpKindCount>;

void layer_rules(Table& table) {
  const auto set = [&](OpKind kind, OperandRules rules) { table[static_cast<std::size_t>(kind)] = std::move(rules); };
  set(OpKind::kLoadBatch, exactly({{Role::kSet, tokens}, {Role::kSet, tokens}}));
  set(OpKind::kEmbeddingForward, exactly({{kIn, rows}, {kIn, outer_inner}, {Role::kSet, rows_inner}}));
  set(OpKind::kEmbeddingBackward,
      {{{kIn, rows}, {kIn, rows_inner}, {kOut, outer_inner}, {Role::kHeld, outer_inner}}, 3});
  set(OpKind::kPositionsForward, exactly({{Role::kAddedTo, rows_inner}, {kIn, seq_inner}}));
  set(OpKind::kPositionsBackward, {{{kIn, rows_inner}, {kOut, seq_inner}, {Role::kHeld, seq_inner}}, 2});
  set(OpKind::kLayerNormForward,
      exactly({{kIn, rows_inner}, {kIn, inner}, {kIn, inner}, {Role::kSet, rows_inner}, {Role::kSet, two_rows}}));
  set(OpKind::kLayerNormBackward, norm_backward(two_rows, true));
  set(OpKind::kRmsNormForward,
      exactly({{kIn, rows_inner}, {kIn, inner}, {Role::kSet, rows_inner}, {Role::kSet, rows}}));
  set(OpKind::kRmsNormBackward, norm_backward(rows, false));
  set(OpKind::kLinearForward, {{{kIn, rows_inner}, {kIn, outer_inner}, {kOut, rows_outer}, {kIn, outer}}, 3});
  set(OpKind::kLinearBackwardInput, exactly({{kIn, rows_outer}, {kIn, outer_inner}, {kOut, rows_inner}}));
  set(OpKind::kLinearBackwardWeight, {{{kIn, rows_outer}, {kIn, rows_inner}, {kOut, outer_inner}, {kOut, outer}}, 3});
  set(OpKind::kAddBias, exactly({{Role::kAddedTo, rows_inner}, {kIn, inner}}));
  set(OpKind::kBiasBackward, exactly({{kIn, rows_inner}, {kOut, inner}}));
}

void branch_rules(Table& table) {
  const auto set = [&](OpKind kind, OperandRules rules) { table[static_cast<std::size_t>(kind)] = std::move(rules); };
  set(OpKind::kRotaryForward, exactly({{kPlace, qkv}}));
  set(OpKind::kRotaryBackward, exactly({{kPlace, qkv}}));
  set(OpKind::kAttentionForward, attention_forward());
  set(OpKind::kAttentionBackward, attention_backward());
  set(OpKind::kGeluForward, exactly({{kIn, rows_inner}, {Role::kSet, rows_inner}}));
  set(OpKind::kGeluBackward, exactly({{kIn, rows_inner}, {kPlace, rows_inner}}));
  set(OpKind::kSwigluForward, exactly({{kIn, two_rows_inner}, {Role::kSet, rows_inner}}));
  set(OpKind::kSwigluBackward, exactly({{kIn, two_rows_inner}, {kIn, rows_inner}, {kOut, two_rows_inner}}));
  set(OpKind::kDropoutForward, exactly({{kPlace, rows_inner}, {Role::kSet, rows_inner}}));
  set(OpKind::kDropoutBackward, exactly({{kPlace, rows_inner}, {kIn, rows_inner}}));
  set(OpKind::kAdd, exactly({{Role::kAddedTo}, {kIn}}));
  set(OpKind::kCrossEntropy, {{{kPlace, rows_outer}, {kIn, rows}, {Role::kSet, one}}, 3, {}, true});
  set(OpKind::kVocabMax, exactly({{kIn, rows_outer}, {Role::kSet, rows}}));
  set(OpKind::kVocabSumExp,
      exactly({{kPlace, rows_outer}, {kIn, rows}, {kIn, rows}, {Role::kSet, rows}, {Role::kSet, rows}}));
  set(OpKind::kVocabCrossEntropy,
      {{{kPlace, rows_outer}, {kIn, rows}, {kIn, rows}, {kIn, rows}, {Role::kSet, one}}, 5, {}, true});
}

void state_rules(Table& table) {
  const auto set = [&](OpKind kind, OperandRules rules) { table[static_cast<std::size_t>(kind)] = std::move(rules); };
  set(OpKind::kZero, all_of({{Role::kSet}}));
  set(OpKind::kCopy, all_of({{kIn}, {Role::kSet}}));
  set(OpKind::kAccumulate, all_of({{kIn}, {kOut}}));
  set(OpKind::kGradientNorm, {{{kOut, one}}, 1, {{kIn}}});
  set(OpKind::kLossScale, exactly({{kIn, one}, {kPlace, control}}));
  set(OpKind::kAdamW, {{}, 0, {{kPlace}, {kIn}, {kPlace}, {kPlace}}, true});
  set(OpKind::kSgd, {{}, 0, {{kPlace}, {kIn}, {kPlace}}, true});
  set(OpKind::kAllReduce, all_of({{kPlace}}));
  set(OpKind::kAllReduceMax, all_of({{kPlace}}));
  set(OpKind::kReduceScatter, all_of({{kPlace}}));
  set(OpKind::kAllGather, all_of({{kIn}, {Role::kSet}}));
}

}  // namespace

bool OperandRules::takes(std::size_t count) const {
  if (repeated.empty()) return count >= least && count <= first.size() + (control ? 1 : 0);
  if (count <= first.size()) return false;
  const std::size_t behind = (count - first.size()) % repeated.size();
  return behind == 0 || (control && behind == 1 && count > repeated.size());
}

const OperandRule& OperandRules::rule(std::size_t operand, std::size_t count) const {
  static const OperandRule kControl{Role::kInput, krigtune::control};
  if (operand < first.size()) return first[operand];
  const bool is_last = operand + 1 == count;
  if (repeated.empty() || (control && is_last && (count - first.size()) % repeated.size() == 1)) return kControl;
  return repeated[(operand - first.size()) % repeated.size()];
}

const OperandRules& operand_rules(OpKind kind) {
  static const Table kTable = [] {
    Table table;
    layer_rules(table);
    branch_rules(table);
    state_rules(table);
    return table;
  }();
  return kTable[static_cast<std::size_t>(kind)];
}

bool allows(Role role, Access access) {
  switch (role) {
    case Role::kInput:
    case Role::kHeld:
      return access == Access::kRead;
    case Role::kOutput:
      return access != Access::kRead;
    case Role::kSet:
      return access == Access::kWrite;
    case Role::kAddedTo:
    case Role::kInPlace:
      return access == Access::kReadWrite;
  }
  return false;
}

}  // namespace krigtune
