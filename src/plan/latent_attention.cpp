// Latents of one token x (the block's input after its norm), with W by rows and all heads side by side:
//
//   c_q = W_qd x,  q = W_qu rms(c_q)            (without queries' latent: q = W_qu x)
//   [c | r] = W_kvd x,  [k | v] = W_kvu rms(c)   r: the keys' part with positions, one for all heads
//
// Head i attends with [q_i without | rotated q_i with] to [k_i | rotated r]. Tensor ranks have the heads' rows of W_qu
// and W_kvu and all of W_qd and W_kvd. So the gradients of rms(c_q), rms(c) and r are sums over them.
#include "plan/latent_attention.h"

#include <utility>
#include <vector>

namespace krigtune::plan {
namespace {

using schedule::OpKind;
using schedule::Term;

const workload::LatentSpec& sizes_of_latents(const StepOperations& to) { return to.model().latent; }

std::int64_t kv_down_width(const StepOperations& to) {
  return sizes_of_latents(to).kv_rank + sizes_of_latents(to).rope_dim;
}
// Of this rank's heads: keys without positions, and with the values beside them.
std::int64_t nope_width(const StepOperations& to) { return to.sizes().heads * sizes_of_latents(to).nope_dim; }
std::int64_t kv_up_width(const StepOperations& to) {
  return nope_width(to) + to.sizes().heads * sizes_of_latents(to).value_dim;
}

Shape q_norm_shape(const StepOperations& to) {
  return {.rows = to.sizes().own_rows, .inner = sizes_of_latents(to).q_rank};
}
Shape kv_norm_shape(const StepOperations& to) {
  return {.rows = to.sizes().own_rows, .inner = sizes_of_latents(to).kv_rank, .outer = sizes_of_latents(to).rope_dim};
}
Shape heads_shape(const StepOperations& to) {
  const StepSizes& n = to.sizes();
  return {.batch = n.batch,
          .seq = n.seq,
          .heads = n.heads,
          .kv_heads = n.kv_heads,
          .inner = n.queries,
          .values = n.attention};
}

BufferId gathered_latent(StepOperations& to, BufferId latent, std::int64_t width) {
  return to.gathered(latent, "gathered latent", width, to.type());
}

// Returns what the queries are made of, for all tokens.
BufferId input_of_queries(StepOperations& to, const LatentBuffers& kept, BufferId norm) {
  return kept.q < 0 ? to.gathered(norm) : gathered_latent(to, kept.q_normed, sizes_of_latents(to).q_rank);
}

BufferId queries_forward(StepOperations& to, const schedule::LatentTensors& tensors, BufferId norm,
                         LatentBuffers& buffers, Term rest) {
  const StepSizes& n = to.sizes();
  const std::int64_t rank = sizes_of_latents(to).q_rank;
  const BufferId queries = to.all("queries before positions", Term::kWorkspace, n.queries);
  if (rank > 0) {
    buffers.q = to.own("query latent", rest, rank);
    buffers.q_normed = to.own("query latent norm", rest, rank);
    buffers.q_stats = to.buffer("query latent norm stats", rest, n.own_rows, schedule::DType::kFp32);
    to.own_linear_forward(norm, tensors.q_down, buffers.q, n.hidden, rank);
    const StepOperations::InModule in(to, schedule::Module::kLatentUp);
    to.add(OpKind::kRmsNormForward, q_norm_shape(to),
           {reads(buffers.q, n.own_rows * rank), writes(buffers.q_normed, n.own_rows * rank),
            writes(buffers.q_stats, n.own_rows), to.zero().parameter(tensors.q_norm)});
  }
  const StepOperations::InModule in(to, schedule::Module::kLatentUp);
  to.linear_forward(input_of_queries(to, buffers, norm), tensors.q_up, queries, rank > 0 ? rank : n.hidden, n.queries);
  return queries;
}

// Returns the gradient of `norm` through the queries, for the own tokens.
Operand queries_backward(StepOperations& to, const schedule::LatentTensors& tensors, const LatentBuffers& kept,
                         BufferId norm, BufferId dqueries) {
  const StepSizes& n = to.sizes();
  const std::int64_t rank = sizes_of_latents(to).q_rank;
  const BufferId input = to.reads_input_again(tensors.q_up) ? input_of_queries(to, kept, norm) : norm;
  if (rank == 0) {
    const BufferId dinput = to.all("norm1 gradient", Term::kWorkspace, n.hidden);
    to.linear_backward(dqueries, input, tensors.q_up, dinput, n.hidden, n.queries);
    return to.reduced(dinput);
  }
  const BufferId dnormed = to.all("query latent norm gradient", Term::kWorkspace, rank);
  to.linear_backward(dqueries, input, tensors.q_up, dnormed, rank, n.queries);
  const BufferId dlatent = to.own("query latent gradient", Term::kWorkspace, rank);
  std::vector<Operand> operands = {to.reduced(dnormed, rank), reads(kept.q, n.own_rows * rank),
                                   reads(kept.q_stats, n.own_rows), writes(dlatent, n.own_rows * rank),
                                   to.zero().parameter(tensors.q_norm)};
  const bool trains = to.zero().trains(tensors.q_norm);
  if (trains) operands.push_back(to.zero().gradient(tensors.q_norm));
  to.add_on_own(OpKind::kRmsNormBackward, q_norm_shape(to), std::move(operands));
  if (trains) to.zero().gradient_done(tensors.q_norm);
  const BufferId dinput = to.own("norm1 gradient", Term::kWorkspace, n.hidden);
  to.own_linear_backward(dlatent, norm, tensors.q_down, writes(dinput, n.own_rows * n.hidden), n.hidden, rank);
  return to.own_reads(dinput);
}

// Returns the gradient of the latent of keys and values, and of the part with positions beside it.
BufferId kv_latent_backward(StepOperations& to, const schedule::LatentTensors& tensors, const LatentBuffers& kept,
                            BufferId dkv, BufferId dpositioned) {
  const StepSizes& n = to.sizes();
  const std::int64_t rank = sizes_of_latents(to).kv_rank;
  const bool reads_input = to.reads_input_again(tensors.kv_up);
  const BufferId normed = reads_input ? gathered_latent(to, kept.kv_normed, rank) : kept.kv_normed;
  const BufferId dnormed = to.all("kv latent norm gradient", Term::kWorkspace, rank);
  to.linear_backward(dkv, normed, tensors.kv_up, dnormed, rank, kv_up_width(to));
  const BufferId dlatent = to.own("kv latent gradient", Term::kWorkspace, kv_down_width(to));
  std::vector<Operand> operands = {to.reduced(dnormed, rank),
                                   to.reduced(dpositioned, sizes_of_latents(to).rope_dim),
                                   reads(kept.kv, n.own_rows * kv_down_width(to)),
                                   to.zero().parameter(tensors.kv_norm),
                                   reads(kept.kv_stats, n.own_rows),
                                   writes(dlatent, n.own_rows * kv_down_width(to))};
  const bool trains = to.zero().trains(tensors.kv_norm);
  if (trains) operands.push_back(to.zero().gradient(tensors.kv_norm));
  to.add_on_own(OpKind::kLatentNormBackward, kv_norm_shape(to), std::move(operands));
  if (trains) to.zero().gradient_done(tensors.kv_norm);
  return dlatent;
}

}  // namespace

LatentBuffers latents_forward(StepOperations& to, const schedule::LatentTensors& tensors, BufferId norm, BufferId qkv,
                              Term rest) {
  const StepSizes& n = to.sizes();
  const workload::LatentSpec& latent = sizes_of_latents(to);
  LatentBuffers buffers;
  const BufferId queries = queries_forward(to, tensors, norm, buffers, rest);
  buffers.kv = to.own("kv latent", rest, kv_down_width(to));
  buffers.kv_normed = to.own("kv latent norm", rest, latent.kv_rank);
  buffers.kv_stats = to.buffer("kv latent norm stats", rest, n.own_rows, schedule::DType::kFp32);
  const BufferId positioned = to.own("keys' part with positions", Term::kWorkspace, latent.rope_dim);
  const BufferId kv = to.all("keys and values before positions", Term::kWorkspace, kv_up_width(to));
  to.own_linear_forward(norm, tensors.kv_down, buffers.kv, n.hidden, kv_down_width(to));
  const StepOperations::InModule in(to, schedule::Module::kLatentUp);
  to.add(OpKind::kLatentNormForward, kv_norm_shape(to),
         {reads(buffers.kv, n.own_rows * kv_down_width(to)), to.zero().parameter(tensors.kv_norm),
          writes(buffers.kv_normed, n.own_rows * latent.kv_rank), writes(positioned, n.own_rows * latent.rope_dim),
          writes(buffers.kv_stats, n.own_rows)});
  to.linear_forward(gathered_latent(to, buffers.kv_normed, latent.kv_rank), tensors.kv_up, kv, latent.kv_rank,
                    kv_up_width(to));
  std::vector<Operand> heads = {reads(queries, n.rows * n.queries), reads(kv, n.rows * kv_up_width(to)),
                                reads(gathered_latent(to, positioned, latent.rope_dim), n.rows * latent.rope_dim),
                                writes(qkv, n.rows * n.qkv)};
  if (to.keeps_keys_beside_values()) {
    buffers.beside = to.all("keys beside values", rest, nope_width(to));
    heads.push_back(writes(buffers.beside, n.rows * nope_width(to)));
  }
  to.add(OpKind::kLatentHeadsForward, heads_shape(to), std::move(heads));
  return buffers;
}

Operand latents_backward(StepOperations& to, const schedule::LatentTensors& tensors, const LatentBuffers& kept,
                         BufferId norm, BufferId dqkv) {
  const StepSizes& n = to.sizes();
  const std::int64_t rope = sizes_of_latents(to).rope_dim;
  const BufferId dqueries = to.all("queries' gradient", Term::kWorkspace, n.queries);
  const BufferId dkv = to.all("keys' and values' gradient", Term::kWorkspace, kv_up_width(to));
  const BufferId dpositioned = to.all("gradient of the keys' part with positions", Term::kWorkspace, rope);
  std::vector<Operand> heads = {reads(dqkv, n.rows * n.qkv), writes(dqueries, n.rows * n.queries),
                                writes(dkv, n.rows * kv_up_width(to)), writes(dpositioned, n.rows * rope)};
  if (kept.beside >= 0) heads.push_back(reads(kept.beside, n.rows * nope_width(to)));
  to.add(OpKind::kLatentHeadsBackward, heads_shape(to), std::move(heads));
  const BufferId dlatent = kv_latent_backward(to, tensors, kept, dkv, dpositioned);
  const Operand dnorm = queries_backward(to, tensors, kept, norm, dqueries);
  to.own_linear_backward(dlatent, norm, tensors.kv_down, {dnorm.range, Access::kReadWrite}, n.hidden,
                         kv_down_width(to));
  return dnorm;
}

}  // namespace krigtune::plan
