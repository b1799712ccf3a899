#pragma once
#include <cstdint>

#include "krigtune/space/configuration.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// What the schedule reads from a configuration; read_knobs sets all of them.
struct Knobs {
  std::int64_t zero_stage = 0;
  std::int64_t micro_batch = 1;  ///< sequences per rank and micro-step
  std::int64_t micro_steps = 1;
  std::int64_t reduce_bucket_elems = 0;
  std::int64_t allgather_bucket_elems = 0;
  bool overlap_comm = false;
};

/// Throws UserError for values out of range, for knobs that the schedule does not model, and where the batch identity
/// train_batch_size = micro_batch * ranks * gradient_accumulation_steps does not hold.
Knobs read_knobs(const Workload& workload, const ClusterSpec& cluster, const Configuration& configuration);

/// Throws UserError for models that the schedule does not cover.
void check_model(const Workload& workload);

}  // namespace krigtune
