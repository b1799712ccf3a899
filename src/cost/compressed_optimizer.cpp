// Follows plan/zero/zero_optimizer.cpp.
#include "compressed_optimizer.h"

#include <algorithm>

namespace krigtune {
namespace {

constexpr std::int64_t kMasterBytes = 4;
constexpr std::int64_t kScalarBytes = 4;
constexpr double kScalarTrafficBytes = 8.0;  // read and written

double moments(OptimizerKind optimizer) { return optimizer == OptimizerKind::kSgd ? 1.0 : 2.0; }

}  // namespace

std::vector<std::size_t> CompressedOptimizer::bucket_ends() const {
  const bool gathers_buckets = step_.policy.shards_optimizer && !step_.policy.gathers_updates_at_once;
  return CompressedGradients::bucket_ends(
      step_.tensors, gathers_buckets ? step_.knobs.allgather_bucket_elems : step_.knobs.reduce_bucket_elems);
}

CompressedOptimizer::Bucket CompressedOptimizer::bucket_of(std::size_t begin, std::size_t end) const {
  Bucket bucket{begin, end};
  for (std::size_t i = begin; i < end; ++i) {
    const int t = step_.tensors.ready_order()[i];
    const std::int64_t padded = step_.tensors.padded(t);
    const std::int64_t updated = step_.updated_elems(padded);
    const bool sharded = parameters_.is_sharded(t);
    const Place home = sharded ? step_.policy.shard_place : Place::kDevice;
    bucket.updated_elems += updated;
    if (step_.policy.type != DType::kFp32 || home != step_.policy.optimizer_place) {
      bucket.mastered_elems[static_cast<std::size_t>(home)] += updated;
    }
    if (!sharded) bucket.gathered_elems += padded;
  }
  return bucket;
}

void CompressedOptimizer::add() {
  if (step_.policy.controls) control();
  std::size_t begin = 0;
  std::int64_t all = 0;
  for (const std::size_t end : bucket_ends()) {
    const Bucket bucket = bucket_of(begin, end);
    wait_for_gradients(bucket);
    update(bucket);
    for (const Place to : {Place::kDevice, Place::kHost})
      deliver(to, bucket.mastered_elems[static_cast<std::size_t>(to)]);
    if (!step_.policy.gathers_updates_at_once) gather(bucket.gathered_elems);
    all += bucket.gathered_elems;
    begin = end;
  }
  if (step_.policy.gathers_updates_at_once) gather(all);
  step_.recorder.flush();
}

// What the stream that updates computes next.
void CompressedOptimizer::compute(OpClass on_device, double flops, double bytes) {
  const double seconds = kernel_time_s(step_.machine, on_host() ? OpClass::kHost : on_device, flops, bytes);
  if (on_host()) {
    step_.recorder.add(Stream::kHost, seconds, {gradients_ready_, {Stream::kCopy, control_copied_}});
    return;
  }
  if (gradients_ready_.stream != Stream::kCompute) {
    step_.recorder.wait_for(gradients_ready_.stream, gradients_ready_.count);
  }
  step_.optimizer_s += seconds;
  step_.recorder.append_kernel(seconds);
}

void CompressedOptimizer::wait_for_gradients(const Bucket& bucket) {
  for (std::size_t i = bucket.begin; i < bucket.end; ++i) {
    const Recorder::Behind reduced = gradients_.reduced(step_.tensors.ready_order()[i]);
    if (i == bucket.begin) gradients_ready_ = reduced;
    gradients_ready_.count = std::max(gradients_ready_.count, reduced.count);
  }
}

void CompressedOptimizer::add_norm(std::int64_t elems) {
  const double flops = flops_per_elem(OpKind::kGradientNorm) * static_cast<double>(elems);
  compute(OpClass::kOptimizer, flops, static_cast<double>(elems * step_.type_bytes()) + kScalarTrafficBytes);
}

void CompressedOptimizer::control() {
  std::int64_t split = 0;
  std::int64_t shared = 0;
  for (const int t : step_.tensors.ready_order()) {
    const bool counts_once = step_.knobs.tensor_ranks == 1 || step_.tensors.tensor(t).is_split;
    (counts_once ? split : shared) += step_.tensors.padded(t) / step_.knobs.data_ranks;
  }
  wait_for_gradients({0, step_.tensors.ready_order().size()});
  if (split > 0) add_norm(split);
  if (shared > 0) add_norm(shared);
  Recorder& to = step_.recorder;
  Recorder::Behind summed = done();
  const double copy_s = kernel_time_s(step_.machine, OpClass::kCopy, 0.0, kScalarTrafficBytes);
  if (on_host()) summed = {Stream::kCopy, to.add(Stream::kCopy, copy_s, {summed})};
  std::int32_t reduced = to.add(Stream::kReduce, step_.data_collective(OpKind::kAllReduce, kScalarBytes), {summed});
  if (step_.knobs.tensor_ranks > 1) {
    reduced = to.add(Stream::kReduce, step_.tensor_collective(OpKind::kAllReduce, kScalarBytes), {});
  }
  to.wait_for(Stream::kReduce, reduced);
  const double scale_s = kernel_time_s(step_.machine, OpClass::kOptimizer, 0.0, kScalarTrafficBytes);
  step_.optimizer_s += scale_s;
  to.append_kernel(scale_s);
  if (!on_host()) return;
  const std::int32_t scaled = to.flush();
  control_copied_ = to.add(Stream::kCopy, copy_s, {{Stream::kCompute, scaled}});
}

void CompressedOptimizer::update(const Bucket& bucket) {
  const auto elems = static_cast<double>(bucket.updated_elems);
  const OpKind kind = step_.policy.optimizer == OptimizerKind::kSgd ? OpKind::kSgd : OpKind::kAdamW;
  const double state_bytes = 2.0 * kMasterBytes * (1.0 + moments(step_.policy.optimizer));
  compute(OpClass::kOptimizer, flops_per_elem(kind) * elems,
          elems * (state_bytes + static_cast<double>(step_.type_bytes())));
}

// Behind which what was updated is there.
Recorder::Behind CompressedOptimizer::done() const {
  if (on_host()) return {Stream::kHost, step_.recorder.count(Stream::kHost)};
  return {Stream::kCompute, step_.recorder.flush()};
}

// What travels is rounded first.
void CompressedOptimizer::deliver(Place to, std::int64_t elems) {
  if (elems == 0) return;
  const Place from = step_.policy.optimizer_place;
  const auto count = static_cast<double>(elems);
  const auto type_bytes = static_cast<double>(step_.type_bytes());
  gradients_ready_.count = 0;
  if (from == to) return compute(OpClass::kOptimizer, 0.0, count * (kMasterBytes + type_bytes));
  const bool rounds = step_.policy.type != DType::kFp32;
  if (rounds) compute(OpClass::kOptimizer, 0.0, count * (kMasterBytes + type_bytes));
  const double bytes = count * ((rounds ? type_bytes : kMasterBytes) + type_bytes);
  delivered_ = step_.recorder.add(Stream::kCopy, kernel_time_s(step_.machine, OpClass::kCopy, 0.0, bytes), {done()});
}

void CompressedOptimizer::gather(std::int64_t elems) {
  if (!step_.policy.shards_optimizer || elems == 0) return;
  Recorder& to = step_.recorder;
  const Recorder::Collective collective = step_.data_collective(OpKind::kAllGather, elems * step_.type_bytes());
  const Recorder::Behind updated = on_host() ? Recorder::Behind{Stream::kCopy, delivered_} : done();
  const std::int32_t gathered = to.add(Stream::kGather, collective, {updated});
  if (!step_.knobs.overlap_comm) to.wait_for(Stream::kGather, gathered);
}

}  // namespace krigtune
