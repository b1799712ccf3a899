// The most probable calibration of a framework's memory, by damped Gauss-Newton steps on
//
//   sum_i w_i (log peak_i - log allocated_i(theta))^2 / s^2
//   + sum_j w_j max(0, log usable_j - log needed_j(theta))^2 / s^2
//   + (theta_0 / 0.25)^2 + (theta_1 / 0.35)^2 + (theta_2 / 0.5 GB)^2
//
// theta = log factor on activations, log factor on bytes of a logit, bytes on top. The first sum is over measured
// peaks, the second over trials that ran out of memory: of those it is known only that they needed more than there is.
// The priors are the framework's own numbers; 0.25 and 0.35 are how far apart frameworks are (1 to 1.6 on activations,
// 6 to 14 bytes a logit). With u = 1 / (1 + (r / 2.5)^2), w = u (Cauchy) lets a peak count little that lies far off,
// say of another rank, and w = u^2 (Geman and McClure) lets a bound that lies far off hardly count: a crash that was
// taken for a lack of memory.
#include <algorithm>
#include <array>
#include <cmath>

#include "krigtune/cost/calibration.h"
#include "krigtune/cost/framework.h"
#include "memory/framework_memory.h"
#include "memory/profile_cache.h"

namespace krigtune {
namespace {

constexpr std::size_t kTheta = 3;
constexpr std::array<double, kTheta> kPriorStddev = {0.25, 0.35, 1.0};
constexpr double kOverheadUnit = 0.5e9;
constexpr double kOfSpread = 2.0 / 3.0;  // of a framework's spread: what theta does not say of one peak
constexpr double kFarOff = 2.5;

using Theta = std::array<double, kTheta>;

double near(double residual) { return 1.0 / (1.0 + residual * residual / (kFarOff * kFarOff)); }

class Fit {
 public:
  Fit(const Workload& workload, const ClusterSpec& cluster, std::span<const MemoryTrial> trials)
      : workload_(workload),
        traits_(traits_of(workload.framework)),
        log_stddev_(kOfSpread * traits_.log_stddev),
        trials_(trials),
        counts_(trials.size(), true),
        profiles_(workload) {
    for (const MemoryTrial& trial : trials) {
      knobs_.push_back(read_knobs(workload, cluster, with_usual_settings(workload, trial.configuration)));
    }
  }

  MemoryCalibration run() {
    const std::vector<double> uncalibrated = residuals_at({});
    const Theta theta = helps(uncalibrated) ? fitted(kNoFold) : Theta{};
    MemoryCalibration calibration = calibration_of(theta);
    calibration.log_stddev = spread(residuals_at(theta));
    return calibration;
  }

 private:
  static constexpr std::size_t kFolds = 5;
  static constexpr std::size_t kNoFold = kFolds;

  // Whether trials are predicted better from the others, a fifth of them at a time, than by the framework's numbers.
  bool helps(const std::vector<double>& uncalibrated) {
    if (trials_.size() < kFolds) return true;
    double better = 0.0;
    for (std::size_t fold = 0; fold < kFolds; ++fold) {
      const std::vector<double> residuals = residuals_at(fitted(fold));
      for (std::size_t i = fold; i < residuals.size(); i += kFolds) {
        better += std::log(near(residuals[i]) / near(uncalibrated[i]));
      }
    }
    return better > 0.0;
  }

  // From all trials but those of a fold.
  Theta fitted(std::size_t without_fold) {
    constexpr int kSteps = 12;
    for (std::size_t i = 0; i < trials_.size(); ++i) counts_[i] = i % kFolds != without_fold;
    Theta theta{};
    std::vector<double> residuals = residuals_at(theta);
    double damping = 1e-3;
    for (int step = 0; step < kSteps; ++step) {
      const Theta move = step_from(theta, residuals, damping);
      Theta next = theta;
      for (std::size_t i = 0; i < kTheta; ++i) next[i] += std::clamp(move[i], -0.5, 0.5);
      std::vector<double> there = residuals_at(next);
      if (!(loss(next, there) < loss(theta, residuals))) {
        damping = 10.0 * std::max(damping, 1e-3);
        continue;
      }
      damping *= 0.1;
      theta = next;
      residuals = std::move(there);
    }
    return theta;
  }

  MemoryCalibration calibration_of(const Theta& theta) const {
    MemoryCalibration calibration;
    calibration.activations = std::exp(theta[0]);
    calibration.logits_bytes = traits_.logits_bytes * std::exp(theta[1]);
    calibration.overhead_bytes = kOverheadUnit * theta[2];
    return calibration;
  }

