#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trial/runner.h"

namespace krigtune::runner {

/// Trials on the virtual clock, which take no real time.
struct SimulateSpec {
  static trial::RunnerEntry<SimulateSpec> entry();
  std::string machine() const;  ///< names the machine as it is today; on another one a new run begins (run/)

  // Standard deviations of logarithms.
  double noise = 0.02;             ///< of the step time, for each trial
  double systematic_error = 0.15;  ///< of the hidden factor of each class of operations, drawn once
  double memory_error = 0.05;      ///< of the hidden factor on activations
  double straggler_probability = 0.05;
  double straggler_slowdown = 1.3;    ///< factor on the time of a step with a straggler among its ranks
  double unforeseen_fraction = 0.05;  ///< part of the space beyond a hidden plane, where every trial fails
  double crash_probability = 0.01;    ///< of a trial, anywhere in the space
  std::int64_t seed = 1;
  bool early_end = false;  ///< a trial that is certainly worse than the best so far is ended early
  /// The machine's state during one command; it may differ in the next one.
  struct Today {
    double slowdown = 1.0;                            ///< factor on the time of every step
    std::optional<std::int64_t> seed = std::nullopt;  ///< for noise, stragglers and crashes; empty: the general seed
    bool operator==(const Today&) const = default;
  } today;
};

/// What simulated trials need in addition to the configuration. Copied. The cluster's device and network must be known.
struct SimulateJob {
  workload::Workload workload;
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  space::Space space;
  SimulateSpec spec;
};

/// Answers trials by the virtual clock and the memory model of a machine that differs from the predicted one. Hidden
/// factors, drawn once from the seed, slow down each class of operations and change the size of activations. Trials are
/// noisy, some have a straggler, and some fail unpredictably. An outcome depends only on (seed, configuration, how
/// often this runner measured it before). The metrics have the names of krigtune-bench.
std::unique_ptr<trial::Runner> make_simulate_runner(SimulateJob job);

}  // namespace krigtune::runner
