// Robust maximum a posteriori estimation of factors on the parts of a step's time. With r_i the logarithm of measured
// over predicted time of trial i, at theta = (c, d_1, ..., d_5, u): factor_k = exp(c + d_k), step_s = u s0,
//
//   minimise  sum_i huber(r_i(theta) / e_i) + 1/2 sum_j (theta_j / prior_j)^2,   e_i^2 = relative_error_i^2 + e_model^2
//
// by Gauss-Newton steps on iteratively reweighted squares (Huber 1964): w_i = min(1, k / |r_i / e_i|),
//
//   (J' W J + P) step = J' W r + P (-theta),      J = -dr/dtheta by forward differences, P = diag(prior^-2)
//
// The step is halved until the objective falls. The result is kept if it predicts held-out trials better than no
// calibration does: r_i / (1 - h_i), h = diag(J (J' W J + P)^-1 J' W), is trial i's error if only the others had been
// fitted (Cook and Weisberg 1982). The gain must exceed the chance variation of n such errors, 1 / sqrt(n).
#include "cost/time/calibrate_time.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "cost/time/step_cost.h"

namespace krigtune::cost {
namespace {

constexpr std::size_t kDim = 7;
using TimeVector = std::array<double, kDim>;
using TimeMatrix = std::array<TimeVector, kDim>;

// Standard deviations of the prior: of the common factor and of the deviations of products, memory, collectives, issue
// and host from it (logarithms), and of the time added to a step, in units of kAddedFraction of the fastest trial.
// docs/accuracy.md shows the errors of uncalibrated predictions: a common factor of 1.3, and less for the parts.
constexpr TimeVector kPriorStddev = {0.3, 0.15, 0.25, 0.4, 0.3, 0.4, 1.0};
constexpr double kAddedFraction = 0.02;
constexpr double kModelError = 0.06;  // relative error that no factors correct
constexpr double kHuber = 1.5;        // larger residuals, in standard errors, count linearly
constexpr double kDifference = 1e-3;  // well above the rounding of a prediction, well below the priors
constexpr int kMostSteps = 8;
constexpr int kMostHalvings = 6;
constexpr double kEnough = 1e-4;  // relative decrease of the objective

double huber(double z) {
  const double size = std::abs(z);
  return size <= kHuber ? 0.5 * z * z : kHuber * (size - 0.5 * kHuber);
}
double huber_weight(double z) { return std::min(1.0, kHuber / std::max(std::abs(z), kHuber)); }

TimeCalibration calibration_at(const TimeVector& theta, double fastest_s) {
  TimeCalibration calibration;
  calibration.products = std::exp(theta[0] + theta[1]);
  calibration.memory = std::exp(theta[0] + theta[2]);
  calibration.collectives = std::exp(theta[0] + theta[3]);
  calibration.issue = std::exp(theta[0] + theta[4]);
  calibration.host = std::exp(theta[0] + theta[5]);
  calibration.step_s = theta[6] * kAddedFraction * fastest_s;
  return calibration;
}

double prior_energy(const TimeVector& theta) {
  double energy = 0.0;
  for (std::size_t j = 0; j < kDim; ++j) energy += 0.5 * std::pow(theta[j] / kPriorStddev[j], 2);
  return energy;
}

// Cholesky factorisation in place, lower triangle; the prior keeps it positive definite.
void factorise(TimeMatrix& a) {
  for (std::size_t j = 0; j < kDim; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(a[j][j]);
    for (std::size_t i = j + 1; i < kDim; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
}

TimeVector solve(const TimeMatrix& factor, TimeVector b) {
  for (std::size_t i = 0; i < kDim; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= factor[i][k] * b[k];
    b[i] /= factor[i][i];
  }
  for (std::size_t i = kDim; i-- > 0;) {
    for (std::size_t k = i + 1; k < kDim; ++k) b[i] -= factor[k][i] * b[k];
    b[i] /= factor[i][i];
  }
  return b;
}

double dot(const TimeVector& a, const TimeVector& b) {
  double sum = 0.0;
  for (std::size_t j = 0; j < kDim; ++j) sum += a[j] * b[j];
  return sum;
}

class TimeFit {
 public:
  TimeFit(const PredictTimes& predict_s, std::span<const MeasuredTime> measured)
      : predict_s_(predict_s), measured_(measured), fastest_s_(measured.front().seconds) {
    for (const MeasuredTime& time : measured) {
      fastest_s_ = std::min(fastest_s_, time.seconds);
      errors_.push_back(std::hypot(time.relative_error, kModelError));
    }
  }

  TimeCalibration run() {
    const std::vector<double> uncalibrated = residuals(theta_);
    Linear linear = linearised(uncalibrated);
    double energy = objective(theta_, uncalibrated);
    for (int step = 0; step < kMostSteps; ++step) {
      const std::optional<std::pair<TimeVector, std::vector<double>>> next = descend(linear, energy);
      if (!next) break;
      theta_ = next->first;
      const double before = std::exchange(energy, objective(theta_, next->second));
      linear = linearised(next->second);
      if (before - energy <= kEnough * before) break;
    }
    return gains(linear, uncalibrated) ? calibration_at(theta_, fastest_s_) : TimeCalibration{};
  }

 private:
  struct Linear {
    std::vector<double> residuals;      // in standard errors
    std::vector<TimeVector> gradients;  // of the predicted logarithm, in the same unit
    std::vector<double> weights;
    TimeMatrix factor{};  // of J' W J + P
  };

  std::vector<double> residuals(const TimeVector& theta) const {
    std::vector<double> result = predict_s_(calibration_at(theta, fastest_s_));
    assert(result.size() == measured_.size());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const double predicted_s = std::max(result[i], kDifference * fastest_s_);
      result[i] = std::log(measured_[i].seconds / predicted_s) / errors_[i];
    }
    return result;
  }

  static double objective(const TimeVector& theta, const std::vector<double>& at) {
    double energy = prior_energy(theta);
    for (const double z : at) energy += huber(z);
    return energy;
  }

  Linear linearised(const std::vector<double>& at) const {
    Linear linear{at, std::vector<TimeVector>(at.size()), {}, {}};
    for (std::size_t j = 0; j < kDim; ++j) {
      TimeVector moved = theta_;
      moved[j] += kDifference;
      const std::vector<double> there = residuals(moved);
      for (std::size_t i = 0; i < at.size(); ++i) linear.gradients[i][j] = (at[i] - there[i]) / kDifference;
      linear.factor[j][j] = 1.0 / (kPriorStddev[j] * kPriorStddev[j]);
    }
    for (std::size_t i = 0; i < at.size(); ++i) {
      linear.weights.push_back(huber_weight(at[i]));
      for (std::size_t j = 0; j < kDim; ++j) {
        for (std::size_t k = 0; k < kDim; ++k) {
          linear.factor[j][k] += linear.weights[i] * linear.gradients[i][j] * linear.gradients[i][k];
        }
      }
    }
    factorise(linear.factor);
    return linear;
  }

  // The first of the step and its halves that lowers the objective, with its residuals.
  std::optional<std::pair<TimeVector, std::vector<double>>> descend(const Linear& linear, double energy) const {
    TimeVector right{};
    for (std::size_t j = 0; j < kDim; ++j) {
      right[j] = -theta_[j] / (kPriorStddev[j] * kPriorStddev[j]);
      for (std::size_t i = 0; i < linear.residuals.size(); ++i) {
        right[j] += linear.weights[i] * linear.gradients[i][j] * linear.residuals[i];
      }
    }
    const TimeVector step = solve(linear.factor, right);
    double length = 1.0;
    for (int halving = 0; halving < kMostHalvings; ++halving, length *= 0.5) {
      TimeVector moved = theta_;
      for (std::size_t j = 0; j < kDim; ++j) moved[j] += length * step[j];
      std::vector<double> there = residuals(moved);
      if (objective(moved, there) < energy) return std::pair(moved, std::move(there));
    }
    return std::nullopt;
  }

  static bool gains(const Linear& linear, const std::vector<double>& uncalibrated) {
    double held_out = 0.0;
    double without = 0.0;
    for (std::size_t i = 0; i < uncalibrated.size(); ++i) {
      const double leverage = linear.weights[i] * dot(linear.gradients[i], solve(linear.factor, linear.gradients[i]));
      held_out += huber(linear.residuals[i] / (1.0 - leverage));
      without += huber(uncalibrated[i]);
    }
    const double by_chance = 1.0 / std::sqrt(static_cast<double>(uncalibrated.size()));
    return held_out < (1.0 - by_chance) * without;
  }

  const PredictTimes& predict_s_;
  std::span<const MeasuredTime> measured_;
  double fastest_s_;
  std::vector<double> errors_;
  TimeVector theta_{};
};

}  // namespace

TimeCalibration calibrate_time(const PredictTimes& predict_s, std::span<const MeasuredTime> measured) {
  constexpr std::size_t kFewest = 2;
  if (measured.size() < kFewest) return {};
  return TimeFit(predict_s, measured).run();
}

TimeCalibration calibrate_time(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                               std::span<const TimedTrial> trials) {
  std::vector<MeasuredTime> measured;
  for (const TimedTrial& trial : trials) measured.push_back({trial.seconds, trial.relative_error});
  const PredictTimes predict_s = [&](const TimeCalibration& calibration) {
    const StepCostModel model(workload, cluster, calibration);
    std::vector<double> predicted_s;
    for (const TimedTrial& trial : trials) predicted_s.push_back(model(trial.configuration).step_time_s);
    return predicted_s;
  };
  return calibrate_time(predict_s, measured);
}

}  // namespace krigtune::cost
