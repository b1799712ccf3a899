#pragma once
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cost/calibration.h"
#include "cost/framework.h"
#include "cost/memory/memory_profile.h"
#include "plan/memory.h"
#include "space/configuration.h"

namespace krigtune::cost {

/// Predicted memory of the rank that needs most (with pipeline stages, in the stage that needs most).
struct MemoryEstimate {
  std::array<std::int64_t, schedule::kTermCount> term_bytes{};  ///< bytes at the expected peak
  std::int64_t overhead_bytes = 0;                              ///< context, communicators, fragmentation
  Bytes optimistic;                          ///< a lower bound for any program: larger than usable means too large
  Bytes expected;                            ///< sum of terms and overhead
  Bytes conservative;                        ///< an upper estimate: not larger than usable means it fits
  Bytes host;                                ///< expected host memory of all ranks of a node
  double log_stddev = 0.0;                   ///< of measured over expected peaks; 0: exact
  std::vector<plan::MemoryParts> moments{};  ///< moments that may be the peak; empty if exact
  std::string peak_at;                       ///< "backward of block 3"
};

/// Predicts the memory of a configuration, depending on the framework. Thread-safe.
class MemoryModel {
 public:
  MemoryModel(const workload::Workload& workload, const workload::ClusterSpec& cluster,
              const workload::MemorySpec& memory, const MemoryCalibration& calibration = {});
  ~MemoryModel();

  /// Estimates by a closed form over the phases of a step, in microseconds. For krigtune-bench the result is within a
  /// few per cent of the plan's peak, as tests/cost/memory_model_test.cpp states. Throws UserError like read_knobs.
  MemoryEstimate estimate(const space::Configuration& configuration) const;
  /// Returns whether the configuration fits. For krigtune-bench the answer is exact to the byte: a plan decides if the
  /// estimate does not. `host_usable`: host memory of a node.
  plan::MemoryVerdict verdict(const space::Configuration& configuration, Bytes usable, Bytes host_usable) const;
  /// Like estimate and verdict, but empty for a configuration that is not modelled (knobs_of).
  std::optional<MemoryEstimate> estimate_if_modelled(const space::Configuration& configuration) const;
  std::optional<plan::MemoryVerdict> verdict_if_modelled(const space::Configuration& configuration, Bytes usable,
                                                         Bytes host_usable) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the memory that DeepSpeed's autotuner predicts; for comparison only.
MemoryEstimate deepspeed_autotuner_estimate(const MemoryProfile& profile, const workload::Workload& workload,
                                            const schedule::Knobs& knobs);

}  // namespace krigtune::cost
