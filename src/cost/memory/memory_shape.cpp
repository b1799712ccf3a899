// A model of memory that learns its shape. A peak is the largest sum of bytes over the candidate moments m of a step,
// and each part k has a factor that all configurations of a job share:
//
//   log peak(x) = f_all + log max_m [ sum_k exp(f_k) T_mk(x) + exp(f_act) (A_m(x) + c D_m(x)) + exp(f_g) g G_m(x) ] + e
//   c = 1 / (1 + exp(-f_split)),   f_act = f_kept, f_kept + f_selective, or f_kept + f_full
//   g = 1 / (1 + exp(-f_shard))
//
// T is the planned bytes of states, gradients, logits, buffers, and of the overhead that an allocator does not count. A
// is that of activations, whose factor also depends on how the configuration recomputes them: a framework that keeps
// more than planned of a whole layer may keep less of one that is recomputed in part. D is the difference in
// activations if tokens are split over the tensor-parallel ranks where they are planned whole, or the other way round
// (it is negative then). c is the share of D that is present; it is near 0 before anything is measured. G, likewise, is
// the (negative) difference in gradients if they are sharded where only the optimizer's states are planned to be: ZeRO
// 1 keeps whole gradients in Megatron, and shards in Apex's distributed_fused_adam. With tau = 2/3 of the framework's
// spread
//
//   f_k ~ s_k t_3,  f_split and f_shard ~ N(-3, 2^2),  e ~ tau t_4
//   s: states 0.03 (they are counted, not guessed), gradients 0.2 (2 or 4 bytes an element), activations 0.3 and logits
//   0.4 (experiments/data: factors of 1 to 1.6 and 6 to 14 bytes a logit between known frameworks), recomputation 0.2
//   (a round number), buffers and overhead 0.5, all 0.08
//
// With Student's t for the factors, a peak that is off by a factor of 3 or 8 is accepted as information. For the peaks,
// t reduces the weight of an unexplained one (another rank's). Trials without a reported peak are bounds: Phi of the
// distance to the usable memory, in tau. The factors are the most probable ones, found by damped Gauss-Newton steps in
// which t's enter with their weights (nu + 1) / (nu + r^2) (iteratively reweighted least squares, Lange, Little and
// Taylor 1989). Their covariance is the inverse of the Hessian there (Laplace). Both ways to split tokens, and to
// shard gradients, serve as starting points.
#include "cost/memory/memory_shape.h"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/statistics.h"

