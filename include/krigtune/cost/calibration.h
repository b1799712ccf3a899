#pragma once
#include <optional>
#include <span>

#include "krigtune/core/units.h"
#include "krigtune/space/configuration.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// What measured step times taught: factors on predicted seconds, 1 where nothing is known.
struct TimeCalibration {
  double products = 1.0;  ///< matrix products and attention
  double memory = 1.0;    ///< elementwise kernels and optimizers
  double collectives = 1.0;
  double issue = 1.0;   ///< of issuing kernels
  double host = 1.0;    ///< copies and host work
  double step_s = 0.0;  ///< added to every step
};

/// What measured peaks taught.
struct MemoryCalibration {
  double activations = 1.0;     ///< factor on activations
  double logits_bytes = 0.0;    ///< a logit, instead of the framework's; 0: the framework's
  double overhead_bytes = 0.0;  ///< on top of what is allocated
  double log_stddev = 0.0;      ///< of measured over predicted; 0: the framework's spread
};

/// What a trial has taught about memory.
struct MemoryTrial {
  Configuration configuration;
  std::optional<Bytes> peak;   ///< allocated at most, as torch.cuda.max_memory_allocated() says
  bool out_of_memory = false;  ///< it needed more than `usable`
  Bytes usable{};
};

/// The most probable calibration under priors around the framework's own numbers: two peaks, at the smallest and at a
/// larger micro-batch, give the slope of activations and what is there in any case; every further trial refines it, one
/// without memory is a bound, and what lies far off counts little. {} without trials, and where the plan is exact.
/// Throws UserError as read_knobs does.
MemoryCalibration calibrate_memory(const Workload& workload, const ClusterSpec& cluster,
                                   std::span<const MemoryTrial> trials);

}  // namespace krigtune
