// The squared norm of all gradients is the sum over ranks of the squares of the part that each rank owns, tensor by
// tensor, in every stage: so it is the same number to the last bit wherever gradients live. What every one of t
// tensor-parallel ranks holds counts 1/t (Shoeybi et al. 2019, as in Megatron's clip_grads.py).
#include "zero/zero_optimizer.h"

#include <utility>

namespace krigtune {
namespace {

Stream computing_stream(Place place) { return place == Place::kHost ? Stream::kHost : Stream::kCompute; }

}  // namespace

OptimizerStep::OptimizerStep(PlanBuilder& builder, const ZeroState& state, std::vector<Bucket> buckets)
    : builder_(builder),
      state_(state),
      setting_(state.setting),
      policy_(state.setting.policy),
      buckets_(std::move(buckets)) {}

void OptimizerStep::add() {
  if (policy_.controls) control();
  Bucket all;
  for (const Bucket& bucket : buckets_) {
    update(bucket);
    deliver(bucket);
    if (!policy_.gathers_updates_at_once) gather(bucket);
    all.insert(all.end(), bucket.begin(), bucket.end());
  }
  if (policy_.gathers_updates_at_once) gather(all);
}

BufferId OptimizerStep::scalar(Place place) {
  return builder_.buffer("squared norm", Term::kInputs, 1, DType::kFp32, place);
}

void OptimizerStep::control() {
  const Place place = state_.reduced_gradients().place();
  const BufferId own_sum = scalar(place);
  add_norms(writes(own_sum, 1), computing_stream(place));
  BufferId sum = own_sum;
  if (place != Place::kDevice) {
    sum = scalar(Place::kDevice);
    builder_.add(OpKind::kCopy, Stream::kCopy, {}, {reads(own_sum, 1), writes(sum, 1)});
  }
  builder_.add(OpKind::kAllReduce, Stream::kReduce, {}, {updates(sum, 1)});
  if (setting_.knobs.tensor_ranks > 1) {
    builder_.add_tensor_group(OpKind::kAllReduce, Stream::kReduce, {}, {updates(sum, 1)});
  }
  builder_.add(OpKind::kLossScale, Stream::kCompute, {},
               {reads(sum, 1), updates(state_.control, kControlElementCount)});
  control_ = state_.control;
  if (policy_.optimizer_place == Place::kDevice) return;
  control_ = builder_.buffer("host control", Term::kInputs, kControlElementCount, DType::kFp32, Place::kHost);
  builder_.add(OpKind::kCopy, Stream::kCopy, {},
               {reads(state_.control, kControlElementCount), writes(control_, kControlElementCount)});
}

void OptimizerStep::add_norms(const Operand& sum, Stream stream) {
  std::vector<Operand> split = {sum};
  std::vector<Operand> shared = {sum};
  const std::int64_t tensor_ranks = setting_.knobs.tensor_ranks;
  for (int t = 0; t < setting_.tensors(); ++t) {
    const bool counts_once = tensor_ranks == 1 || setting_.tensor(t).split != Split::kNone;
    (counts_once ? split : shared).push_back({state_.own_part(state_.reduced_gradients(), t), Access::kRead});
  }
  const bool has_split = split.size() > 1;
  if (has_split) builder_.add(OpKind::kGradientNorm, stream, {}, std::move(split));
  if (shared.size() == 1) return;
  if (has_split) shared.front().access = Access::kReadWrite;
  builder_.add(OpKind::kGradientNorm, stream, {}, std::move(shared), 1.0 / static_cast<double>(tensor_ranks));
}

void OptimizerStep::update(const Bucket& bucket) {
  std::vector<Operand> operands;
  for (const int t : bucket) {
    const TensorStore& values = state_.masters.has(t) ? state_.masters : state_.home(t);
    operands.push_back({state_.updated_part(values, t), Access::kReadWrite});
    operands.push_back({state_.updated_part(state_.reduced_gradients(), t), Access::kRead});
    for (const TensorStore& moments : state_.moments) operands.push_back({moments.all(t), Access::kReadWrite});
  }
  if (control_ >= 0) operands.push_back(reads(control_, kControlElementCount));
  const OpKind kind = policy_.optimizer == OptimizerKind::kSgd ? OpKind::kSgd : OpKind::kAdamW;
  builder_.add(kind, computing_stream(policy_.optimizer_place), {}, std::move(operands));
}

// Updated masters to the parameters, in their type.
void OptimizerStep::deliver(const Bucket& bucket) {
  for (const Place to : {Place::kDevice, Place::kHost}) {
    std::vector<Operand> pairs;
    for (const int t : bucket) {
      if (!state_.masters.has(t) || state_.home(t).place() != to) continue;
      pairs.push_back({state_.masters.all(t), Access::kRead});
      pairs.push_back({state_.updated_part(state_.home(t), t), Access::kWrite});
    }
    if (!pairs.empty()) deliver_to(to, std::move(pairs));
  }
}

// What travels is rounded first: half the bytes.
void OptimizerStep::deliver_to(Place to, std::vector<Operand> pairs) {
  const Place from = policy_.optimizer_place;
  if (from != to && policy_.type != DType::kFp32) {
    std::int64_t elems = 0;
    for (std::size_t i = 0; i < pairs.size(); i += 2) elems += pairs[i].range.elems;
    const BufferId rounded = builder_.buffer("rounded parameters", Term::kParameters, elems, policy_.type, from);
    std::vector<Operand> rounding;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < pairs.size(); i += 2) {
      const Range range{rounded, begin, pairs[i].range.elems, 0};
      begin += range.elems;
      rounding.push_back(pairs[i]);
      rounding.push_back({range, Access::kWrite});
      pairs[i] = {range, Access::kRead};
    }
    builder_.add(OpKind::kCopy, computing_stream(from), {}, std::move(rounding));
  }
  builder_.add(OpKind::kCopy, from == to ? computing_stream(to) : Stream::kCopy, {}, std::move(pairs));
}

// Of the bucket, what every rank holds whole and has updated a part of.
void OptimizerStep::gather(const Bucket& bucket) {
  if (!policy_.shards_optimizer) return;
  std::vector<Operand> operands;
  for (const int t : bucket) {
    if (!state_.parameters.has(t)) continue;
    operands.push_back({state_.own_part(state_.parameters, t), Access::kRead});
    operands.push_back({state_.parameters.all(t), Access::kWrite});
  }
  if (operands.empty()) return;
  const OpId gathered = builder_.add(OpKind::kAllGather, Stream::kGather, {}, std::move(operands));
  if (!setting_.knobs.overlap_comm) builder_.hold_compute_for(gathered);
}

}  // namespace krigtune