namespace krigtune::cost {
namespace {

constexpr int kFactors = static_cast<int>(MemoryShape::kFactors);
using Factors = Eigen::Matrix<double, kFactors, 1>;
using Matrix = Eigen::Matrix<double, kFactors, kFactors>;

constexpr int kAll = kFactors - 1;
constexpr int kSplit = static_cast<int>(plan::MemoryPart::kOtherSplit);
constexpr int kGradients = static_cast<int>(plan::MemoryPart::kGradients);
constexpr int kShard = static_cast<int>(plan::MemoryPart::kShardedGradients);
constexpr int kActivations = static_cast<int>(plan::MemoryPart::kActivations);
constexpr std::array<int, 2> kRecomputed = {static_cast<int>(plan::MemoryPart::kSelectiveActivations),
                                            static_cast<int>(plan::MemoryPart::kFullActivations)};
constexpr int kOverhead = static_cast<int>(plan::MemoryPart::kOverhead);
constexpr double kPlannedShare = -3.0;  // f_split and f_shard before anything is measured: 5 % of the difference
// In the order of MemoryPart, then of the factor on all.
constexpr std::array<double, MemoryShape::kFactors> kStddev = {0.03, 0.2, 2.0, 0.3, 0.2, 0.2, 2.0, 0.4, 0.5, 0.5, 0.08};
constexpr double kFactorFreedom = 3.0;
constexpr double kPeakFreedom = 4.0;
constexpr double kOwnShare = 2.0 / 3.0;  // of the framework's spread; the remainder is explained by the factors

bool is_share(int k) { return k == kSplit || k == kShard; }

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Sum {
  double log_bytes = 0.0;
  Factors slope = Factors::Zero();  ///< of log_bytes by each factor
};

Sum sum_of(const plan::MemoryParts& parts, const Factors& factors, bool with_overhead) {
  Factors own = factors;  // of the parts' bytes
  int recomputed = kActivations;
  for (const int k : kRecomputed) {
    own(k) += factors(kActivations);
    if (parts[static_cast<std::size_t>(k)] > 0.0) recomputed = k;
  }
  Sum sum;
  double bytes = 0.0;
  for (int k = 0; k < kAll; ++k) {
    if (is_share(k) || (k == kOverhead && !with_overhead)) continue;
    const double of_part = std::exp(own(k)) * parts[static_cast<std::size_t>(k)];
    bytes += of_part;
    sum.slope(k) = of_part;
  }
  const auto add_share = [&](int difference, int of) {
    const double share = logistic(factors(difference));
    const double other = std::exp(own(of)) * parts[static_cast<std::size_t>(difference)];
    bytes += share * other;
    sum.slope(of) += share * other;
    sum.slope(difference) = share * (1.0 - share) * other;
  };
  add_share(kSplit, recomputed);
  add_share(kShard, kGradients);
  if (recomputed != kActivations) sum.slope(kActivations) += sum.slope(recomputed);
  bytes = std::max(bytes, 1.0);
  sum.slope /= bytes;
  sum.slope(kAll) = 1.0;
  sum.log_bytes = factors(kAll) + std::log(bytes);
  return sum;
}

Sum peak_of(const std::vector<plan::MemoryParts>& moments, const Factors& factors, bool with_overhead) {
  Sum peak;
  for (const plan::MemoryParts& parts : moments) {
    const Sum sum = sum_of(parts, factors, with_overhead);
    if (&parts == &moments.front() || sum.log_bytes > peak.log_bytes) peak = sum;
  }
  return peak;
}

// The first derivative of -log Phi(z), negated, and the second one. Uses the expansion of Mills' ratio for distant z.
struct Tail {
  double loss, slope, curvature;
};
Tail tail_at(double z) {
  constexpr double kFarOut = -8.0;
  if (z < kFarOut) {
    const double slope = -z - 1.0 / z;
    return {0.5 * z * z + std::log(-z) + 0.5 * std::log(2.0 * std::numbers::pi), slope, 1.0};
  }
  const double phi = std::exp(-0.5 * z * z) / std::sqrt(2.0 * std::numbers::pi);
  const double below = normal_cdf(z);
  const double slope = phi / below;
  return {-std::log(below), slope, slope * (slope + z)};
}

double student_loss(double r, double freedom) { return 0.5 * (freedom + 1.0) * std::log1p(r * r / freedom); }
double student_weight(double r, double freedom) { return (freedom + 1.0) / (freedom + r * r); }

Factors planned_factors() {
  Factors factors = Factors::Zero();
  factors(kSplit) = kPlannedShare;
  factors(kShard) = kPlannedShare;
  return factors;
}

/// -log of the posterior, its gradient, and its reweighted Hessian.
struct Posterior {
  double loss = 0.0;
  Factors gradient = Factors::Zero();
  Matrix hessian = Matrix::Zero();

  void add_prior(const Factors& factors) {
    const Factors planned = planned_factors();
    for (int k = 0; k < kFactors; ++k) {
      const double r = (factors(k) - planned(k)) / kStddev[static_cast<std::size_t>(k)];
      const double weight = is_share(k) ? 1.0 : student_weight(r, kFactorFreedom);
      loss += is_share(k) ? 0.5 * r * r : student_loss(r, kFactorFreedom);
      gradient(k) += weight * r / kStddev[static_cast<std::size_t>(k)];
      hessian(k, k) += weight / (kStddev[static_cast<std::size_t>(k)] * kStddev[static_cast<std::size_t>(k)]);
    }
  }

