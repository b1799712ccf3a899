// Learns factors for the classes of a step's work from measured steps. With t_i(theta) the predicted time of
// observation i,
// theta = (c, d_products, d_memory, d_collectives, d_issue, d_host) and factor_k = exp(c + d_k):
//
//   minimise  sum_i (log(m_i / t_i(theta)) / e_i)^2 + sum_j (theta_j / prior_j)^2
//
// by Gauss-Newton steps, which are halved until the sum falls. A step with measured exposed communication x gives two
// observations, m and m - x, each with its own prediction. They distinguish a slow network from slow kernels, so one
// trial is enough. The priors are wide, because the diagnosis looks for machines that are not as stated
// (cost/time/calibrate_time.h, which the search uses, looks for the most probable machine instead).
//
// Communication that is predicted to be hidden has no slope, so the factor of collectives starts at the best of a few
// values.
#include "diagnose/job_model.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "forecast/forecast.h"

namespace krigtune::diagnose {
namespace {

constexpr int kDim = 6;
constexpr int kCollectives = 3;  // index in theta
using Theta = Eigen::Matrix<double, kDim, 1>;

constexpr std::array<double, kDim> kPriorStddev = {1.0, 0.4, 0.4, 1.0, 0.4, 0.4};
constexpr double kCollectivesUnseen = 0.3;  // if no exposed communication was measured
constexpr double kErrorOfDiagnosed = 0.01;  // relative
constexpr double kErrorOfOthers = 0.06;     // the error that no factors remove (calibrate_time.cpp)
constexpr double kDifference = 1e-3;
constexpr int kMostSteps = 10;
constexpr int kMostHalvings = 8;
constexpr double kEnough = 1e-4;
constexpr std::size_t kMostObservations = 24;

cost::TimeCalibration calibration_at(const Theta& theta) {
  const auto factor = [&](int k) { return std::exp(theta[0] + theta[k]); };
  cost::TimeCalibration calibration;
  calibration.products = factor(1);
  calibration.memory = factor(2);
  calibration.collectives = factor(kCollectives);
  calibration.issue = factor(4);
  calibration.host = factor(5);
  return calibration;
}

}  // namespace

double Observation::straggling_s() const {
  if (!median_rank_kernels_s || !slowest_rank_kernels_s) return 0.0;
  constexpr double kSlow = 1.05;  // ratio of a rank's kernels to the median rank's; less is noise
  const double longer_s = *slowest_rank_kernels_s - *median_rank_kernels_s;
  const bool one_is_slow = *slowest_rank_kernels_s > kSlow * *median_rank_kernels_s;
  return std::clamp(one_is_slow ? std::max(longer_s, waiting_s.value_or(0.0)) : longer_s, 0.0, step_time_s);
}

struct JobModel::Impl {
  Impl(const session::Session& of, const session::MemoryFilter& memory)
      : session(of), filter(memory), stated(*of.workload, of.cluster), learned(&stated) {}

  std::optional<Prediction> prediction(const cost::StepCostModel& model,
                                       const space::Configuration& configuration) const {
    const space::Configuration modelled = session::modelled_part(configuration);
    const std::optional<cost::StepCost> cost = model.if_modelled(modelled);
    if (!cost) return std::nullopt;
    return Prediction{*cost, static_cast<double>(forecast::sequences_per_step(session, modelled)),
                      filter.check(configuration)};
  }

  const session::Session& session;
  const session::MemoryFilter& filter;
  cost::StepCostModel stated;
  cost::TimeCalibration factors;
  std::unique_ptr<cost::StepCostModel> corrected;
  const cost::StepCostModel* learned;
};

namespace {

/// The time of one step, or of a step without its exposed communication.
struct Target {
  const space::Configuration* configuration;
  bool without_communication;
  double seconds;
  double error;
};

class FactorFit {
 public:
  FactorFit(const session::Session& session, std::vector<Target> targets, bool saw_communication)
      : session_(session), targets_(std::move(targets)) {
    for (int j = 0; j < kDim; ++j) weight_[j] = 1.0 / std::pow(kPriorStddev[static_cast<std::size_t>(j)], 2);
    // An emulated link takes as long as it is told to.
    if (!saw_communication || session.cluster.emulated_network)
      weight_[kCollectives] = 1.0 / std::pow(kCollectivesUnseen, 2);
  }

  Theta run() const {
    Theta theta = start();
    Eigen::VectorXd residuals = residuals_at(theta);
    double energy = energy_of(theta, residuals);
    for (int step = 0; step < kMostSteps; ++step) {
      const double before = energy;
      if (!descend(theta, residuals, energy) || before - energy <= kEnough * before) break;
    }
    return theta;
  }

 private:
  Eigen::VectorXd residuals_at(const Theta& theta) const {
    const cost::StepCostModel model(*session_.workload, session_.cluster, calibration_at(theta));
    Eigen::VectorXd residuals(static_cast<Eigen::Index>(targets_.size()));
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const cost::StepCost cost = model(*targets_[i].configuration);
      const double predicted_s = cost.step_time_s - (targets_[i].without_communication ? cost.exposed_comm_s : 0.0);
      residuals[static_cast<Eigen::Index>(i)] =
          std::log(targets_[i].seconds / std::max(predicted_s, kDifference * targets_[i].seconds)) / targets_[i].error;
    }
    return residuals;
  }

