// The posterior given a backbone B, of which there is a Cholesky factor, and the nearest N(x) of the other
// observations. With the backbone's posterior mean m_B and the residual covariance
//
//   R(x, y) = C(x, y) - V_x^T V_y,   V_x = L^-1 C(B, x)
//
// the observations of N are values of a process with that mean and covariance, and conditioning on them is exact:
//
//   S = R(N, N) + diag(noise),   c = R(N, x)
//   mean     = m_B(x) + c^T S^-1 (y_N - m_B(N))
//   variance = R(x, x) - c^T S^-1 c
//
// All points share a low-rank part and have a local part in its residuals, as in full-scale approximations (Sang &
// Huang 2012, "A full scale approximation of covariance functions for large spatial data sets"), with the nearest
// neighbours of Vecchia 1988 in place of blocks. The neighbours are the observations with the largest kernel covariance
// with x, so that lengthscales count and no metric is needed. One more observation p is one more row of the factor L of
// S,
//
//   l = L^-1 R(N, p),   d^2 = R(p, p) + noise - l^T l,   (c_p - l^T L^-1 c) / d   the new entry of L^-1 c
//
// and adds the product of the new entries of L^-1 c and of L^-1 (y_N - m_B(N)) to the mean (KeptPredictions).
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

/// Returns the indices of the `count` largest absolute values, ascending. Of equal values the earlier one counts.
std::vector<Index> largest(const VectorXd& values, Index count) {
  std::vector<Index> places;
  if (values.size() <= count) {
    for (Index i = 0; i < values.size(); ++i) places.push_back(i);
    return places;
  }
  std::vector<std::pair<double, Index>> kept;  // a heap whose first entry is removed next
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

NearbyObservations::Neighbourhood NearbyObservations::neighbourhood(const GaussianProcess& process, const Points& point,
                                                                    const VectorXd& covariances,
                                                                    const VectorXd& whitened) const {
  Neighbourhood result;
  result.places = largest(covariances, neighbours_);
  const Points neighbours = points_.rows(result.places);
  const auto count = static_cast<Index>(result.places.size());
  const MatrixXd v = whitened_(Eigen::all, result.places).transpose();  // k x M
  MatrixXd s = process.prior_covariance(neighbours, neighbours);
  vector_unit().subtract_product(count, count, v.cols(), v.data(), v.outerStride(), v.data(), v.outerStride(), s.data(),
                                 s.outerStride());
  s.diagonal() += noise_(result.places);
  const Eigen::LLT<MatrixXd> factor(s);
  if (factor.info() != Eigen::Success) return {};
  result.cross = process.prior_covariance(neighbours, point).col(0) - v * whitened;
  result.residuals = residuals_(result.places);
  factor.matrixL().solveInPlace(result.cross);
  factor.matrixL().solveInPlace(result.residuals);
  result.lower = factor.matrixLLT();
  return result;
}

namespace {

/// The process's predictions of a block of points, without their nearby observations.
struct Alone {
  MatrixXd whitened;  // M x block: L^-1 k(X, x)
  VectorXd mean;
  VectorXd variance;  // may be below 0 by rounding
};

Alone alone(const GaussianProcess& process, const Points& block) {
  MatrixXd v = process.prior_covariance(block, process.points());
  solve_rows(process.lower(), v);
  return {v.transpose(), process.prior_mean(block) + v * process.whitened(),
          process.prior_variance(block) - v.rowwise().squaredNorm()};
}

}  // namespace

Prediction NearbyObservations::predict(const GaussianProcess& process, const Points& points) const {
  assert(process.points().size() == whitened_.rows());
  Prediction prediction{VectorXd(points.size()), VectorXd(points.size())};
  const VectorXd theta = theta_of_kernel(process);
  for (Index first = 0; first < points.size(); first += kPointsAtOnce) {
    const Index count = std::min(kPointsAtOnce, points.size() - first);
    const Points block = points.slice(first, count);
    const auto [whitened, mean, variance] = alone(process, block);
    const MatrixXd covariances = process.kernel()->gram(points_, block, theta);
    for (Index i = 0; i < count; ++i) {
      const Neighbourhood near = neighbourhood(process, block.slice(i, 1), covariances.col(i), whitened.col(i));
      prediction.mean[first + i] = mean[i] + near.cross.dot(near.residuals);
      prediction.variance[first + i] = std::max(std::max(variance[i], 0.0) - near.cross.squaredNorm(), 0.0);
    }
  }
  return prediction;
}

KeptPredictions::KeptPredictions(const GaussianProcess& process, const NearbyObservations& observations,
                                 const Points& points)
    : known_(observations.size()),
      points_(points),
      whitened_(process.points().size(), points.size()),
      coarse_{VectorXd(points.size()), VectorXd(points.size())},
      kept_(static_cast<std::size_t>(points.size())) {
  const VectorXd theta = theta_of_kernel(process);
  for (Index first = 0; first < points.size(); first += kPointsAtOnce) {
    const Index count = std::min(kPointsAtOnce, points.size() - first);
    const Points block = points.slice(first, count);
    const auto [whitened, mean, variance] = alone(process, block);
    whitened_.middleCols(first, count) = whitened;
    coarse_.mean.segment(first, count) = mean;
    coarse_.variance.segment(first, count) = variance.cwiseMax(0.0);
    const MatrixXd covariances = process.kernel()->gram(observations.points_, block, theta);
    for (Index i = 0; i < count; ++i) choose(process, observations, first + i, covariances.col(i));
  }
}

void KeptPredictions::choose(const GaussianProcess& process, const NearbyObservations& observations, Index point,
                             const VectorXd& covariances) {
  Kept& kept = kept_[static_cast<std::size_t>(point)];
  kept = {};
  const NearbyObservations::Neighbourhood near =
      observations.neighbourhood(process, points_.slice(point, 1), covariances, whitened_.col(point));
  kept.places = near.places;
  for (Index row = 0; row < near.lower.rows(); ++row) {
    for (Index column = 0; column <= row; ++column) kept.lower.push_back(near.lower(row, column));
  }
  kept.cross.assign(near.cross.begin(), near.cross.end());
  kept.residuals.assign(near.residuals.begin(), near.residuals.end());
  if (static_cast<Index>(near.places.size()) == observations.neighbours_) {
    kept.least = covariances(near.places).cwiseAbs().minCoeff();
  }
}

void KeptPredictions::append_row(Kept& kept, Index place, const VectorXd& residual, double cross, double variance,
                                 double value) {
  const std::size_t count = kept.places.size();
  std::vector<double> row(count + 1);
  const double* before = kept.lower.data();
  double square = variance;
  for (std::size_t j = 0; j < count; ++j) {
    double entry = residual(kept.places[j]);
    for (std::size_t t = 0; t < j; ++t) entry -= before[t] * row[t];
    row[j] = entry / before[j];
    before += j + 1;
    square -= row[j] * row[j];
    cross -= row[j] * kept.cross[j];
    value -= row[j] * kept.residuals[j];
  }
  if (!(square > 0.0)) return;  // it adds no information to the others
  row[count] = std::sqrt(square);
  kept.lower.insert(kept.lower.end(), row.begin(), row.end());
  kept.places.push_back(place);
  kept.cross.push_back(cross / row[count]);
  kept.residuals.push_back(value / row[count]);
}

void KeptPredictions::update(const GaussianProcess& process, const NearbyObservations& observations) {
  constexpr Index kMostNeighbourhoods = 3;
  const VectorXd theta = theta_of_kernel(process);
  for (; known_ < observations.size(); ++known_) {
    const Points one = observations.points_.slice(known_, 1);
    const VectorXd v = observations.whitened_.col(known_);
    const Points earlier = observations.points_.slice(0, known_);
    const VectorXd residual =
        process.prior_covariance(earlier, one).col(0) - observations.whitened_.leftCols(known_).transpose() * v;
    const VectorXd cross = process.prior_covariance(points_, one).col(0) - whitened_.transpose() * v;
    const VectorXd covariance = process.kernel()->gram(points_, one, theta).col(0);
    const double variance = process.prior_variance(one)(0) - v.squaredNorm() + observations.noise_(known_);
    for (Index i = 0; i < points_.size(); ++i) {
      Kept& kept = kept_[static_cast<std::size_t>(i)];
      if (!(std::abs(covariance(i)) > kept.least)) continue;
      if (static_cast<Index>(kept.places.size()) < kMostNeighbourhoods * observations.neighbours_) {
        append_row(kept, known_, residual, cross(i), variance, observations.residuals_(known_));
      } else {
        const Points all = observations.points_.slice(0, known_ + 1);
        choose(process, observations, i, process.kernel()->gram(all, points_.slice(i, 1), theta).col(0));
      }
    }
  }
}

Prediction KeptPredictions::prediction() const {
  Prediction result = coarse_;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    double& mean = result.mean(static_cast<Index>(i));
    double& variance = result.variance(static_cast<Index>(i));
    for (std::size_t j = 0; j < kept_[i].cross.size(); ++j) {
      mean += kept_[i].cross[j] * kept_[i].residuals[j];
      variance -= kept_[i].cross[j] * kept_[i].cross[j];
    }
    variance = std::max(variance, 0.0);
  }
  return result;
}

}  // namespace krigtune::surrogate
