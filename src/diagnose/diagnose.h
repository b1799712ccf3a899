#pragma once
#include <vector>

#include "diagnose/job_model.h"

namespace krigtune::diagnose {

/// Shares of the step from which on something is a verdict, and from which on it is named before the work itself.
struct Thresholds {
  double share = 0.05;          ///< of the step that a loss explains
  double large_share = 0.10;    ///< such losses come before the work
  double small_kernels = 0.15;  ///< of the step, beyond what kernels of any size take at the device's rates
  double slow_device = 1.3;     ///< kernels over their stated time; predictions are known to lie off by nearly as much
  double slow_network = 1.6;    ///< collectives over their stated time, beyond what kernels are slower
  double straggler = 0.05;      ///< slowest over median rank, less 1
  double memory_bandwidth = 0.3;  ///< of the step: elementwise kernels and the optimizer
  double compute = 0.5;           ///< of the step: products and attention
};

/// Missing memory, then large losses, then the work and lesser losses; of each the largest share first.
void sort_verdicts(std::vector<Verdict>& verdicts, const Thresholds& thresholds);

/// What running has shown.
struct Seen {
  std::vector<Observation> observations{};  ///< of the job: the configuration's own first; empty: all is predicted
  bool ran_out_of_memory = false;           ///< the configuration did; nothing was measured of it then
};

/// What limits a configuration. Throws UserError where it is not modelled.
///
///   JobModel model(session, filter);
///   const Diagnosis diagnosis = diagnose(model, *session.baseline);
///   if (!diagnosis.verdicts.empty()) print(diagnosis.verdicts.front().sentence);
Diagnosis diagnose(JobModel& model, const space::Configuration& configuration, const Seen& measured = {},
                   const Thresholds& thresholds = {});

}  // namespace krigtune::diagnose
