#pragma once
#include <cstdint>
#include <memory>

#include "runner/runner.h"
#include "session/session.h"

namespace krigtune::session {

/// Returns the progress per sample with a batch of `batch` sequences, relative to the base batch, where it is 1.
double statistical_efficiency(const GradientNoise& noise, double batch);

/// Mean squared norm of the gradient, measured with batches of `batch` sequences.
struct GradientNorm {
  double batch = 0.0;
  double squared_norm = 0.0;
};
/// Estimates the gradient noise scale, in sequences, from two batch sizes. Empty if the measurements do not determine
/// it: equal batches, or norms that no noise can explain (the larger batch must have the smaller norm, but less than in
/// proportion).
std::optional<double> gradient_noise_scale(const GradientNorm& one, const GradientNorm& other);

/// Returns the sequences of one optimizer step. Requires a workload; works for any program, by the parameters' names.
std::int64_t global_batch(const Session& session, const space::Configuration& configuration);

/// Returns the outcome with the objective's value added if it is computed from the throughput (goodput); otherwise
/// unchanged.
trial::Outcome with_goodput(const Session& session, const space::Configuration& configuration, trial::Outcome outcome);
/// Wraps a runner so that its outcomes have this value; `session` must outlive it.
std::unique_ptr<trial::Runner> with_goodput(const Session& session, std::unique_ptr<trial::Runner> runner);

}  // namespace krigtune::session
