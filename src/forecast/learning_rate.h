#pragma once
#include <optional>

#include "session/session.h"

namespace krigtune::forecast {

/// What training needs when the batch becomes another: factors, each on what the user has today. Advice: nothing that
/// is exported is changed by it.
struct LearningRateAdvice {
  std::int64_t base_batch = 1;  ///< sequences a step, today
  std::int64_t batch = 1;       ///< of the configuration
  workload::OptimizerKind optimizer = workload::OptimizerKind::kAdamW;
  double linear = 1.0;                ///< of the learning rate by the linear rule
  double square_root = 1.0;           ///< by the square-root rule
  std::optional<double> by_noise;     ///< by the gradient noise scale, where it is known
  double warmup_steps = 1.0;          ///< of the steps of the warm-up: as many samples as today
  std::optional<double> total_steps;  ///< of all steps to the same loss, where the noise scale is known

  /// The rule for this optimizer: by the noise scale where it is known; else linear for SGD, square root for AdamW.
  double learning_rate() const;
  const char* rule() const;  ///< its name: "linear", "square-root", "AdaScale"
};

/// By the rules alone. Empty where the batches are the same.
std::optional<LearningRateAdvice> learning_rate_advice(std::int64_t base_batch, std::int64_t batch,
                                                       workload::OptimizerKind optimizer);

/// Empty where the configuration keeps the batch, or nobody knows today's: of the objective's base batch, else of the
/// baseline.
std::optional<LearningRateAdvice> learning_rate_advice(const session::Session& session,
                                                       const space::Configuration& configuration);

}  // namespace krigtune::forecast
