#pragma once
#include <cstddef>
#include <limits>

#include "schedule/knobs.h"
#include "schedule/op_kind.h"

namespace krigtune::schedule {

/// What stage, dialect, precision and offload decide, one thing each: the schedule asks these and nothing else.
struct ZeroPolicy {
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  // Where tensors live.
  DType type = DType::kFp32;  ///< of parameters and gradients
  workload::OptimizerKind optimizer = workload::OptimizerKind::kAdamW;
  bool controls = false;  ///< gradients are clipped or the loss is scaled
  bool shards_parameters = false;
  bool shards_gradients = false;  ///< so they are reduced in every micro-step, not in the last one only
  bool grows_gradients = false;   ///< that are kept whole: there is memory for one only once backward has made it
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
  bool whole_packed_buckets = false;     ///< as large as the knob says, and all made at once, whatever the model's size
  std::size_t reductions_under_way = 0;  ///< before computing waits for the oldest

  // How sharded parameters are gathered.
  bool fetches_tensors = false;  ///< each where it is missing, kept while it will be used again soon; else whole units
  bool prefetches = false;
  bool prefetches_one_at_least = false;
  std::size_t gathers_under_way = 0;  ///< before computing waits for the oldest

  // How updated parameters are gathered.
  bool gathers_updates_at_once = false;  ///< else by buckets
};

/// By which the loss is multiplied at first, so that small gradients do not vanish in fp16: 2^16, as DeepSpeed's
/// initial_scale_power.
double first_loss_scale(workload::Precision precision);

ZeroPolicy make_policy(const workload::Workload& workload, const Knobs& knobs);

}  // namespace krigtune::schedule