  // In units of log_stddev_; 0 for a trial that says nothing.
  std::vector<double> residuals_at(const Theta& theta) {
    const MemoryCalibration calibration = calibration_of(theta);
    const std::int64_t type = size_bytes(compute_type(workload_.precision));
    std::vector<double> residuals;
    for (std::size_t i = 0; i < trials_.size(); ++i) {
      const MemoryAssumptions assumed = assumptions_of(traits_, knobs_[i], Outlook::kExpected, calibration);
      const MemoryProfile profile = assumed_profile(*profiles_.of(knobs_[i]), assumed, type);
      const auto allocated = static_cast<double>(framework_peak(profiles_, profile, workload_, knobs_[i]).bytes.total);
      residuals.push_back(residual(trials_[i], std::max(1.0, allocated + calibration.overhead_bytes),
                                   assumed.context_bytes + assumed.fragmentation * allocated));
    }
    return residuals;
  }

  double residual(const MemoryTrial& trial, double allocated_bytes, double needed_bytes) const {
    if (trial.out_of_memory) {
      const double missing = std::log(static_cast<double>(trial.usable.count) / std::max(1.0, needed_bytes));
      return std::max(0.0, missing) / log_stddev_;
    }
    if (!trial.peak) return 0.0;
    return std::log(static_cast<double>(trial.peak->count) / allocated_bytes) / log_stddev_;
  }

  // Cauchy's for peaks, Geman and McClure's for bounds.
  double loss(const Theta& theta, const std::vector<double>& residuals) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      if (!counts_[i]) continue;
      const double r = residuals[i];
      sum += trials_[i].out_of_memory ? r * r * near(r) : kFarOff * kFarOff * std::log1p(r * r / (kFarOff * kFarOff));
    }
    for (std::size_t i = 0; i < kTheta; ++i) sum += theta[i] * theta[i] / (kPriorStddev[i] * kPriorStddev[i]);
    return sum;
  }

  double weight(std::size_t trial, double residual) const {
    if (!counts_[trial]) return 0.0;
    return trials_[trial].out_of_memory ? near(residual) * near(residual) : near(residual);
  }

  // Solves (J' W J + prior + damping) move = -(J' W r + prior theta), J by differences.
  Theta step_from(const Theta& theta, const std::vector<double>& residuals, double damping) {
    constexpr double kDifference = 0.02;
    std::array<std::vector<double>, kTheta> jacobian;
    for (std::size_t i = 0; i < kTheta; ++i) {
      Theta aside = theta;
      aside[i] += kDifference;
      jacobian[i] = residuals_at(aside);
      for (std::size_t r = 0; r < residuals.size(); ++r) jacobian[i][r] = (jacobian[i][r] - residuals[r]) / kDifference;
    }
    std::array<std::array<double, kTheta + 1>, kTheta> system{};
    for (std::size_t i = 0; i < kTheta; ++i) {
      const double prior = 1.0 / (kPriorStddev[i] * kPriorStddev[i]);
      system[i][i] = prior * (1.0 + damping);
      system[i][kTheta] = -prior * theta[i];
      for (std::size_t r = 0; r < residuals.size(); ++r) {
        const double weighted = weight(r, residuals[r]) * jacobian[i][r];
        for (std::size_t j = 0; j < kTheta; ++j)
          system[i][j] += weighted * jacobian[j][r] * (i == j ? 1.0 + damping : 1.0);
        system[i][kTheta] -= weighted * residuals[r];
      }
    }
    return solved(system);
  }

  // Gauss-Jordan; the prior keeps the matrix positive definite.
  static Theta solved(std::array<std::array<double, kTheta + 1>, kTheta> system) {
    for (std::size_t i = 0; i < kTheta; ++i) {
      for (std::size_t j = 0; j < kTheta; ++j) {
        if (j == i) continue;
        const double factor = system[j][i] / system[i][i];
        for (std::size_t k = i; k <= kTheta; ++k) system[j][k] -= factor * system[i][k];
      }
    }
    Theta solution{};
    for (std::size_t i = 0; i < kTheta; ++i) solution[i] = system[i][kTheta] / system[i][i];
    return solution;
  }

  // The framework's spread counts as much as three trials.
  double spread(const std::vector<double>& residuals) const {
    constexpr double kPriorTrials = 3.0;
    constexpr double kLeast = 0.02;
    double sum = kPriorTrials * traits_.log_stddev * traits_.log_stddev;
    double count = kPriorTrials;
    for (std::size_t i = 0; i < residuals.size(); ++i) {
      if (!trials_[i].peak || trials_[i].out_of_memory) continue;
      const double counts = near(residuals[i]);
      const double log_error = residuals[i] * log_stddev_;
      sum += counts * log_error * log_error;
      count += counts;
    }
    return std::max(kLeast, std::sqrt(sum / count));
  }

  const Workload& workload_;
  const FrameworkTraits& traits_;
  double log_stddev_;
  std::span<const MemoryTrial> trials_;
  std::vector<bool> counts_;  ///< by trial: it is fitted to
  ProfileCache profiles_;
  std::vector<Knobs> knobs_;
};

}  // namespace

MemoryCalibration calibrate_memory(const Workload& workload, const ClusterSpec& cluster,
                                   std::span<const MemoryTrial> trials) {
  if (trials.empty() || traits_of(workload.framework).exact_memory) return {};
  return Fit(workload, cluster, trials).run();
}

}  // namespace krigtune
