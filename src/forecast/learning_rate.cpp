// The learning rate for another batch. k = M / M0 is the ratio of the batches, and phi the gradient noise scale:
//
//   SGD      linear        lr' = k lr         (Goyal et al. 2017, "Accurate, Large Minibatch SGD")
//   Adam     square root   lr' = sqrt(k) lr   (Krizhevsky 2014; Hoffer et al. 2017; for Adam Malladi et al. 2022,
//                                              "On the SDEs and Scaling Rules for Adaptive Gradient Algorithms")
//   AdaScale lr' = r lr,   r = k (phi + M0) / (phi + M)   (Johnson et al. 2020, "AdaScale SGD", with the variance of a
//                                              batch of M0 over the squared gradient = phi / M0); for Adam sqrt(r), as
//                                              in Pollux (Qiao et al. 2021)
//
// r is the gain of a step: r small steps make the progress of one large one, so the total number of steps is multiplied
// by 1 / r. r approaches k for phi >> M (the rules above) and 1 + phi / M0 for M >> phi, the maximum for any batch.
// Warm-up uses as many samples as before, and therefore 1 / k times as many steps.
#include "forecast/learning_rate.h"

#include <cmath>

#include "session/goodput.h"

namespace krigtune::forecast {
namespace {

std::optional<std::int64_t> batch_of_today(const session::Session& session) {
  if (const auto& noise = session.objective.gradient_noise) return std::llround(noise->base_batch);
  if (!session.baseline) return std::nullopt;
  return session::global_batch(session, *session.baseline);
}

}  // namespace

double LearningRateAdvice::learning_rate() const {
  if (by_noise) return *by_noise;
  return optimizer == workload::OptimizerKind::kSgd ? linear : square_root;
}

const char* LearningRateAdvice::rule() const {
  if (by_noise) return "AdaScale";
  return optimizer == workload::OptimizerKind::kSgd ? "linear" : "square-root";
}

std::optional<LearningRateAdvice> learning_rate_advice(std::int64_t base_batch, std::int64_t batch,
                                                       workload::OptimizerKind optimizer) {
  if (batch == base_batch) return std::nullopt;
  LearningRateAdvice advice;
  advice.base_batch = base_batch;
  advice.batch = batch;
  advice.optimizer = optimizer;
  advice.linear = static_cast<double>(batch) / static_cast<double>(base_batch);
  advice.square_root = std::sqrt(advice.linear);
  advice.warmup_steps = 1.0 / advice.linear;
  return advice;
}

std::optional<LearningRateAdvice> learning_rate_advice(const session::Session& session,
                                                       const space::Configuration& configuration) {
  if (!session.workload) return std::nullopt;
  const std::optional<std::int64_t> today = batch_of_today(session);
  if (!today) return std::nullopt;
  auto advice =
      learning_rate_advice(*today, session::global_batch(session, configuration), session.workload->optimizer);
  const auto& noise = session.objective.gradient_noise;
  if (!advice || !noise) return advice;
  const double gain = advice->linear * session::statistical_efficiency(*noise, static_cast<double>(advice->batch));
  advice->by_noise = advice->optimizer == workload::OptimizerKind::kSgd ? gain : std::sqrt(gain);
  advice->total_steps = 1.0 / gain;
  return advice;
}

}  // namespace krigtune::forecast