  double energy_of(const Theta& theta, const Eigen::VectorXd& residuals) const {
    return residuals.squaredNorm() + theta.cwiseAbs2().dot(weight_);
  }

  Theta start() const {
    Theta best = Theta::Zero();
    double least = energy_of(best, residuals_at(best));
    for (const double factor : {2.0, 4.0, 8.0, 16.0}) {
      Theta theta = Theta::Zero();
      theta[kCollectives] = std::log(factor);
      const double energy = energy_of(theta, residuals_at(theta));
      if (energy < least) {
        least = energy;
        best = theta;
      }
    }
    return best;
  }

  // Returns false if no step in this direction lowers the sum.
  bool descend(Theta& theta, Eigen::VectorXd& residuals, double& energy) const {
    Eigen::Matrix<double, Eigen::Dynamic, kDim> slopes(residuals.size(), kDim);
    for (int j = 0; j < kDim; ++j) {
      Theta moved = theta;
      moved[j] += kDifference;
      slopes.col(j) = (residuals - residuals_at(moved)) / kDifference;
    }
    Eigen::Matrix<double, kDim, kDim> normal = slopes.transpose() * slopes;
    normal.diagonal() += weight_;
    const Theta right = slopes.transpose() * residuals - weight_.cwiseProduct(theta);
    Theta step = normal.ldlt().solve(right);
    for (int halving = 0; halving < kMostHalvings; ++halving, step *= 0.5) {
      const Theta moved = theta + step;
      const Eigen::VectorXd there = residuals_at(moved);
      const double lower = energy_of(moved, there);
      if (!(lower < energy)) continue;
      theta = moved;
      residuals = there;
      energy = lower;
      return true;
    }
    return false;
  }

  const session::Session& session_;
  std::vector<Target> targets_;
  Theta weight_;
};

}  // namespace

JobModel::JobModel(const session::Session& session, const session::MemoryFilter& filter) {
  const forecast::Forecaster forecaster(session, filter);
  if (!forecaster.knows_time()) {
    throw UserError(session.file.string() + (session.file.empty() ? "" : ": ") +
                        "nothing can be said of what limits it: " + forecaster.why_no_time(),
                    "the models need the blocks \"workload\" and \"cluster\" (docs/session.md)");
  }
  impl_ = std::make_unique<Impl>(session, filter);
}

JobModel::~JobModel() = default;

void JobModel::learn(const std::vector<Observation>& observations, std::size_t diagnosed) {
  std::vector<space::Configuration> configurations(observations.size());
  std::vector<Target> targets;
  bool saw_communication = false;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Observation& seen = observations[i];
    configurations[i] = session::modelled_part(seen.configuration);
    const bool is_it = i == diagnosed;
    if ((!is_it && targets.size() >= kMostObservations) || !impl_->stated.if_modelled(configurations[i])) continue;
    const double error = is_it ? kErrorOfDiagnosed : kErrorOfOthers;
    const double step_s = seen.step_time_s - seen.straggling_s();
    targets.push_back({&configurations[i], false, step_s, error});
    if (!seen.exposed_comm_s) continue;
    const double exposed_s = std::max(0.0, *seen.exposed_comm_s - seen.straggling_s());
    if (!(exposed_s < step_s)) continue;
    saw_communication = true;
    targets.push_back({&configurations[i], true, step_s - exposed_s, error});
  }
  if (targets.empty()) return;
  impl_->factors = calibration_at(FactorFit(impl_->session, std::move(targets), saw_communication).run());
  impl_->corrected =
      std::make_unique<cost::StepCostModel>(*impl_->session.workload, impl_->session.cluster, impl_->factors);
  impl_->learned = impl_->corrected.get();
}

std::optional<Prediction> JobModel::predict(const space::Configuration& configuration) const {
  return impl_->prediction(*impl_->learned, configuration);
}

std::optional<Prediction> JobModel::stated(const space::Configuration& configuration) const {
  return impl_->prediction(impl_->stated, configuration);
}

std::optional<Prediction> JobModel::on(const space::Configuration& configuration,
                                       const std::function<void(cost::Machine&)>& change) const {
  cost::Machine machine = cost::make_machine(*impl_->session.workload, impl_->session.cluster, impl_->factors);
  change(machine);
  return impl_->prediction(cost::StepCostModel(*impl_->session.workload, impl_->session.cluster, machine),
                           configuration);
}

std::optional<Prediction> JobModel::with(const space::Configuration& configuration,
                                         const cost::TimeCalibration& factors) const {
  return impl_->prediction(cost::StepCostModel(*impl_->session.workload, impl_->session.cluster, factors),
                           configuration);
}

const cost::TimeCalibration& JobModel::factors() const { return impl_->factors; }
const session::Session& JobModel::session() const { return impl_->session; }

}  // namespace krigtune::diagnose
