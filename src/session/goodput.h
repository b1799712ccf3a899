#pragma once
#include <cstdint>
#include <memory>

#include "runner/runner.h"
#include "session/session.h"

namespace krigtune::session {

/// Progress that a sample makes in a batch of so many sequences, relative to one of the base batch: 1 there.
double statistical_efficiency(const GradientNoise& noise, double batch);

/// The mean of the gradient's squared norm, measured with batches of so many sequences.
struct GradientNorm {
  double batch = 0.0;
  double squared_norm = 0.0;
};
/// The gradient noise scale, in sequences, by two batch sizes. Empty where they say nothing: equal batches, or norms
/// that no noise makes (the larger batch must have the smaller one, but not in proportion).
std::optional<double> gradient_noise_scale(const GradientNorm& one, const GradientNorm& other);

/// Sequences of one optimizer step. Needs a workload; knows any program's configuration by the parameters' names.
std::int64_t global_batch(const Session& session, const space::Configuration& configuration);

/// What a runner reported, with the objective's value added where it is worked out from the throughput (goodput); else
/// as it is.
trial::Outcome with_goodput(const Session& session, const space::Configuration& configuration, trial::Outcome outcome);
/// The same of a runner; `session` must outlive it.
std::unique_ptr<trial::Runner> with_goodput(const Session& session, std::unique_ptr<trial::Runner> runner);

}  // namespace krigtune::session
