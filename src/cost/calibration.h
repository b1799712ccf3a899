#pragma once

namespace krigtune::cost {

/// Factors on predicted seconds, learned from measured step times; 1 if nothing is known.
struct TimeCalibration {
  double products = 1.0;  ///< matrix products and attention
  double memory = 1.0;    ///< elementwise kernels and optimizers
  double collectives = 1.0;
  double issue = 1.0;   ///< time to issue kernels
  double host = 1.0;    ///< copies and host work
  double step_s = 0.0;  ///< seconds added to every step
};

/// How a program's memory differs from its framework's numbers, for simulated machines. From trials, memory_shape.h
/// learns the same factors and more.
struct MemoryCalibration {
  double activations = 1.0;     ///< factor on activations
  double logits_bytes = 0.0;    ///< bytes per logit instead of the framework's; 0: the framework's
  double overhead_bytes = 0.0;  ///< added to the allocated bytes
  double log_stddev = 0.0;      ///< of measured over predicted peaks; 0: the framework's
};

}  // namespace krigtune::cost
