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

/// Memory of the rank that needs most (with pipeline stages: of that stage), before anything runs.
struct MemoryEstimate {
  std::array<std::int64_t, schedule::kTermCount> term_bytes{};  ///< at the expected peak
  std::int64_t overhead_bytes = 0;                              ///< context, communicators, fragmentation
  Bytes optimistic;                          ///< nothing that runs needs less: beyond usable it is too large
  Bytes expected;                            ///< terms and overhead
  Bytes conservative;                        ///< within usable it fits
  Bytes host;                                ///< expected, of all ranks of a node
  double log_stddev = 0.0;                   ///< of measured over expected; 0: exact
  std::vector<plan::MemoryParts> moments{};  ///< that may be the peak; empty: exact
  std::string peak_at;                       ///< "backward of block 3"
};

/// What memory a configuration needs, by framework. Thread-safe.
class MemoryModel {
 public:
  MemoryModel(const workload::Workload& workload, const workload::ClusterSpec& cluster,
              const workload::MemorySpec& memory, const MemoryCalibration& calibration = {});
  ~MemoryModel();

  /// By a closed form over the phases of a step, in microseconds; for krigtune-bench within a few per cent of the
  /// plan's peak, as tests/cost/memory_model_test.cpp states. Throws UserError as read_knobs does.
  MemoryEstimate estimate(const space::Configuration& configuration) const;
  /// krigtune-bench: to the byte, by the plan, where the estimate does not decide. `host_usable`: of a node.
  plan::MemoryVerdict verdict(const space::Configuration& configuration, Bytes usable, Bytes host_usable) const;
  /// As estimate and verdict, and empty for a configuration that is not modelled (knobs_of).
  std::optional<MemoryEstimate> estimate_if_modelled(const space::Configuration& configuration) const;
  std::optional<plan::MemoryVerdict> verdict_if_modelled(const space::Configuration& configuration, Bytes usable,
                                                         Bytes host_usable) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What DeepSpeed's autotuner believes that a configuration needs: for comparison only.
MemoryEstimate deepspeed_autotuner_estimate(const MemoryProfile& profile, const workload::Workload& workload,
                                            const schedule::Knobs& knobs);

}  // namespace krigtune::cost
