// The loss over a vocabulary that is split over the tensor ranks (Shoeybi et al. 2019, section 3). The logits are large
// and are not communicated; only the maximum m, the sum and the target's logit of each row are.
//
//   m = max_j l_j (all-reduce);  s = sum_j exp(l_j - m),  a = l_target - m (all-reduce);  loss = log s - a
//   dl_j = exp(l_j - m) / s - [j = target]
#include "plan/vocabulary.h"

#include <algorithm>
#include <utility>

namespace krigtune::plan {

void VocabularyPart::load_batch() {
  const StepSizes& n = to_.sizes();
  uses_.clear();
  tokens_ = to_.buffer("tokens", schedule::Term::kInputs, n.rows, schedule::DType::kInt32);
  targets_ = to_.buffer("targets", schedule::Term::kInputs, n.rows, schedule::DType::kInt32);
  to_.add(schedule::OpKind::kLoadBatch, {.batch = n.batch, .seq = n.seq, .outer = to_.model().vocab},
          {writes(tokens_, n.rows), writes(targets_, n.rows)});
}

// Every rank looks up all tokens in its part of the table.
void VocabularyPart::look_up(BufferId x) {
  const StepSizes& n = to_.sizes();
  const bool parts = to_.knobs().sequence_parallel;
  const BufferId found = parts ? to_.all("partial embedding", schedule::Term::kWorkspace, n.hidden) : x;
  to_.add(schedule::OpKind::kEmbeddingForward, {.rows = n.rows, .inner = n.hidden, .outer = n.vocab},
          {reads(tokens_, n.rows), to_.zero().parameter(table_.table), writes(found, n.rows * n.hidden)});
  const Operand sum = to_.reduced(found);
  if (parts) to_.add_on_own(schedule::OpKind::kCopy, {}, {sum, writes(x, n.own_rows * n.hidden)});
}

BufferId VocabularyPart::embed() {
  const StepSizes& n = to_.sizes();
  const BufferId x = to_.own("embedding", schedule::Term::kActivations, n.hidden);
  look_up(x);
  if (table_.positions != schedule::kNoTensor) {
    to_.add(schedule::OpKind::kPositionsForward,
            {.batch = n.batch, .seq = n.seq, .rows = n.own_rows, .inner = n.hidden},
            {to_.own_updates(x), to_.zero().parameter(table_.positions)});
  }
  embedding_mask_ = to_.dropout_forward(x, kEmbeddingSite, schedule::Term::kActivations);
  return x;
}

// The batch's tokens stand for those that follow them, which are as many.
BufferId VocabularyPart::embed_next(schedule::Term term) {
  const BufferId x = to_.own("embedding of the next token", term, to_.sizes().hidden);
  look_up(x);
  return x;
}

void VocabularyPart::head(BufferId input, const schedule::NormTensors& norm) {
  const StepSizes& n = to_.sizes();
  const BufferId normed = to_.own("final norm", schedule::Term::kActivations, n.hidden);
  Use& use = uses_.emplace_back(Use{.norm = norm, .input = input, .kept = {}});
  use.kept = to_.norm_stats("final norm stats", schedule::Term::kActivations);
  to_.norm_forward(input, use.norm, normed, use.kept, schedule::Term::kActivations);
  // Backward comes next and uses the gathered tokens again.
  use.normed = to_.gathered(normed);
  if (is_first(use)) to_.others_forward(table_.others);
  if (to_.loss_parts() == 1) logits_and_loss(use, all_rows());
}

// A fused loss is computed with its gradients, in the backward pass of the head, for some tokens of every sequence
// after the other.
void VocabularyPart::head_and_loss_by_parts(Use& use, BufferId dnormed) {
  const StepSizes& n = to_.sizes();
  const std::int64_t parts = std::min(to_.loss_parts(), n.seq);
  const std::int64_t most = n.batch * ((n.seq + parts - 1) / parts);
  for (std::int64_t begin = 0; begin < n.rows; begin += most) {
    const Rows rows{begin, std::min(most, n.rows - begin), begin + most >= n.rows};
    logits_and_loss(use, rows);
    project_backward(use, rows, dnormed);
  }
}

void VocabularyPart::head_backward(std::size_t number, BufferId residual_gradient) {
  const StepSizes& n = to_.sizes();
  Use& use = uses_.at(number);
  if (is_first(use)) to_.others_backward(table_.others);
  const BufferId dnormed = to_.all("final norm gradient", schedule::Term::kWorkspace, n.hidden);
  if (to_.loss_parts() == 1) {
    project_backward(use, all_rows(), dnormed);
  } else {
    head_and_loss_by_parts(use, dnormed);
  }
  const Operand dx{{residual_gradient, 0, n.own_rows * n.hidden, 0}, Access::kWrite};
  to_.norm_backward(to_.reduced(dnormed), use.input, use.norm, use.kept, dx);
}

VocabularyPart::Rows VocabularyPart::all_rows() const { return {0, to_.sizes().rows, true}; }

Range VocabularyPart::range_of(BufferId buffer, const Rows& rows, std::int64_t width) const {
  return {buffer, rows.begin * width, rows.count * width, 0};
}

void VocabularyPart::logits_and_loss(Use& use, const Rows& rows) {
  const StepSizes& n = to_.sizes();
  use.logits = to_.buffer("logits", schedule::Term::kLogits, rows.count * n.vocab, to_.type());
  to_.add(schedule::OpKind::kLinearForward, {.rows = rows.count, .inner = n.hidden, .outer = n.vocab},
          {{range_of(use.normed, rows, n.hidden), Access::kRead},
           to_.zero().parameter(table_.head),
           writes(use.logits, rows.count * n.vocab)});
  loss(use, rows);
}

// A tied head's gradient is complete with the embedding's, another one with its last use.
void VocabularyPart::project_backward(const Use& use, const Rows& rows, BufferId dnormed) {
  const StepSizes& n = to_.sizes();
  const Shape shape{.rows = rows.count, .inner = n.hidden, .outer = n.vocab};
  const Operand dlogits = reads(use.logits, rows.count * n.vocab);
  if (to_.zero().trains(table_.head)) {
    to_.add(schedule::OpKind::kLinearBackwardWeight, shape,
            {dlogits, {range_of(use.normed, rows, n.hidden), Access::kRead}, to_.zero().gradient(table_.head)});
    const bool is_complete = rows.are_last && is_last(use);
    if (is_complete && table_.head != table_.table) to_.zero().gradient_done(table_.head);
  }
  to_.add(schedule::OpKind::kLinearBackwardInput, shape,
          {dlogits, to_.zero().parameter(table_.head), {range_of(dnormed, rows, n.hidden), Access::kWrite}});
}

// Gradients of the mean over all tokens of the step, so that sums over rows, micro-steps and ranks need no division.
double VocabularyPart::loss_scale() const {
  return 1.0 / static_cast<double>(to_.sizes().rows * to_.knobs().micro_steps * to_.knobs().data_ranks);
}

void VocabularyPart::add_scaled(schedule::OpKind kind, const Shape& shape, std::vector<Operand> operands) {
  const BufferId control = to_.zero().control();
  if (control >= 0) operands.push_back(reads(control, schedule::kControlElementCount));
  to_.add(kind, shape, std::move(operands), loss_scale());
}

// The losses of further tokens are not reported.
void VocabularyPart::loss(const Use& use, const Rows& rows) {
  const auto own = [&](const char* name) {
    return to_.buffer(name, schedule::Term::kLogits, 1, schedule::DType::kFp32);
  };
  if (!is_first(use)) return loss(use, rows, writes(own("loss of further tokens"), 1));
  const Operand of_step{{loss_, to_.micro_step(), 1, 0}, rows.begin == 0 ? Access::kWrite : Access::kReadWrite};
  if (to_.loss_parts() == 1) return loss(use, rows, of_step);
  const BufferId of_part = own("loss of a part");
  loss(use, rows, writes(of_part, 1));
  to_.add(schedule::OpKind::kAccumulate, {}, {reads(of_part, 1), of_step});
}

void VocabularyPart::loss(const Use& use, const Rows& rows, const Operand& mean) {
  const StepSizes& n = to_.sizes();
  if (to_.knobs().tensor_ranks > 1) return split_loss(use, rows, mean);
  add_scaled(schedule::OpKind::kCrossEntropy, {.rows = rows.count, .outer = n.vocab},
             {updates(use.logits, rows.count * n.vocab), {range_of(targets_, rows, 1), Access::kRead}, mean});
}

void VocabularyPart::split_loss(const Use& use, const Rows& rows, const Operand& mean) {
  const StepSizes& n = to_.sizes();
  const Shape shape{.rows = rows.count, .inner = to_.model().vocab, .outer = n.vocab};
  const auto of_rows = [&](const char* name) {
    return to_.buffer(name, schedule::Term::kLogits, rows.count, schedule::DType::kFp32);
  };
  const BufferId top = of_rows("largest logits");
  const BufferId sums = of_rows("sums of exponentials");
  const BufferId at_target = of_rows("targets' logits");
  const std::int64_t elems = rows.count * n.vocab;
  const Operand targets = {range_of(targets_, rows, 1), Access::kRead};
  to_.add(schedule::OpKind::kVocabMax, shape, {reads(use.logits, elems), writes(top, rows.count)});
  to_.all_reduce(schedule::OpKind::kAllReduceMax, {updates(top, rows.count)});
  to_.add(schedule::OpKind::kVocabSumExp, shape,
          {updates(use.logits, elems), targets, reads(top, rows.count), writes(sums, rows.count),
           writes(at_target, rows.count)});
  to_.all_reduce(schedule::OpKind::kAllReduce, {updates(sums, rows.count), updates(at_target, rows.count)});
  add_scaled(schedule::OpKind::kVocabCrossEntropy, shape,
             {updates(use.logits, elems), targets, reads(sums, rows.count), reads(at_target, rows.count), mean});
}

void VocabularyPart::embed_backward(BufferId residual_gradient) {
  const StepSizes& n = to_.sizes();
  const bool held = to_.zero().sharded_parameters();
  const BufferId dx = to_.branch_gradient(residual_gradient, embedding_mask_, kEmbeddingSite);
  if (table_.positions != schedule::kNoTensor) {
    std::vector<Operand> positions = {to_.own_reads(dx), to_.zero().gradient(table_.positions)};
    if (held) positions.push_back(to_.zero().parameter(table_.positions));
    to_.add(schedule::OpKind::kPositionsBackward,
            {.batch = n.batch, .seq = n.seq, .rows = n.own_rows, .inner = n.hidden}, std::move(positions));
    to_.zero().gradient_done(table_.positions);
  }
  to_.add(schedule::OpKind::kEmbeddingBackward, {.rows = n.rows, .inner = n.hidden, .outer = n.vocab},
          table_gradient(dx));
  to_.zero().gradient_done(table_.table);
}

// Every unit keeps its parameters through its backward.
std::vector<Operand> VocabularyPart::table_gradient(BufferId dx) {
  const StepSizes& n = to_.sizes();
  const BufferId whole = to_.gathered(dx);
  std::vector<Operand> operands = {reads(tokens_, n.rows), reads(whole, n.rows * n.hidden),
                                   to_.zero().gradient(table_.table)};
  if (to_.zero().sharded_parameters()) operands.push_back(to_.zero().parameter(table_.table));
  return operands;
}

void VocabularyPart::embed_next_backward(BufferId gradient) {
  const StepSizes& n = to_.sizes();
  if (!to_.zero().trains(table_.table)) return;
  to_.add(schedule::OpKind::kEmbeddingBackward, {.rows = n.rows, .inner = n.hidden, .outer = n.vocab},
          table_gradient(gradient));
}

}  // namespace krigtune::plan
