// The loss over a vocabulary that is split over the tensor ranks (Shoeybi et al. 2019, section 3): of the logits, which
// are large, nothing is communicated; of each row its maximum m, its sum and the target's logit are.
//
//   m = max_j l_j (all-reduce);  s = sum_j exp(l_j - m),  a = l_target - m (all-reduce);  loss = log s - a
//   dl_j = exp(l_j - m) / s - [j = target]
#include "step/vocabulary_part.h"

#include <utility>

namespace krigtune {

void VocabularyPart::load_batch() {
  const StepSizes& n = to_.sizes();
  tokens_ = to_.buffer("tokens", Term::kInputs, n.rows, DType::kInt32);
  targets_ = to_.buffer("targets", Term::kInputs, n.rows, DType::kInt32);
  to_.add(OpKind::kLoadBatch, {.batch = n.batch, .seq = n.seq, .outer = to_.model().vocab},
          {writes(tokens_, n.rows), writes(targets_, n.rows)});
}

// Every rank looks up all tokens in its part of the table.
void VocabularyPart::look_up(BufferId x) {
  const StepSizes& n = to_.sizes();
  const bool parts = to_.knobs().sequence_parallel;
  const BufferId found = parts ? to_.all("partial embedding", Term::kWorkspace, n.hidden) : x;
  to_.add(OpKind::kEmbeddingForward, {.rows = n.rows, .inner = n.hidden, .outer = n.vocab},
          {reads(tokens_, n.rows), to_.zero().parameter(table_.table), writes(found, n.rows * n.hidden)});
  const Operand sum = to_.reduced(found);
  if (parts) to_.add_on_own(OpKind::kCopy, {}, {sum, writes(x, n.own_rows * n.hidden)});
}

BufferId VocabularyPart::embed() {
  const StepSizes& n = to_.sizes();
  const BufferId x = to_.own("embedding", Term::kActivations, n.hidden);
  look_up(x);
  if (table_.positions != kNoTensor) {
    to_.add(OpKind::kPositionsForward, {.batch = n.batch, .seq = n.seq, .rows = n.own_rows, .inner = n.hidden},
            {to_.own_updates(x), to_.zero().parameter(table_.positions)});
  }
  embedding_mask_ = to_.dropout_forward(x, kEmbeddingSite, Term::kActivations);
  return x;
}

void VocabularyPart::head(BufferId input) {
  const StepSizes& n = to_.sizes();
  const BufferId normed = to_.own("final norm", Term::kActivations, n.hidden);
  head_input_ = input;
  stats_ = to_.norm_stats("final norm stats", Term::kActivations);
  to_.norm_forward(input, table_.final_norm, normed, stats_);
  logits_ = to_.all("logits", Term::kLogits, n.vocab);
  // Backward comes next: what was gathered is used again.
  normed_ = to_.column_forward(normed, {table_.head, kNoTensor}, logits_, n.vocab);
  loss(logits_);
}

void VocabularyPart::head_backward(BufferId residual_gradient) {
  const StepSizes& n = to_.sizes();
  const BufferId dnormed = to_.all("final norm gradient", Term::kWorkspace, n.hidden);
  project_backward(dnormed);
  const Operand dx{{residual_gradient, 0, n.own_rows * n.hidden, 0}, Access::kWrite};
  to_.norm_backward(to_.reduced(dnormed), head_input_, table_.final_norm, stats_, dx);
}

// A tied head's gradient is complete with the embedding's.
void VocabularyPart::project_backward(BufferId dnormed) {
  const StepSizes& n = to_.sizes();
  const Shape shape{.rows = n.rows, .inner = n.hidden, .outer = n.vocab};
  const Operand dlogits = reads(logits_, n.rows * n.vocab);
  to_.add(OpKind::kLinearBackwardWeight, shape,
          {dlogits, reads(normed_, n.rows * n.hidden), to_.zero().gradient(table_.head)});
  if (table_.head != table_.table) to_.zero().gradient_done(table_.head);
  to_.add(OpKind::kLinearBackwardInput, shape,
          {dlogits, to_.zero().parameter(table_.head), writes(dnormed, n.rows * n.hidden)});
}

// Gradients of the mean over all tokens of the step, so that sums over rows, micro-steps and ranks need no division.
double VocabularyPart::loss_scale() const {
  return 1.0 / static_cast<double>(to_.sizes().rows * to_.knobs().micro_steps * to_.knobs().data_ranks);
}

void VocabularyPart::add_scaled(OpKind kind, const Shape& shape, std::vector<Operand> operands) {
  const BufferId control = to_.zero().control();
  if (control >= 0) operands.push_back(reads(control, kControlElementCount));
  to_.add(kind, shape, std::move(operands), loss_scale());
}

void VocabularyPart::loss(BufferId logits) {
  const StepSizes& n = to_.sizes();
  const Operand mean{{loss_, to_.micro_step(), 1, 0}, Access::kWrite};
  if (to_.knobs().tensor_ranks > 1) return split_loss(logits, mean);
  add_scaled(OpKind::kCrossEntropy, {.rows = n.rows, .outer = n.vocab},
             {updates(logits, n.rows * n.vocab), reads(targets_, n.rows), mean});
}

void VocabularyPart::split_loss(BufferId logits, const Operand& mean) {
  const StepSizes& n = to_.sizes();
  const Shape shape{.rows = n.rows, .inner = to_.model().vocab, .outer = n.vocab};
  const auto of_rows = [&](const char* name) { return to_.buffer(name, Term::kLogits, n.rows, DType::kFp32); };
  const BufferId top = of_rows("largest logits");
  const BufferId sums = of_rows("sums of exponentials");
  const BufferId at_target = of_rows("targets' logits");
  const std::int64_t elems = n.rows * n.vocab;
  const Operand targets = reads(targets_, n.rows);
  to_.add(OpKind::kVocabMax, shape, {reads(logits, elems), writes(top, n.rows)});
  to_.all_reduce(OpKind::kAllReduceMax, {updates(top, n.rows)});
  to_.add(OpKind::kVocabSumExp, shape,
          {updates(logits, elems), targets, reads(top, n.rows), writes(sums, n.rows), writes(at_target, n.rows)});
  to_.all_reduce(OpKind::kAllReduce, {updates(sums, n.rows), updates(at_target, n.rows)});
  add_scaled(OpKind::kVocabCrossEntropy, shape,
             {updates(logits, elems), targets, reads(sums, n.rows), reads(at_target, n.rows), mean});
}

void VocabularyPart::embed_backward(BufferId residual_gradient) {
  const StepSizes& n = to_.sizes();
  // Held as every unit is held through its backward.
  const bool held = to_.zero().sharded_parameters();
  const BufferId dx = to_.branch_gradient(residual_gradient, embedding_mask_, kEmbeddingSite);
  if (table_.positions != kNoTensor) {
    std::vector<Operand> positions = {to_.own_reads(dx), to_.zero().gradient(table_.positions)};
    if (held) positions.push_back(to_.zero().parameter(table_.positions));
    to_.add(OpKind::kPositionsBackward, {.batch = n.batch, .seq = n.seq, .rows = n.own_rows, .inner = n.hidden},
            std::move(positions));
    to_.zero().gradient_done(table_.positions);
  }
  const BufferId whole = to_.gathered(dx);
  std::vector<Operand> table = {reads(tokens_, n.rows), reads(whole, n.rows * n.hidden),
                                to_.zero().gradient(table_.table)};
  if (held) table.push_back(to_.zero().parameter(table_.table));
  to_.add(OpKind::kEmbeddingBackward, {.rows = n.rows, .inner = n.hidden, .outer = n.vocab}, std::move(table));
  to_.zero().gradient_done(table_.table);
}

}  // namespace krigtune
