// Posterior given a backbone B, of which there is a Cholesky factor, and the nearest N(x) of the other observations.
// With the backbone's posterior mean m_B and the residual covariance
//
//   R(x, y) = C(x, y) - V_x^T V_y,   V_x = L^-1 C(B, x)
//
// the observations of N are values of a process with that mean and covariance, and conditioning on them is exact:
//
//   S = R(N, N) + diag(noise),   c = R(N, x)
//   mean     = m_B(x) + c^T S^-1 (y_N - m_B(N))
//   variance = R(x, x) - c^T S^-1 c
//
// A low-rank part that all points share and a local part in its residuals: full-scale approximations (Sang & Huang
// 2012, "A full scale approximation of covariance functions for large spatial data sets"), with the nearest neighbours
// of Vecchia 1988 in the place of blocks. Neighbours are those of the largest kernel covariance with x, so that
// lengthscales count and no metric is needed.
#include "krigtune/surrogate/nearby_observations.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "cholesky.h"
#include "vector_unit/vector_unit.h"

namespace krigtune::surrogate {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr Index kPointsAtOnce = 128;  // 128 x 10^4 covariances are 10 MB

VectorXd theta_of_kernel(const GaussianProcess& process) { return process.theta().head(process.theta().size() - 1); }

/// Places of the `count` largest absolute values, ascending; the earlier of equals.
std::vector<Index> largest(const VectorXd& values, Index count) {
  std::vector<Index> places;
  if (values.size() <= count) {
    for (Index i = 0; i < values.size(); ++i) places.push_back(i);
    return places;
  }
  std::vector<std::pair<double, Index>> kept;  // a heap: its first entry is the one to go
  const auto precedes = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  for (Index i = 0; i < values.size(); ++i) {
    const double size = std::abs(values[i]);
    if (static_cast<Index>(kept.size()) == count) {
      if (!(size > kept.front().first)) continue;
      std::pop_heap(kept.begin(), kept.end(), precedes);
      kept.pop_back();
    }
    kept.emplace_back(size, i);
    std::push_heap(kept.begin(), kept.end(), precedes);
  }
  for (const auto& [size, place] : kept) places.push_back(place);
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

NearbyObservations::NearbyObservations(const GaussianProcess& process, const Observations& observations,
                                       Index neighbours)
    : neighbours_(neighbours), whitened_(process.points().size(), 0) {
  assert(neighbours > 0 && process.points().size() > 0);
  append(process, observations);
}

void NearbyObservations::append(const GaussianProcess& process, const Observations& more) {
  assert(process.points().size() == whitened_.rows());
  if (more.size() == 0) return;
  more.validate();
  const Index before = size();
  const Index after = before + more.size();
  MatrixXd v = process.prior_covariance(more.points, process.points());
  solve_rows(process.lower(), v);
  whitened_.conservativeResize(Eigen::NoChange, after);
  whitened_.rightCols(more.size()) = v.transpose();
  residuals_.conservativeResize(after);
  residuals_.tail(more.size()) = more.values - process.prior_mean(more.points) - v * process.whitened();
  noise_.conservativeResize(after);
  noise_.tail(more.size()).setConstant(process.noise_stddev() * process.noise_stddev() + process.jitter());
  if (more.variance.size() > 0) noise_.tail(more.size()) += more.variance;
  points_.append(more.points);
}

/// What the nearest observations add to the backbone's mean and variance.
void NearbyObservations::refine(const GaussianProcess& process, const Points& point, const VectorXd& covariances,
                                const VectorXd& whitened, double& mean, double& variance) const {
  const std::vector<Index> near = largest(covariances, neighbours_);
  const Points neighbours = points_.rows(near);
  const auto count = static_cast<Index>(near.size());
  const MatrixXd v = whitened_(Eigen::all, near).transpose();  // k x M
  MatrixXd s = process.prior_covariance(neighbours, neighbours);
  vector_unit().subtract_product(count, count, v.cols(), v.data(), v.outerStride(), v.data(), v.outerStride(), s.data(),
                                 s.outerStride());
  s.diagonal() += noise_(near);
  const Eigen::LLT<MatrixXd> factor(s);
  if (factor.info() != Eigen::Success) return;  // the backbone's prediction stands: an exact posterior too
  VectorXd cross = process.prior_covariance(neighbours, point).col(0) - v * whitened;
  VectorXd residuals = residuals_(near);
  factor.matrixL().solveInPlace(cross);
  factor.matrixL().solveInPlace(residuals);
  mean += cross.dot(residuals);
  variance = std::max(variance - cross.squaredNorm(), 0.0);
}

Prediction NearbyObservations::predict(const GaussianProcess& process, const Points& points) const {
  assert(process.points().size() == whitened_.rows());
  Prediction prediction{VectorXd(points.size()), VectorXd(points.size())};
  const VectorXd theta = theta_of_kernel(process);
  for (Index first = 0; first < points.size(); first += kPointsAtOnce) {
    const Index count = std::min(kPointsAtOnce, points.size() - first);
    const Points block = points.slice(first, count);
    MatrixXd v = process.prior_covariance(block, process.points());
    solve_rows(process.lower(), v);
    const MatrixXd whitened = v.transpose();  // M x block
    const MatrixXd covariances = process.kernel()->gram(points_, block, theta);
    const VectorXd mean = process.prior_mean(block) + v * process.whitened();
    const VectorXd variance = process.prior_variance(block) - v.rowwise().squaredNorm();
    for (Index i = 0; i < count; ++i) {
      double& its_mean = prediction.mean[first + i] = mean[i];
      double& its_variance = prediction.variance[first + i] = std::max(variance[i], 0.0);
      refine(process, block.slice(i, 1), covariances.col(i), whitened.col(i), its_mean, its_variance);
    }
  }
  return prediction;
}

}  // namespace krigtune::surrogate
