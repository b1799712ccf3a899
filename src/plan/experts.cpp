#include "plan/experts.h"

#include <utility>
#include <vector>

namespace krigtune::plan {
namespace {

using schedule::OpKind;
using schedule::Term;

// Of a grouped product whose rows are the tokens of all experts.
Shape grouped(const StepSizes& n, std::int64_t inner, std::int64_t outer) {
  return {.rows = n.routed, .inner = inner, .outer = outer, .groups = n.experts};
}

std::int64_t per_token(const StepSizes& n) { return n.routed / n.expert_rows; }

Shape moving(const StepSizes& n) { return {.rows = n.expert_rows, .inner = n.expert_hidden, .outer = per_token(n)}; }

// The router works on the own tokens.
Shape routing(const StepSizes& n) { return {.rows = n.own_rows, .inner = per_token(n), .outer = n.experts}; }
Shape scoring(const StepSizes& n) { return {.rows = n.own_rows, .inner = n.hidden, .outer = n.experts}; }

BufferId of_routed(StepOperations& to, const char* name, Term term, std::int64_t width) {
  return to.buffer(name, term, to.sizes().routed * width, to.type());
}
BufferId routed_input(StepOperations& to, const char* name, Term term, std::int64_t width) {
  return to.buffer(name, term, to.sizes().routed * width, to.input_type());
}

void product_forward(StepOperations& to, const schedule::LinearTensors& linear, BufferId x, BufferId y,
                     const Shape& shape) {
  std::vector<Operand> operands = {reads(x, shape.rows * shape.inner), to.zero().parameter(linear.weight),
                                   writes(y, shape.rows * shape.outer)};
  if (linear.bias != schedule::kNoTensor) operands.push_back(to.zero().parameter(linear.bias));
  to.add(OpKind::kGroupedForward, shape, std::move(operands));
}

void product_backward(StepOperations& to, const schedule::LinearTensors& linear, BufferId dy, BufferId x, BufferId dx,
                      const Shape& shape) {
  const Operand gradient = reads(dy, shape.rows * shape.outer);
  if (to.zero().trains(linear.weight)) {
    std::vector<Operand> operands = {gradient, reads(x, shape.rows * shape.inner), to.zero().gradient(linear.weight)};
    if (linear.bias != schedule::kNoTensor) operands.push_back(to.zero().gradient(linear.bias));
    to.add(OpKind::kGroupedBackwardWeight, shape, std::move(operands));
    to.zero().gradient_done(linear.weight);
    if (linear.bias != schedule::kNoTensor) to.zero().gradient_done(linear.bias);
  }
  to.add(OpKind::kGroupedBackwardInput, shape,
         {gradient, to.zero().parameter(linear.weight), writes(dx, shape.rows * shape.inner)});
}

bool has_latent(const schedule::BlockTensors& block) { return block.to_latent.weight != schedule::kNoTensor; }

// A product between the model's width and that of the experts, of all tokens that this rank sends.
Shape between_widths(const StepSizes& n, std::int64_t inner, std::int64_t outer) {
  return {.rows = n.expert_rows, .inner = inner, .outer = outer};
}

void width_backward(StepOperations& to, const schedule::LinearTensors& linear, BufferId dy, BufferId x,
                    const Operand& dx, const Shape& shape) {
  to.product_backward_weight(dy, x, linear, shape);
  to.add(OpKind::kLinearBackwardInput, shape,
         {reads(dy, shape.rows * shape.outer), to.zero().parameter(linear.weight), dx});
}

BufferId of_sent(StepOperations& to, const char* name, Term term) {
  return to.buffer(name, term, to.sizes().expert_rows * to.sizes().expert_hidden, to.type());
}

// What the experts read: all tokens that this rank sends, or their latents.
BufferId make_latent(StepOperations& to, const schedule::BlockTensors& block, BufferId x) {
  if (!has_latent(block)) return x;
  const StepSizes& n = to.sizes();
  const BufferId latent = of_sent(to, "experts' latent", Term::kWorkspace);
  to.product_forward(x, block.to_latent, latent, between_widths(n, n.hidden, n.expert_hidden));
  return latent;
}

void route(StepOperations& to, const schedule::BlockTensors& block, BufferId x, const ExpertBuffers& buffers) {
  const StepSizes& n = to.sizes();
  const std::int64_t chosen = n.own_rows * per_token(n);
  const Operand logits = writes(buffers.logits, n.own_rows * n.experts);
  to.add(OpKind::kLinearForward, scoring(n), {to.own_reads(x), to.zero().parameter(block.router.weight), logits});
  to.add(
      OpKind::kRouteForward, routing(n),
      {reads(buffers.logits, n.own_rows * n.experts), writes(buffers.weights, chosen), writes(buffers.places, chosen)});
}

// Of all tokens that this rank sends.
BufferId all_weights(StepOperations& to, const ExpertBuffers& buffers) {
  if (to.has_whole_experts()) return buffers.weights;
  return to.gathered(buffers.weights, "all routing weights", per_token(to.sizes()), schedule::DType::kFp32);
}
BufferId all_places(StepOperations& to, const ExpertBuffers& buffers) {
  if (to.has_whole_experts()) return buffers.places;
  return to.gathered(buffers.places, "all routing places", per_token(to.sizes()), schedule::DType::kInt32);
}

}  // namespace

ExpertBuffers experts_forward(StepOperations& to, const schedule::BlockTensors& block, const ExpertInput& x, BufferId y,
                              Term rest, Term activated) {
  const StepSizes& n = to.sizes();
  const std::int64_t chosen = n.own_rows * per_token(n);
  ExpertBuffers buffers;
  buffers.logits = to.own("router logits", rest, n.experts);
  buffers.weights = to.buffer("routing weights", rest, chosen, schedule::DType::kFp32);
  buffers.places = to.buffer("routing places", rest, chosen, schedule::DType::kInt32);
  buffers.routed = routed_input(to, "routed tokens", rest, n.expert_hidden);
  buffers.up = of_routed(to, "experts' up", rest, n.expert_up);
  buffers.activated = routed_input(to, "experts' activated", activated, n.expert_ffn);
  buffers.outputs =
      of_routed(to, "experts' outputs", to.keeps_expert_outputs() ? rest : Term::kWorkspace, n.expert_hidden);

  route(to, block, x.own, buffers);
  const BufferId weights = all_weights(to, buffers);
  const BufferId places = all_places(to, buffers);
  const BufferId sent = make_latent(to, block, x.all);
  to.add(OpKind::kDispatchForward, moving(n),
         {reads(sent, n.expert_rows * n.expert_hidden), reads(places, n.routed),
          writes(buffers.routed, n.routed * n.expert_hidden)});
  product_forward(to, block.experts_up, buffers.routed, buffers.up, grouped(n, n.expert_hidden, n.expert_up));
  {
    const StepOperations::InModule in(to, schedule::Module::kExpertActivation);
    buffers.gate = to.activate(buffers.up, buffers.activated, n.routed, n.expert_ffn, activated);
  }
  product_forward(to, block.experts_down, buffers.activated, buffers.outputs,
                  grouped(n, n.expert_ffn, n.expert_hidden));
  buffers.sums = has_latent(block) ? of_sent(to, "experts' sums", rest) : y;
  to.add(OpKind::kCombineForward, moving(n),
         {reads(buffers.outputs, n.routed * n.expert_hidden), reads(weights, n.routed), reads(places, n.routed),
          writes(buffers.sums, n.expert_rows * n.expert_hidden)});
  if (has_latent(block))
    to.product_forward(buffers.sums, block.from_latent, y, between_widths(n, n.expert_hidden, n.hidden));
  return buffers;
}

void activate_experts_again(StepOperations& to, ExpertBuffers& kept) {
  const StepSizes& n = to.sizes();
  kept.activated = routed_input(to, "experts' activated again", Term::kWorkspace, n.expert_ffn);
  kept.gate = to.activate(kept.up, kept.activated, n.routed, n.expert_ffn, Term::kWorkspace);
}

BufferId experts_backward(StepOperations& to, const schedule::BlockTensors& block, const ExpertBuffers& kept,
                          const ExpertGradients& of, BufferId x) {
  const StepSizes& n = to.sizes();
  const bool latent = has_latent(block);
  BufferId dy = of.dy;
  if (latent) {
    dy = of_sent(to, "experts' sums gradient", Term::kWorkspace);
    width_backward(to, block.from_latent, of.dy, kept.sums, writes(dy, n.expert_rows * n.expert_hidden),
                   between_widths(n, n.expert_hidden, n.hidden));
  }
  const BufferId weights = all_weights(to, kept);
  const BufferId places = all_places(to, kept);
  const BufferId doutputs = of_routed(to, "experts' output gradient", Term::kWorkspace, n.expert_hidden);
  const BufferId dweights = to.buffer("routing gradient", Term::kWorkspace, n.routed, schedule::DType::kFp32);
  std::vector<Operand> combined = {reads(dy, n.expert_rows * n.expert_hidden), reads(weights, n.routed),
                                   reads(places, n.routed), writes(doutputs, n.routed * n.expert_hidden),
                                   writes(dweights, n.routed)};
  if (to.keeps_expert_outputs()) combined.push_back(reads(kept.outputs, n.routed * n.expert_hidden));
  to.add(OpKind::kCombineBackward, moving(n), std::move(combined));
  const BufferId dactivated = of_routed(to, "experts' activated gradient", Term::kWorkspace, n.expert_ffn);
  product_backward(to, block.experts_down, doutputs, kept.activated, dactivated,
                   grouped(n, n.expert_ffn, n.expert_hidden));
  const BufferId dup =
      to.activation_backward(kept.up, kept.gate, dactivated, n.routed, n.expert_ffn, "experts' up gradient");
  const BufferId drouted = of_routed(to, "routed tokens' gradient", Term::kWorkspace, n.expert_hidden);
  product_backward(to, block.experts_up, dup, kept.routed, drouted, grouped(n, n.expert_hidden, n.expert_up));
  const BufferId dlatent = latent ? of_sent(to, "experts' latent gradient", Term::kWorkspace) : -1;
  to.add(OpKind::kDispatchBackward, moving(n),
         {reads(drouted, n.routed * n.expert_hidden), reads(places, n.routed),
          latent ? writes(dlatent, n.expert_rows * n.expert_hidden) : of.dx});
  if (latent) width_backward(to, block.to_latent, dlatent, x, of.dx, between_widths(n, n.hidden, n.expert_hidden));
  return dweights;
}

void router_backward(StepOperations& to, const schedule::BlockTensors& block, const ExpertBuffers& kept, BufferId x,
                     BufferId dweights, const Operand& dx) {
  const StepSizes& n = to.sizes();
  const std::int64_t chosen = n.own_rows * per_token(n);
  const BufferId dlogits = to.own("router gradient", Term::kWorkspace, n.experts);
  to.add_on_own(OpKind::kRouteBackward, routing(n),
                {to.has_whole_experts() ? reads(dweights, chosen) : to.reduced(dweights, per_token(n)),
                 reads(kept.weights, chosen), reads(kept.places, chosen), writes(dlogits, n.own_rows * n.experts)});
  const Operand gradient = reads(dlogits, n.own_rows * n.experts);
  if (to.zero().trains(block.router.weight)) {
    to.add(OpKind::kLinearBackwardWeight, scoring(n),
           {gradient, to.own_reads(x), to.zero().gradient(block.router.weight)});
    to.zero().gradient_done(block.router.weight);
  }
  to.add_on_own(OpKind::kLinearBackwardInput, scoring(n),
                {gradient, to.zero().parameter(block.router.weight), {dx.range, Access::kReadWrite}});
}

}  // namespace krigtune::plan
