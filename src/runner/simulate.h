#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "trial/runner.h"

namespace krigtune::runner {

/// Trials on the virtual clock, which takes no time.
struct SimulateSpec {
  static trial::RunnerEntry<SimulateSpec> entry();

  // Standard deviations of logarithms.
  double noise = 0.02;             ///< of a step time, trial by trial
  double systematic_error = 0.15;  ///< of the hidden factor of each class of operations, drawn once
  double memory_error = 0.05;      ///< of the hidden factor on activations
  double straggler_probability = 0.05;
  double straggler_slowdown = 1.3;    ///< so many times as long takes a step with a straggler among its ranks
  double unforeseen_fraction = 0.05;  ///< of the space: the part beyond a hidden plane, which always fails
  double crash_probability = 0.01;    ///< of a trial, anywhere
  std::int64_t seed = 1;
  bool early_end = false;  ///< a trial that is surely worse than the best so far is ended
  /// The machine as it is while a command runs; the next one may find it otherwise.
  struct Today {
    double slowdown = 1.0;                            ///< so many times as long takes every step
    std::optional<std::int64_t> seed = std::nullopt;  ///< of noise, stragglers and crashes; empty: the seed of all
    bool operator==(const Today&) const = default;
  } today;
};

/// What simulated trials need besides the configuration. Copied. The cluster's device and network are known.
struct SimulateJob {
  workload::Workload workload;
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  space::Space space;
  SimulateSpec spec;
};

/// Answers trials by the virtual clock and the memory model of a machine that differs from the one that is predicted:
/// hidden factors, drawn once from the seed, slow down each class of operations and change what activations take;
/// trials are noisy, some meet a straggler, some fail as no formula foresees. An outcome is a function of (seed,
/// configuration, how often this runner measured it before). Results have the names of krigtune-bench's.
std::unique_ptr<trial::Runner> make_simulate_runner(SimulateJob job);

}  // namespace krigtune::runner
