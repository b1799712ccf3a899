// Expectation propagation for Gaussian latent values f ~ Normal(m, K) and sites Phi(t_i (f_i - b_i) / v), t_i = +-1
// (Minka 2001, "Expectation propagation for approximate Bayesian inference"; Rasmussen & Williams 2006, algorithm 3.5;
// the mean m is subtracted from f and b first). Each site is approximated by exp(nu_i f_i - tau_i f_i^2 / 2). The other
// sites and the prior give f_i the cavity distribution Normal(mu, s^2):
//
//   s^2 = S_ii / (1 - tau S_ii),   mu = (M_i - nu S_ii) / (1 - tau S_ii)         posterior Normal(M, S)
//
// The new site is the one whose product with the cavity has the moments of the true site times the cavity:
//
//   z = t (mu - b) / c,   c = sqrt(v^2 + s^2),   r = phi(z) / Phi(z),   w = r (r + z),   0 < w < 1
//   1 / tau - v^2 = c^2 (1 - w) / w >= 0,   nu / tau = mu + t c / (r + z)
//
// So a site is an observation of the value nu / tau whose noise is v and something more. r + z is computed as 1 over
// d log h / d z, h = phi + z Phi (acquisition.h), so that nothing cancels if a bound lies far above. Sites are updated
// one by one, with rank-one updates of S. After every sweep S is computed again from B = I + sqrt(T) K sqrt(T), T =
// diag(tau):
//
//   S = K - V^T V,   V = L^-1 sqrt(T) K,   B = L L^T
//   log Z = sum_i [ log Phi(z) + log(1 + tau s^2) / 2 + (mu (tau mu - 2 nu) - nu^2 s^2) / (2 (1 + tau s^2)) ]
//           - sum_i log L_ii + nu^T M / 2                                       (eqs. 3.65, 3.73 and 3.74)
#include "expectation_propagation.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "krigtune/surrogate/acquisition.h"
#include "vector_unit/normal_tails.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMostSweeps = 100;
// Largest change in one sweep of a marginal's mean (in its stddevs) and of its variance (relative). If the noise is
// small compared with the prior's stddev, rounding alone causes larger changes.
constexpr double kTolerance = 1e-10;
constexpr double kRounding = 1e-6;
constexpr double kLeastStep = 0.1;
// The smallest share of the variance left by cavity and noise that a site may remove; less would be an infinite
// variance, which is not an observation.
constexpr double kLeastInformation = 1e-13;

struct Cavity {
  double mean;
  double variance;
};

/// The Gaussian site that, times the cavity, has the moments of the true site times the cavity.
struct MatchedSite {
  double value;     ///< nu / tau
  double variance;  ///< 1 / tau - v^2
  double log_mass;  ///< log Phi(z)
};

MatchedSite match_moments(const Cavity& cavity, double sign, double bound, double noise_variance) {
  const double total = noise_variance + cavity.variance;
  const double scale = std::sqrt(total);
  const double z = sign * (cavity.mean - bound) / scale;
  const double sum = 1.0 / log_h_derivative(z);  // r + z
  const double w = std::max(log_normal_cdf_derivative(z) * sum, kLeastInformation);
  return {cavity.mean + sign * scale / sum, total * std::max(1.0 - w, 0.0) / w, log_normal_cdf(z)};
}

class Propagation {
 public:
  Propagation(VectorXd mean, const MatrixXd& covariance, const ProbitSites& sites)
      : prior_mean_(std::move(mean)),
        prior_(covariance),
        sign_(sites.sign),
        bound_(sites.bound - prior_mean_),
        noise_variance_(sites.stddev * sites.stddev),
        precision_(VectorXd::Zero(sign_.size())),
        shift_(VectorXd::Zero(sign_.size())) {
    refresh();
  }

  SiteSubstitutes run() {
    SiteSubstitutes result;
    double step = 1.0;
    double last_change = 0.0;
    while (!result.converged && result.sweeps < kMostSweeps) {
      const VectorXd mean = mean_;
      const VectorXd variance = covariance_.diagonal();
      for (Index i = 0; i < sign_.size(); ++i) update(i, step);
      refresh();
      ++result.sweeps;
      const double change = change_since(mean, variance);
      const bool falls = result.sweeps == 1 || change < last_change;
      result.converged = change <= kTolerance || (change <= kRounding && !falls);
      if (!falls) step = std::max(0.5 * step, kLeastStep);  // it oscillates
      last_change = change;
    }
    report(result);
    return result;
  }

