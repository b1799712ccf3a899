// Multi-token prediction (DeepSeek-AI 2024, arXiv:2412.19437, section 2.2): with h_0 the output of the blocks,
//
//   h_d = blocks(W [norm(h_{d-1}); norm(embedding of the d-th next token)]),   loss_d = CE(head(norm(h_d)))
//
// W is split over its rows; the parts of its output are gathered over the tensor ranks, and under sequence parallelism
// each keeps its own tokens (Megatron Core). Losses of all d are computed before any backward pass, so that all logits
// exist at once.
#include "plan/mtp.h"

namespace krigtune::plan {

using schedule::Term;

const schedule::MtpTensors& MtpLayers::tensors_of(std::size_t layer) const {
  return table_.mtp.size() == 1 ? table_.mtp.front() : table_.mtp.at(layer);
}

void MtpLayers::forward(BufferId hidden, const LayerTerms& terms) {
  layers_.assign(static_cast<std::size_t>(to_.model().mtp.layers), {});
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    Kept& kept = layers_[layer];
    kept.hidden = hidden;
    kept.embedding = vocabulary_.embed_next(Term::kActivations);
    layer_forward(tensors_of(layer), kept, terms);
    hidden = kept.output;
    vocabulary_.head(hidden, tensors_of(layer).final_norm);
  }
}

void MtpLayers::layer_forward(const schedule::MtpTensors& tensors, Kept& kept, const LayerTerms& terms) {
  const StepSizes& n = to_.sizes();
  const std::int64_t elems = n.own_rows * n.hidden;
  kept.joined = to_.own_input("joined norms", terms.rest, 2 * n.hidden);
  kept.of_hidden = to_.norm_stats("hidden norm stats", terms.rest);
  kept.of_embedding = to_.norm_stats("embedding norm stats", terms.rest);
  const auto normed = [&](BufferId x, const schedule::NormTensors& norm, KeptByNorm& by, std::int64_t begin_elems) {
    const BufferId y = to_.own("norm to be joined", Term::kWorkspace, n.hidden);
    to_.norm_forward(x, norm, y, by, terms.rest);
    to_.add(schedule::OpKind::kCopy, {}, {to_.own_reads(y), {{kept.joined, begin_elems, elems, 0}, Access::kWrite}});
  };
  normed(kept.embedding, tensors.embedding_norm, kept.of_embedding, 0);
  normed(kept.hidden, tensors.hidden_norm, kept.of_hidden, elems);
  BufferId x = join_forward(tensors, kept, terms.rest);
  kept.blocks.clear();
  for (std::size_t block = 0; block < tensors.blocks.size(); ++block) {
    LayerTerms of_block = terms;
    if (block + 1 < tensors.blocks.size()) of_block.output = terms.rest;
    kept.blocks.push_back(plan::layer_forward(to_, tensors.blocks[block], x, of_block));
    x = kept.blocks.back().output;
  }
  kept.output = x;
}

BufferId MtpLayers::join_forward(const schedule::MtpTensors& tensors, const Kept& kept, Term term) {
  const StepSizes& n = to_.sizes();
  const BufferId y = to_.own("joined", term, n.hidden);
  if (to_.knobs().tensor_ranks == 1) {
    to_.linear_forward(kept.joined, tensors.join, y, 2 * n.hidden, n.hidden);
    return y;
  }
  const std::int64_t columns = n.hidden / to_.knobs().tensor_ranks;
  const BufferId input = to_.gathered(kept.joined, "gathered norms", 2 * n.hidden, to_.input_type());
  const BufferId part = to_.all("part of joined", Term::kWorkspace, columns);
  to_.linear_forward(input, tensors.join, part, 2 * n.hidden, columns);
  to_.gather_columns(part, y);
  return y;
}

void MtpLayers::backward(BufferId residual_gradient, const LayerTerms& terms, bool computes_again) {
  std::vector<BufferId> gradients = {residual_gradient};
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    gradients.push_back(to_.own("gradient of a further token", Term::kWorkspace, to_.sizes().hidden));
  const bool repeats = table_.mtp.size() < layers_.size();
  for (std::size_t use = 0; use < gradients.size(); ++use) {
    to_.zero().expect_more(repeats && use > 0 && use + 1 < gradients.size());
    vocabulary_.head_backward(use, gradients[use]);
  }
  for (std::size_t layer = layers_.size(); layer > 0; --layer) {
    Kept& kept = layers_[layer - 1];
    const schedule::MtpTensors& tensors = tensors_of(layer - 1);
    to_.zero().expect_more(repeats && layer > 1);
    if (computes_again) {
      to_.in(schedule::Phase::kRecompute);
      layer_forward(tensors, kept, terms);
      to_.in(schedule::Phase::kBackward);
    }
    layer_backward(tensors, kept, terms, gradients[layer], gradients[layer - 1]);
  }
}

void MtpLayers::layer_backward(const schedule::MtpTensors& tensors, Kept& kept, const LayerTerms& terms,
                               BufferId gradient, BufferId hidden_gradient) {
  const StepSizes& n = to_.sizes();
  const std::int64_t elems = n.own_rows * n.hidden;
  for (std::size_t block = kept.blocks.size(); block > 0; --block)
    plan::layer_backward(to_, tensors.blocks[block - 1], kept.blocks[block - 1], terms, gradient);
  const Operand djoined = join_backward(tensors, kept, gradient);
  const auto half = [&](std::int64_t begin_elems) {
    Operand operand = djoined;
    operand.range.begin_elems += begin_elems;
    operand.range.elems = elems;
    return operand;
  };
  to_.norm_backward(half(elems), kept.hidden, tensors.hidden_norm, kept.of_hidden, to_.own_updates(hidden_gradient));
  const BufferId dembedding = to_.own("gradient of the next token", Term::kWorkspace, n.hidden);
  to_.norm_backward(half(0), kept.embedding, tensors.embedding_norm, kept.of_embedding, writes(dembedding, elems));
  vocabulary_.embed_next_backward(dembedding);
}

// Returns the gradient of both norms' outputs for the own tokens.
Operand MtpLayers::join_backward(const schedule::MtpTensors& tensors, const Kept& kept, BufferId gradient) {
  const StepSizes& n = to_.sizes();
  const BufferId djoined = to_.all("joined norms' gradient", Term::kWorkspace, 2 * n.hidden);
  const BufferId input = to_.reads_input_again(tensors.join)
                             ? to_.gathered(kept.joined, "gathered norms", 2 * n.hidden, to_.input_type())
                             : kept.joined;
  to_.linear_backward(to_.own_columns(gradient), input, tensors.join, djoined, 2 * n.hidden,
                      n.hidden / to_.knobs().tensor_ranks);
  return to_.reduced(djoined, 2 * n.hidden);
}

}  // namespace krigtune::plan
