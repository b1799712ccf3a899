#pragma once
#include <cstddef>
#include <limits>
#include <vector>

#include "krigtune/plan/knobs.h"
#include "plan_builder.h"
#include "step/parameters.h"

namespace krigtune {

/// What stage, dialect, precision and offload decide, one thing each: the schedule asks these and nothing else.
struct ZeroPolicy {
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  // Where tensors live.
  DType type = DType::kFp32;  ///< of parameters and gradients
  OptimizerKind optimizer = OptimizerKind::kAdamW;
  bool controls = false;  ///< gradients are clipped or the loss is scaled
  bool shards_parameters = false;
  bool shards_gradients = false;  ///< so they are reduced in every micro-step, not in the last one only
  bool shards_optimizer = false;
  Place optimizer_place = Place::kDevice;
  Place shard_place = Place::kDevice;  ///< of sharded parameters

  // How gradients are reduced.
  OpKind reduction = OpKind::kReduceScatter;
  bool reduces_behind_backward = false;
  bool packs = false;  ///< gradients are copied into contiguous buckets; otherwise they are reduced where they are
  Stream packing_stream = Stream::kCompute;
  bool keeps_packed_buckets = false;     ///< from step to step
  std::size_t packed_buckets = 1;        ///< that are filled in turn
  std::size_t reductions_under_way = 0;  ///< before computing waits for the oldest

  // How sharded parameters are gathered.
  bool fetches_tensors = false;  ///< each where it is missing, kept while it will be used again soon; else whole units
  bool prefetches = false;
  bool prefetches_one_at_least = false;
  std::size_t gathers_under_way = 0;  ///< likewise

  // How updated parameters are gathered.
  bool gathers_updates_at_once = false;  ///< else by buckets
};

/// By which the loss is multiplied at first, so that small gradients do not vanish in fp16: 2^16, as DeepSpeed's
/// initial_scale_power.
double first_loss_scale(Precision precision);

ZeroPolicy make_policy(const Workload& workload, const Knobs& knobs);

using Bucket = std::vector<int>;  ///< tensors

/// What all parts of the schedule know.
struct ZeroSetting {
  const ParameterTable& table;
  Knobs knobs;
  ZeroPolicy policy;

  const ParameterTensor& tensor(int t) const { return table.tensors[static_cast<std::size_t>(t)]; }
  int tensors() const { return static_cast<int>(table.tensors.size()); }
  std::int64_t ranks() const { return knobs.data_ranks; }
  /// This rank's part of a whole tensor.
  Range own_part(const Range& whole) const {
    const std::int64_t part = whole.elems / ranks();
    return {whole.buffer, whole.begin_elems, part, part};
  }
  /// What this rank's optimizer updates of it.
  Range updated_part(const Range& whole) const { return policy.shards_optimizer ? own_part(whole) : whole; }
  /// Whole tensors in order; a tensor larger than the bucket is a bucket of its own.
  std::vector<Bucket> make_buckets(const std::vector<int>& order, std::int64_t most_elems) const;
};

/// Lets at most so many operations be under way: one more makes the compute stream wait for the oldest.
class Window {
 public:
  Window(PlanBuilder& builder, std::size_t width) : builder_(builder), width_(width) {}
  void enter(OpId op);

 private:
  PlanBuilder& builder_;
  std::size_t width_;
  std::vector<OpId> entered_;
};

}  // namespace krigtune