 private:
  Cavity cavity(Index i) const {
    const double variance = std::max(covariance_(i, i), 0.0);
    const double left = 1.0 - precision_[i] * variance;
    return {(mean_[i] - shift_[i] * variance) / left, variance / left};
  }
  MatchedSite matched(Index i) const { return match_moments(cavity(i), sign_[i], bound_[i], noise_variance_); }

  void update(Index i, double step) {
    const MatchedSite site = matched(i);
    const double precision = 1.0 / (noise_variance_ + site.variance);
    const double more = step * (precision - precision_[i]);
    const double shift = step * (precision * site.value - shift_[i]);
    // S - S e_i e_i^T S more / (1 + more S_ii); M moves with S and with nu.
    const double divisor = 1.0 + more * covariance_(i, i);
    const VectorXd column = covariance_.col(i);
    mean_ += column * ((shift - more * mean_[i]) / divisor);
    covariance_.noalias() -= (more / divisor) * column * column.transpose();
    precision_[i] += more;
    shift_[i] += shift;
  }

  void refresh() {
    const VectorXd root = precision_.cwiseSqrt();
    MatrixXd b = root.asDiagonal() * prior_ * root.asDiagonal();
    b.diagonal().array() += 1.0;
    lower_ = b.llt().matrixL();  // eigenvalues >= 1
    const MatrixXd v = lower_.triangularView<Eigen::Lower>().solve(root.asDiagonal() * prior_);
    covariance_ = prior_;
    covariance_.noalias() -= v.transpose() * v;
    mean_ = covariance_ * shift_;
  }

  double change_since(const VectorXd& mean, const VectorXd& variance) const {
    if (mean.size() == 0) return 0.0;
    const Eigen::ArrayXd now = covariance_.diagonal().array().max(0.0) + kTolerance * noise_variance_;
    return std::max(((mean_ - mean).array().abs() / now.sqrt()).maxCoeff(),
                    ((covariance_.diagonal() - variance).array().abs() / now).maxCoeff());
  }

  void report(SiteSubstitutes& result) const {
    const Index n = sign_.size();
    result.value.resize(n);
    result.variance.resize(n);
    result.log_evidence = 0.5 * shift_.dot(mean_) - lower_.diagonal().array().log().sum();
    for (Index i = 0; i < n; ++i) {
      const Cavity others = cavity(i);
      const MatchedSite site = matched(i);
      result.value[i] = prior_mean_[i] + site.value;
      result.variance[i] = site.variance;
      const double tau = precision_[i];
      const double nu = shift_[i];
      const double s2 = others.variance;
      result.log_evidence += site.log_mass + 0.5 * std::log1p(tau * s2) +
                             0.5 * (others.mean * (tau * others.mean - 2.0 * nu) - nu * nu * s2) / (1.0 + tau * s2);
    }
  }

  VectorXd prior_mean_;
  const MatrixXd& prior_;
  VectorXd sign_;
  VectorXd bound_;  ///< minus the prior mean
  double noise_variance_;
  VectorXd precision_;   ///< tau
  VectorXd shift_;       ///< nu
  MatrixXd lower_;       ///< L
  MatrixXd covariance_;  ///< S
  VectorXd mean_;        ///< M, minus the prior mean
};

}  // namespace

SiteSubstitutes propagate_expectations(const VectorXd& mean, const MatrixXd& covariance, const ProbitSites& sites) {
  assert(sites.stddev > 0.0 && mean.size() == sites.sign.size() && mean.size() == sites.bound.size());
  return Propagation(mean, covariance, sites).run();
}

SiteSubstitutes propagate_expectations(const GaussianProcess& process, const Points& points, const ProbitSites& sites) {
  return propagate_expectations(process.predict(points).mean, process.posterior_covariance(points), sites);
}

}  // namespace krigtune::surrogate
