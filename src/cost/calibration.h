#pragma once

namespace krigtune::cost {

/// What measured step times taught: factors on predicted seconds, 1 where nothing is known.
struct TimeCalibration {
  double products = 1.0;  ///< matrix products and attention
  double memory = 1.0;    ///< elementwise kernels and optimizers
  double collectives = 1.0;
  double issue = 1.0;   ///< of issuing kernels
  double host = 1.0;    ///< copies and host work
  double step_s = 0.0;  ///< added to every step
};

/// What a program keeps otherwise than its framework's numbers have it: for simulated machines. Trials teach the same
/// factors and more by memory_shape.h.
struct MemoryCalibration {
  double activations = 1.0;     ///< factor on activations
  double logits_bytes = 0.0;    ///< a logit, instead of the framework's; 0: the framework's
  double overhead_bytes = 0.0;  ///< on top of what is allocated
  double log_stddev = 0.0;      ///< of measured over predicted; 0: the framework's spread
};

}  // namespace krigtune::cost
