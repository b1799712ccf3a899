#pragma once
#include <vector>

#include "diagnose/job_model.h"

namespace krigtune::diagnose {

/// Shares of the step above which something becomes a verdict, or is reported before the work itself.
struct Thresholds {
  double share = 0.05;          ///< of the step that a loss explains
  double large_share = 0.10;    ///< losses of this share come before the work
  double small_kernels = 0.15;  ///< of the step, beyond the time that kernels of any size take at the device's rates
  /// Measured over stated time of kernels; predictions are known to be wrong by nearly as much.
  double slow_device = 1.3;
  double slow_network = 1.6;      ///< measured over stated time of collectives, beyond the slowdown of kernels
  double straggler = 0.05;        ///< slowest over median rank, minus 1
  double memory_bandwidth = 0.3;  ///< of the step: elementwise kernels and the optimizer
  double compute = 0.5;           ///< of the step: products and attention
};

/// Sorts: missing memory first, then large losses, then the work and smaller losses, each by decreasing share.
void sort_verdicts(std::vector<Verdict>& verdicts, const Thresholds& thresholds);

/// What earlier runs have shown.
struct Seen {
  /// Of the job, with the configuration's own first; empty: everything is predicted.
  std::vector<Observation> observations{};
  bool ran_out_of_memory = false;  ///< this configuration ran out of memory, so it was not measured
};

/// Returns what limits a configuration. Throws UserError if it is not modelled.
///
///   JobModel model(session, filter);
///   const Diagnosis diagnosis = diagnose(model, *session.baseline);
///   if (!diagnosis.verdicts.empty()) print(diagnosis.verdicts.front().sentence);
Diagnosis diagnose(JobModel& model, const space::Configuration& configuration, const Seen& measured = {},
                   const Thresholds& thresholds = {});

}  // namespace krigtune::diagnose