  void add(const MemoryEvidence& evidence, const Factors& factors, double own_stddev) {
    if (evidence.moments.empty() || !(evidence.bytes > 0.0)) return;
    const bool is_peak = evidence.shows == MemoryEvidence::Shows::kPeak;
    const Sum sum = peak_of(evidence.moments, factors, !is_peak);
    const double distance = (std::log(evidence.bytes) - sum.log_bytes) / own_stddev;
    if (is_peak) {
      const double weight = student_weight(distance, kPeakFreedom);
      loss += student_loss(distance, kPeakFreedom);
      gradient -= weight * distance / own_stddev * sum.slope;
      hessian += weight / (own_stddev * own_stddev) * sum.slope * sum.slope.transpose();
      return;
    }
    const double sign = evidence.shows == MemoryEvidence::Shows::kRan ? 1.0 : -1.0;
    const Tail tail = tail_at(sign * distance);
    loss += tail.loss;
    gradient += sign * tail.slope / own_stddev * sum.slope;
    hessian += tail.curvature / (own_stddev * own_stddev) * sum.slope * sum.slope.transpose();
  }
};

Posterior posterior_at(const Factors& factors, std::span<const MemoryEvidence> evidence, double own_stddev) {
  Posterior posterior;
  posterior.add_prior(factors);
  for (const MemoryEvidence& one : evidence) posterior.add(one, factors, own_stddev);
  return posterior;
}

struct Fit {
  Factors factors;
  double loss = 0.0;
};

Fit fit_from(Factors factors, std::span<const MemoryEvidence> evidence, double own_stddev) {
  constexpr int kSteps = 40;
  constexpr double kConverged = 1e-9;
  double damping = 1e-3;
  Posterior here = posterior_at(factors, evidence, own_stddev);
  for (int step = 0; step < kSteps && damping < 1e9; ++step) {
    Matrix damped = here.hessian;
    damped.diagonal() *= 1.0 + damping;
    const Factors next = factors - damped.ldlt().solve(here.gradient).cwiseMax(-1.0).cwiseMin(1.0);
    const Posterior there = posterior_at(next, evidence, own_stddev);
    if (!(there.loss < here.loss)) {
      damping *= 10.0;
      continue;
    }
    const double gained = here.loss - there.loss;
    factors = next;
    here = there;
    damping *= 0.2;
    if (gained < kConverged) break;
  }
  return {factors, here.loss};
}

Fit fit_of(std::span<const MemoryEvidence> evidence, double own_stddev) {
  Fit best = fit_from(planned_factors(), evidence, own_stddev);
  const auto matters = [&](int share) {
    return std::any_of(evidence.begin(), evidence.end(), [share](const MemoryEvidence& one) {
      return !one.moments.empty() && one.moments.front()[static_cast<std::size_t>(share)] != 0.0;
    });
  };
  const auto try_otherwise = [&](std::initializer_list<int> shares) {
    if (!std::ranges::all_of(shares, matters)) return;
    Factors otherwise = planned_factors();
    for (const int share : shares) otherwise(share) = -kPlannedShare;
    const Fit other = fit_from(otherwise, evidence, own_stddev);
    if (other.loss < best.loss) best = other;
  };
  try_otherwise({kSplit});
  try_otherwise({kShard});
  try_otherwise({kSplit, kShard});
  return best;
}

// Returns the deviation of peaks from the fitted ones; the framework's spread counts as three of them.
double own_stddev_of(const Factors& factors, std::span<const MemoryEvidence> evidence, double before) {
  constexpr double kWeightOfPrior = 3.0;
  double sum = kWeightOfPrior * before * before;
  double count = kWeightOfPrior;
  for (const MemoryEvidence& one : evidence) {
    if (one.shows != MemoryEvidence::Shows::kPeak || one.moments.empty() || !(one.bytes > 0.0)) continue;
    const double error = std::log(one.bytes) - peak_of(one.moments, factors, false).log_bytes;
    const double weight = student_weight(error / before, kPeakFreedom);
    sum += weight * error * error;
    count += 1.0;
  }
  return std::sqrt(sum / count);
}

}  // namespace

MemoryShape::MemoryShape(double log_stddev) : own_stddev_(kOwnShare * log_stddev) {
  Eigen::Map<Factors>(factors_.data()) = planned_factors();
  const Eigen::Map<const Factors> stddev(kStddev.data());
  Eigen::Map<Matrix>(covariance_.data()) = stddev.cwiseAbs2().asDiagonal();
}

void MemoryShape::learn(std::span<const MemoryEvidence> evidence) {
  const double before = own_stddev_;
  const Factors factors = fit_of(evidence, before).factors;
  Eigen::Map<Factors>(factors_.data()) = factors;
  own_stddev_ = own_stddev_of(factors, evidence, before);
  Eigen::Map<Matrix>(covariance_.data()) =
      posterior_at(factors, evidence, before).hessian.ldlt().solve(Matrix::Identity());
}

MemoryShape::LogBytes MemoryShape::predicted(const std::vector<plan::MemoryParts>& moments, bool with_overhead) const {
  const Sum peak = peak_of(moments, Eigen::Map<const Factors>(factors_.data()), with_overhead);
  const double of_factors = peak.slope.dot(Eigen::Map<const Matrix>(covariance_.data()) * peak.slope);
  return {peak.log_bytes, std::sqrt(std::max(of_factors, 0.0) + own_stddev_ * own_stddev_)};
}

double MemoryShape::factor(plan::MemoryPart part) const {
  const double log_factor = factors_[static_cast<std::size_t>(part)];
  return is_share(static_cast<int>(part)) ? logistic(log_factor) : std::exp(log_factor);
}

}  // namespace krigtune::cost
