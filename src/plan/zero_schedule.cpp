#include "zero_schedule.h"

#include <cassert>

namespace krigtune {

ZeroSchedule::ZeroSchedule(PlanBuilder& builder, const ParameterTable& table, const Knobs& knobs, std::int64_t ranks,
                           std::vector<std::vector<int>> uses, const std::vector<int>& ready_order)
    : builder_(builder), table_(table), knobs_(knobs), ranks_(ranks), uses_(std::move(uses)) {
  const std::int64_t whole = table.padded_elems;
  const std::int64_t part = whole / ranks;
  const bool shard_optimizer = knobs.zero_stage >= 1;
  parameters_ = builder.persistent("parameters", Term::kParameters, sharded_parameters() ? part : whole);
  gradients_ = builder.persistent("gradients", Term::kGradients, transient_gradients() ? part : whole);
  first_moments_ = builder.persistent("first moments", Term::kOptimizerState, shard_optimizer ? part : whole);
  second_moments_ = builder.persistent("second moments", Term::kOptimizerState, shard_optimizer ? part : whole);

  reduce_buckets_ = make_buckets(ready_order, knobs.reduce_bucket_elems);
  const bool gathers_updates = knobs.zero_stage == 1 || knobs.zero_stage == 2;
  update_buckets_ = gathers_updates ? make_buckets(ready_order, knobs.allgather_bucket_elems) : reduce_buckets_;
  bucket_of_.resize(table.tensors.size());
  for (std::size_t b = 0; b < reduce_buckets_.size(); ++b) {
    for (const int t : reduce_buckets_[b]) bucket_of_[static_cast<std::size_t>(t)] = b;
    missing_.push_back(reduce_buckets_[b].size());
  }
  gathered_.assign(uses_.size() * static_cast<std::size_t>(knobs.micro_steps), -1);
  gradient_buffer_.assign(table.tensors.size(), -1);
  written_.assign(table.tensors.size(), false);
}

// Whole tensors in order; a tensor larger than the bucket is a bucket of its own.
std::vector<ZeroSchedule::Bucket> ZeroSchedule::make_buckets(const std::vector<int>& order,
                                                             std::int64_t most_elems) const {
  std::vector<Bucket> buckets;
  std::int64_t elems = 0;
  for (const int t : order) {
    if (buckets.empty() || elems + tensor(t).elems > most_elems) {
      buckets.emplace_back();
      elems = 0;
    }
    buckets.back().push_back(t);
    elems += tensor(t).elems;
  }
  return buckets;
}

void ZeroSchedule::begin_use() {
  const std::size_t use = next_use_++;
  before_use_ = builder_.last_compute();
  if (!sharded_parameters()) return;
  if (gathered_[use] < 0) issue_gather(use);
  // One unit ahead: it may take the place of the unit before this one.
  if (knobs_.overlap_comm && use + 1 < gathered_.size()) issue_gather(use + 1);
}

void ZeroSchedule::issue_gather(std::size_t use) {
  const std::vector<int>& tensors = uses_[use % uses_.size()];
  std::int64_t elems = 0;
  for (const int t : tensors) elems += tensor(t).padded_elems;
  gathered_[use] = builder_.buffer("gathered " + tensor(tensors.front()).name, Term::kGatheredParameters, elems);
  std::vector<Operand> operands;
  std::int64_t begin = 0;
  for (const int t : tensors) {
    operands.push_back({packed_shard(parameters_, t), Access::kRead});
    operands.push_back({{gathered_[use], begin, tensor(t).padded_elems, 0}, Access::kWrite});
    begin += tensor(t).padded_elems;
  }
  const OpId gathered = builder_.add(OpKind::kAllGather, Stream::kGather, {}, std::move(operands), 1.0, {before_use_});
  if (!knobs_.overlap_comm) builder_.hold_compute_for(gathered);
}

Operand ZeroSchedule::parameter(int t) const {
  if (!sharded_parameters()) return {{parameters_, tensor(t).begin_elems, tensor(t).elems, 0}, Access::kRead};
  const std::size_t use = next_use_ - 1;
  std::int64_t begin = 0;
  for (const int other : uses_[use % uses_.size()]) {
    if (other == t) return {{gathered_[use], begin, tensor(t).elems, 0}, Access::kRead};
    begin += tensor(other).padded_elems;
  }
  assert(false && "the tensor is not of this use's unit");
  return {};
}

Operand ZeroSchedule::gradient(int t) {
  const auto at = static_cast<std::size_t>(t);
  const Access access = written_[at] ? Access::kReadWrite : Access::kWrite;
  if (transient_gradients() && !written_[at]) {
    gradient_buffer_[at] = builder_.buffer("gradient " + tensor(t).name, Term::kReduceBuckets, tensor(t).padded_elems);
    zero_padding(t);
  }
  written_[at] = true;
  Operand operand{whole_gradient(t), access};
  operand.range.elems = tensor(t).elems;
  return operand;
}

// Padding travels with its tensor: it must be zero, not what the bytes held before. (Persistent buffers start as
// zeros.)
void ZeroSchedule::zero_padding(int t) {
  const std::int64_t padding = tensor(t).padded_elems - tensor(t).elems;
  if (padding == 0) return;
  const Range range{gradient_buffer_[static_cast<std::size_t>(t)], tensor(t).elems, padding, 0};
  builder_.add(OpKind::kZero, Stream::kCompute, {}, {{range, Access::kWrite}});
}

void ZeroSchedule::gradient_done(int t) {
  const bool last_micro_step = micro_step_ + 1 == knobs_.micro_steps;
  if (!transient_gradients() && !last_micro_step) return;
  const std::size_t bucket = bucket_of_[static_cast<std::size_t>(t)];
  if (--missing_[bucket] > 0) return;
  missing_[bucket] = reduce_buckets_[bucket].size();
  reduce(reduce_buckets_[bucket]);
}

void ZeroSchedule::reduce(const Bucket& bucket) {
  std::vector<Operand> wholes;
  std::vector<Operand> sums;
  const Access access = micro_step_ == 0 ? Access::kWrite : Access::kReadWrite;
  for (const int t : bucket) {
    wholes.push_back({whole_gradient(t), Access::kReadWrite});
    sums.push_back({own_shard(whole_gradient(t)), Access::kRead});
    sums.push_back({packed_shard(gradients_, t), access});
  }
  const OpKind kind = knobs_.zero_stage == 0 ? OpKind::kAllReduce : OpKind::kReduceScatter;
  OpId done = builder_.add(kind, Stream::kReduce, {}, std::move(wholes));
  if (transient_gradients()) done = builder_.add(OpKind::kAccumulate, Stream::kReduce, {}, std::move(sums));
  if (!knobs_.overlap_comm) {
    builder_.hold_compute_for(done);
  } else if (transient_gradients()) {
    // Double buffering: at most one bucket travels while the next one is filled.
    builder_.hold_compute_for(last_reduced_);
  }
  last_reduced_ = done;
}

void ZeroSchedule::end_micro_step() {
  if (transient_gradients()) written_.assign(written_.size(), false);
  ++micro_step_;
}

void ZeroSchedule::optimizer_step() {
  const bool gathers_updates = knobs_.zero_stage == 1 || knobs_.zero_stage == 2;
  for (const Bucket& bucket : update_buckets_) {
    update(bucket);
    if (gathers_updates) gather_updated(bucket);
  }
}

void ZeroSchedule::update(const Bucket& bucket) {
  std::vector<Operand> operands;
  for (const int t : bucket) {
    const bool all = knobs_.zero_stage == 0;
    const auto moment = [&](BufferId buffer) { return all ? whole(buffer, t) : packed_shard(buffer, t); };
    const Range parameter = all                    ? whole(parameters_, t)
                            : sharded_parameters() ? packed_shard(parameters_, t)
                                                   : own_shard(whole(parameters_, t));
    const Range gradient = all                     ? whole(gradients_, t)
                           : transient_gradients() ? packed_shard(gradients_, t)
                                                   : own_shard(whole(gradients_, t));
    operands.push_back({parameter, Access::kReadWrite});
    operands.push_back({gradient, Access::kRead});
    operands.push_back({moment(first_moments_), Access::kReadWrite});
    operands.push_back({moment(second_moments_), Access::kReadWrite});
  }
  builder_.add(OpKind::kAdamW, Stream::kCompute, {}, std::move(operands));
}

void ZeroSchedule::gather_updated(const Bucket& bucket) {
  std::vector<Operand> operands;
  for (const int t : bucket) {
    operands.push_back({own_shard(whole(parameters_, t)), Access::kRead});
    operands.push_back({whole(parameters_, t), Access::kWrite});
  }
  const OpId gathered = builder_.add(OpKind::kAllGather, Stream::kGather, {}, std::move(operands));
  if (!knobs_.overlap_comm) builder_.hold_compute_for(gathered);
}

std::vector<TensorHome> ZeroSchedule::homes() const {
  std::vector<TensorHome> homes;
  for (int t = 0; t < static_cast<int>(table_.tensors.size()); ++t) {
    const bool sharded = sharded_parameters();
    homes.push_back({t, 0, sharded, sharded ? packed_shard(parameters_, t) : whole(parameters_, t)});
  }
  return homes;
}

Range ZeroSchedule::whole(BufferId buffer, int t) const {
  return {buffer, tensor(t).begin_elems, tensor(t).padded_elems, 0};
}

Range ZeroSchedule::whole_gradient(int t) const {
  if (!transient_gradients()) return whole(gradients_, t);
  return {gradient_buffer_[static_cast<std::size_t>(t)], 0, tensor(t).padded_elems, 0};
}

Range ZeroSchedule::own_shard(const Range& whole) const {
  const std::int64_t part = whole.elems / ranks_;
  return {whole.buffer, whole.begin_elems, part, part};
}

Range ZeroSchedule::packed_shard(BufferId buffer, int t) const {
  return {buffer, tensor(t).begin_elems / ranks_, tensor(t).padded_elems / ranks_, 0};
}

}  // namespace krigtune
