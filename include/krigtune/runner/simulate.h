#pragma once
#include "krigtune/runner/runner.h"

namespace krigtune {

/// What simulated trials need besides the configuration. Copied. The cluster's device and network are known.
struct SimulateJob {
  Workload workload;
  ClusterSpec cluster;
  MemorySpec memory;
  Space space;
  SimulateSpec spec;
};

/// Answers trials by the virtual clock and the memory model of a machine that differs from the one that is predicted:
/// hidden factors, drawn once from the seed, slow down each class of operations and change what activations take;
/// trials are noisy, some meet a straggler, some fail as no formula foresees. An outcome is a function of (seed,
/// configuration, how often this runner measured it before). Results have the names of krigtune-bench's.
std::unique_ptr<Runner> make_simulate_runner(SimulateJob job);

}  // namespace krigtune
