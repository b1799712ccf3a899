#pragma once
#include <optional>

#include "session/session.h"

namespace krigtune::forecast {

/// How to change the training settings when the batch changes: factors on the user's present values. This is advice and
/// does not change anything that is exported.
struct LearningRateAdvice {
  std::int64_t base_batch = 1;  ///< present sequences per step
  std::int64_t batch = 1;       ///< sequences per step of the configuration
  workload::OptimizerKind optimizer = workload::OptimizerKind::kAdamW;
  double linear = 1.0;             ///< factor on the learning rate by the linear rule
  double square_root = 1.0;        ///< the same by the square-root rule
  std::optional<double> by_noise;  ///< the same by the gradient noise scale, if known
  /// Factor on the number of warm-up steps, so that they use as many samples as now.
  double warmup_steps = 1.0;
  std::optional<double> total_steps;  ///< factor on the number of steps to the same loss, if the noise scale is known

  /// Returns the factor by the rule for this optimizer: the noise scale if known, otherwise linear for SGD and square
  /// root for AdamW.
  double learning_rate() const;
  const char* rule() const;  ///< name of the rule: "linear", "square-root", "AdaScale"
};

/// Computes the advice from the rules alone. Empty if the batches are equal.
std::optional<LearningRateAdvice> learning_rate_advice(std::int64_t base_batch, std::int64_t batch,
                                                       workload::OptimizerKind optimizer);

/// Empty if the configuration keeps the batch or if the present batch is unknown. The present batch is the objective's
/// base batch, or else that of the baseline.
std::optional<LearningRateAdvice> learning_rate_advice(const session::Session& session,
                                                       const space::Configuration& configuration);

}  // namespace krigtune::forecast
