#pragma once
#include <array>
#include <cstddef>
#include <limits>

#include "schedule/knobs.h"
#include "schedule/op_kind.h"

namespace krigtune::schedule {

/// The consequences of stage, dialect, precision and offload, one field each. The schedule reads only these.
struct ZeroPolicy {
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  // Where tensors are stored:
  DType type = DType::kFp32;  ///< type of parameters and gradients
  OpKind update = OpKind::kAdamW;
  DType master_type = DType::kFp32;                                  ///< of the values that the optimizer updates
  std::array<DType, 2> moment_types = {DType::kFp32, DType::kFp32};  ///< of the first and of the second one
  int moments = 2;                                                   ///< for each parameter
  /// The update of matrices is Muon's, and they have the first moment alone.
  bool orthogonalizes = false;
  bool controls = false;  ///< gradients are clipped or the loss is scaled
  bool shards_parameters = false;
  bool shards_gradients = false;  ///< gradients are reduced in every micro-step instead of only in the last one
  bool grows_gradients = false;   ///< memory for a whole gradient is allocated only when backward has computed it
  bool shards_optimizer = false;
  Place optimizer_place = Place::kDevice;
  Place shard_place = Place::kDevice;  ///< place of sharded parameters

  // How gradients are reduced:
  OpKind reduction = OpKind::kReduceScatter;
  /// Copies of what is sharded sum their gradients whenever these are reduced, instead of only in the last micro-step.
  bool sums_copies_every_time = false;
  bool reduces_behind_backward = false;
  bool packs = false;  ///< gradients are copied into contiguous buckets; otherwise they are reduced in place
  Stream packing_stream = Stream::kCompute;
  bool keeps_packed_buckets = false;  ///< buckets persist from step to step
  std::size_t packed_buckets = 1;     ///< number of buckets that are filled in rotation
  /// Buckets have the knob's size and are all allocated at once, regardless of the model's size.
  bool whole_packed_buckets = false;
  std::size_t reductions_under_way = 0;  ///< number in flight before computing waits for the oldest

  // How sharded parameters are gathered:
  /// Each tensor when it is missing, kept if it is used again soon; otherwise whole units.
  bool fetches_tensors = false;
  bool prefetches = false;
  bool prefetches_one_at_least = false;
  std::size_t gathers_under_way = 0;  ///< number in flight before computing waits for the oldest

  // How updated parameters are gathered:
  bool gathers_updates_at_once = false;  ///< otherwise by buckets
};

/// Returns the initial factor on the loss, which keeps small gradients from vanishing in fp16: 2^16, as DeepSpeed's
/// initial_scale_power.
double first_loss_scale(workload::Precision precision);

ZeroPolicy make_policy(const workload::Workload& workload, const Knobs& knobs);

}  // namespace krigtune::schedule
