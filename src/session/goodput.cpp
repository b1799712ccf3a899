// Throughput alone always favours a larger batch, but training does not. With phi the gradient noise scale, the trace
// of the gradient's covariance over its squared norm (McCandlish, Kaplan, Amodei et al. 2018, "An Empirical Model of
// Large-Batch Training"), M samples make as much progress in one step as M / (1 + M / phi) samples in steps of one
// each:
//
//   goodput(x) = throughput(x) * efficiency(M(x)),   efficiency(M) = (phi + M0) / (phi + M)
//
// (Qiao et al. 2021, "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning", equation 6), with M
// the sequences of a step and M0 those of the base batch. M0 scales all values equally: it determines the unit but
// never the best. If a step takes a + b M seconds, the best batch is sqrt(a phi / b), where the marginal gain is zero.
//
// phi follows from batches B1 < B2 with mean squared gradient norms g1, g2 (McCandlish et al., appendix A.1), because E
// g_i = |G|^2 + S / B_i:
//
//   |G|^2 = (B2 g2 - B1 g1) / (B2 - B1),   S = (g1 - g2) / (1 / B1 - 1 / B2),   phi = S / |G|^2
#include "session/goodput.h"

#include <cmath>
#include <utility>

#include "space/parallel_layout.h"
#include "space/usual_names.h"
#include "space/well_known.h"

namespace krigtune::session {
namespace {

// Requires a session whose objective is goodput.
double efficiency_of(const Session& session, const space::Configuration& configuration) {
  return statistical_efficiency(*session.objective.gradient_noise,
                                static_cast<double>(global_batch(session, configuration)));
}

class GoodputRunner final : public trial::Runner {
 public:
  GoodputRunner(const Session& session, std::unique_ptr<trial::Runner> runner)
      : session_(session), runner_(std::move(runner)) {}

  // Converts a rival's goodput to the throughput that this configuration needs to match it.
  trial::Outcome run(const space::Configuration& configuration, const trial::RunContext& context) override {
    trial::RunContext in_throughput = context;
    if (in_throughput.rival) {
      const double efficiency = efficiency_of(session_, configuration);
      in_throughput.rival->metric = session_.objective.throughput_field;
      in_throughput.rival->value /= efficiency;
      in_throughput.rival->value_sem /= efficiency;
    }
    return with_goodput(session_, configuration, runner_->run(configuration, in_throughput));
  }

 private:
  const Session& session_;
  std::unique_ptr<trial::Runner> runner_;
};

}  // namespace

double statistical_efficiency(const GradientNoise& noise, double batch) {
  return (noise.noise_scale + noise.base_batch) / (noise.noise_scale + batch);
}

std::optional<double> gradient_noise_scale(const GradientNorm& one, const GradientNorm& other) {
  const double squared_gradient =
      (other.batch * other.squared_norm - one.batch * one.squared_norm) / (other.batch - one.batch);
  const double noise = (one.squared_norm - other.squared_norm) / (1.0 / one.batch - 1.0 / other.batch);
  const double scale = noise / squared_gradient;
  const bool is_possible = squared_gradient > 0.0 && noise > 0.0 && std::isfinite(scale);
  return is_possible ? std::optional(scale) : std::nullopt;
}

std::int64_t global_batch(const Session& session, const space::Configuration& configuration) {
  if (session.workload->train_batch_size) return *session.workload->train_batch_size;
  const space::Configuration usual = space::in_usual_names(configuration);
  const std::optional<std::int64_t> dp = space::data_parallel_ranks(session.cluster.ranks(), usual);
  // A space has no configuration without whole replicas.
  return space::sequences_of_step(usual.integer(space::kMicroBatch, 1), dp.value_or(1),
                                  usual.integer(space::kAccumulation, 1));
}

trial::Outcome with_goodput(const Session& session, const space::Configuration& configuration, trial::Outcome outcome) {
  const Objective& objective = session.objective;
  if (objective.throughput_field.empty()) return outcome;
  const double efficiency = efficiency_of(session, configuration);
  if (auto* measured = std::get_if<trial::Measured>(&outcome)) {
    measured->metrics["statistical_efficiency"] = efficiency;
    measured->metrics[objective.field] = measured->metrics.at(objective.throughput_field) * efficiency;
    measured->value_sem *= efficiency;
  } else if (auto* bounded = std::get_if<trial::Bounded>(&outcome)) {
    bounded->at_best *= efficiency;
  }
  return outcome;
}

std::unique_ptr<trial::Runner> with_goodput(const Session& session, std::unique_ptr<trial::Runner> runner) {
  if (session.objective.throughput_field.empty()) return runner;
  return std::make_unique<GoodputRunner>(session, std::move(runner));
}

}  // namespace krigtune::session
