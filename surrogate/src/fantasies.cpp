// Expected improvement averaged over the possible values of the pending points (Snoek, Larochelle & Adams 2012,
// section 3.2). With L extended by the q pending rows, their noisy values y_P, before they are known, are
//
//   y_P = E[y_P] + L_PP e,   e ~ Normal(0, I_q)
//
// so a fantasy is nothing but e in the new entries of w = L^-1 (y - H b). V and the variance are the same for all:
//
//   mean_j(x)   = h(x)^T b + V^T [w; e_j],   variance(x) = C(x, x) - |V|^2,   V = L^-1 C([X; P], x)
//   best_j      = max(best, mean_j at P)
//   score(x)    = log 1/N sum_j EI(x; mean_j, variance, best_j) = log sum_j exp(a_j) - log N
//   d score     = sum_j p_j d a_j,   p_j = exp(a_j) / sum_i exp(a_i)
#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "cholesky.h"
#include "fantasy_draws.h"
#include "krigtune/surrogate/success_model.h"
#include "quasi_random.h"
#include "vector_unit/normal_tails.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kFantasyBlock = 256;  // candidates: as in gaussian_process.cpp

/// Returns the log of the mean of exp over each row, and replaces `rows` by the weights p.
VectorXd log_mean_exp(MatrixXd& rows) {
  const VectorXd largest = rows.rowwise().maxCoeff();
  rows = (rows.colwise() - largest).array().exp();
  const VectorXd sums = rows.rowwise().sum();
  rows = sums.cwiseInverse().asDiagonal() * rows;
  return largest.array() + (sums / static_cast<double>(rows.cols())).array().log();
}

class FantasyImprovement final : public ScoreFunction {
 public:
  FantasyImprovement(const GaussianProcess& process, const Points& pending, double best, const MatrixXd& draws);
  VectorXd values(const Points& points) const override;
  double value_with_gradient(const Points& point, VectorXd& gradient) const override;

 private:
  /// V^T at the points.
  MatrixXd explained(const Points& points) const;
  /// mean_j at the points, given V^T: m x N.
  MatrixXd means(const Points& points, const MatrixXd& v) const {
    // A process that believes the pending points has 0 in their entries of w.
    const VectorXd believed = process_.prior_mean(points) + v * process_.whitened();
    return (v.rightCols(draws_.rows()) * draws_).colwise() + believed;
  }

  GaussianProcess process_;  ///< which believes the pending points
  MatrixXd draws_;           ///< e_j, one column for each fantasy
  std::vector<std::unique_ptr<Acquisition>> improvements_;
};

FantasyImprovement::FantasyImprovement(const GaussianProcess& process, const Points& pending, double best,
                                       const MatrixXd& draws)
    : process_(process), draws_(draws) {
  assert(process.points().size() == process.observed() && draws.rows() == pending.size() && draws.cols() > 0);
  process_.believe(pending);
  VectorXd bests = VectorXd::Constant(draws.cols(), best);
  if (pending.size() > 0) bests = bests.cwiseMax(means(pending, explained(pending)).colwise().maxCoeff().transpose());
  for (const double one : bests) improvements_.push_back(make_log_expected_improvement(one));
}

MatrixXd FantasyImprovement::explained(const Points& points) const {
  MatrixXd v = process_.prior_covariance(points, process_.points());
  solve_rows(process_.lower(), v);
  return v;
}

VectorXd FantasyImprovement::values(const Points& points) const {
  VectorXd result(points.size());
  for (Index first = 0; first < points.size(); first += kFantasyBlock) {
    const Points block = points.slice(first, std::min(kFantasyBlock, points.size() - first));
    const MatrixXd v = explained(block);
    MatrixXd scores = means(block, v);
    Prediction prediction;
    prediction.variance = (process_.prior_variance(block) - v.rowwise().squaredNorm()).cwiseMax(0.0);
    for (Index j = 0; j < scores.cols(); ++j) {
      prediction.mean = scores.col(j);
      scores.col(j) = improvements_[static_cast<std::size_t>(j)]->values(prediction);
    }
    result.segment(first, block.size()) = log_mean_exp(scores);
  }
  return result;
}

double FantasyImprovement::value_with_gradient(const Points& point, VectorXd& gradient) const {
  const VectorXd v = explained(point).transpose();
  const double variance = std::max(process_.prior_variance(point)[0] - v.squaredNorm(), 0.0);
  MatrixXd scores = means(point, v.transpose());
  VectorXd by_mean(scores.cols());
  VectorXd by_variance(scores.cols());
  for (Index j = 0; j < scores.cols(); ++j) {
    const AcquisitionValue one = improvements_[static_cast<std::size_t>(j)]->at(scores(0, j), variance);
    scores(0, j) = one.value;
    by_mean[j] = one.by_mean;
    by_variance[j] = one.by_variance;
  }
  const double value = log_mean_exp(scores)[0];
  const VectorXd share = scores.transpose();
  const VectorXd shared_by_mean = share.cwiseProduct(by_mean);
  const double shared_by_variance = share.dot(by_variance);
  VectorXd by_v = shared_by_mean.sum() * process_.whitened() - 2.0 * shared_by_variance * v;
  by_v.tail(draws_.rows()) += draws_ * shared_by_mean;
  const VectorXd weights = process_.lower().triangularView<Eigen::Lower>().transpose().solve(by_v);
  const VectorXd theta = process_.theta().head(process_.theta().size() - 1);
  gradient = process_.kernel()->input_gradient(point, process_.points(), theta, weights) +
             2.0 * shared_by_variance * process_.kernel()->input_gradient(point, point, theta, VectorXd::Ones(1));
  return value;
}

}  // namespace

std::shared_ptr<const ScoreFunction> make_fantasy_improvement(const GaussianProcess& process, const Points& pending,
                                                              double best, const MatrixXd& draws) {
  return std::make_shared<FantasyImprovement>(process, pending, best, draws);
}

std::shared_ptr<const ScoreFunction> make_fantasy_improvement(const GaussianProcess& process, const Points& pending,
                                                              double best, int count, Rng& rng) {
  assert(count > 0);
  if (pending.size() == 0) return make_fantasy_improvement(process, pending, best, MatrixXd::Zero(0, 1));
  const MatrixXd uniform = HaltonSequence(pending.size(), rng).next(count).transpose();
  return make_fantasy_improvement(process, pending, best, uniform.unaryExpr(&probit));
}

}  // namespace krigtune::surrogate
