#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <thread>

#include "krigtune/core/statistics.h"
#include "krigtune/cost/step_cost.h"
#include "krigtune/runner/metrics.h"
#include "krigtune/tuner/goodput.h"
#include "krigtune/tuner/prior.h"

namespace krigtune {
namespace {

constexpr int kTypicalSamples = 100;
constexpr std::size_t kFewestPerThread = 500;  // a thread's start costs as much as ten of them
// A clock that is wrong in scale (all of it by the same power) is rarer than one that is wrong here and there.
constexpr Prior::Coefficient kPhysicsCoefficient{1.0, 0.2};

// Links that take so many times as long as is believed: congested, or fewer than was thought; or better ones. Networks
// fall short of their data sheets by a factor of two every day (experiments/data/interconnects.csv), by four seldom.
struct OtherLinks {
  double times;
  double probability;
};
constexpr std::array<OtherLinks, 4> kOtherLinks{{{0.25, 0.07}, {0.5, 0.13}, {2.0, 0.13}, {4.0, 0.07}}};

class PhysicsPrior final : public Prior {
 public:
  PhysicsPrior(const Session& session, const TimeCalibration& calibration)
      : session_(session),
        model_(*session_.workload, session_.cluster, calibration),
        is_latency_(find_metric(session.objective.metric)->kind == MetricKind::kLatency),
        typical_(typical()) {}

  bool knows_anything() const { return typical_.has_value(); }

  Eigen::VectorXd log_values(const std::vector<Configuration>& configurations) const override {
    Eigen::VectorXd values(static_cast<Eigen::Index>(configurations.size()));
    const std::size_t cores = std::max(std::thread::hardware_concurrency(), 1U);
    const std::size_t threads = std::clamp(configurations.size() / kFewestPerThread, std::size_t{1}, cores);
    const auto part = [&](std::size_t first) {
      for (std::size_t i = first; i < configurations.size(); i += threads) {
        values(static_cast<Eigen::Index>(i)) = log_value(configurations[i]).value_or(*typical_);
      }
    };
    std::vector<std::thread> others;
    for (std::size_t i = 1; i < threads; ++i) others.emplace_back(part, i);
    part(0);
    for (std::thread& other : others) other.join();
    return values;
  }

  Coefficient coefficient() const override { return kPhysicsCoefficient; }

  std::vector<Alternative> alternatives() const override {
    std::vector<Alternative> others;
    if (session_.cluster.ranks() == 1) return others;
    for (const OtherLinks& links : kOtherLinks) {
      TimeCalibration calibration;
      calibration.collectives = links.times;
      others.push_back({std::make_shared<PhysicsPrior>(session_, calibration), links.probability});
    }
    return others;
  }

 private:
  std::optional<double> log_value(const Configuration& configuration) const {
    const Configuration modelled = modelled_part(configuration);
    const std::optional<StepCost> cost = model_.if_modelled(modelled);
    if (!cost) return std::nullopt;
    const auto batch = static_cast<double>(sequences_per_step(session_, modelled));
    const auto& noise = session_.objective.gradient_noise;
    const double samples = is_latency_ ? 1.0 : batch;
    return std::log(samples / cost->step_time_s * (noise ? statistical_efficiency(*noise, batch) : 1.0));
  }

  // The median of a sample; empty where nothing of it is predicted.
  std::optional<double> typical() const {
    std::vector<double> values;
    Rng rng(0, 0);
    for (int i = 0; i < kTypicalSamples && !session_.space.is_empty(); ++i) {
      if (const auto value = log_value(session_.space.sample(rng))) values.push_back(*value);
    }
    if (values.empty()) return std::nullopt;
    return median(std::move(values));
  }

  Session session_;
  StepCostModel model_;
  bool is_latency_;
  std::optional<double> typical_;
};

}  // namespace

std::shared_ptr<const Prior> make_physics_prior(const Session& session, const MemoryFilter& filter) {
  if (find_metric(session.objective.metric) == nullptr) return nullptr;
  if (Forecaster(session, filter).knows_time()) {
    auto prior = std::make_shared<const PhysicsPrior>(session, TimeCalibration{});
    if (prior->knows_anything()) return prior;
  }
  return make_rules_of_thumb(session);
}

}  // namespace krigtune
