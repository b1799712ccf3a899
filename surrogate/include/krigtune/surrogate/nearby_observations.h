#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::surrogate {

/// More observations than a Cholesky factor can hold, beside a process that has observed some of the data. A point is
/// predicted from all that the process has observed and from the few others whose covariance with it is the largest:
///
///   process.condition(backbone, theta);                      // a few hundred
///   const NearbyObservations rest(process, others, 16);      // any number
///   const Prediction prediction = rest.predict(process, points);
///
/// Each prediction is an exact posterior given a part of the data. So its variance is never below the posterior's given
/// all data, and by the law of total variance the expected square of what its mean lacks is the difference of the two
/// variances. Where the neighbours and the backbone are all there is, it is the exact posterior.
class NearbyObservations {
 public:
  /// O(n M^2) for n observations beside M of the process, 8 n M bytes. The process has common noise; theirs is added.
  NearbyObservations(const GaussianProcess& process, const Observations& observations, Eigen::Index neighbours);

  /// More of them. `process`: as it was when this was made; so for predict.
  void append(const GaussianProcess& process, const Observations& more);
  /// O(M^2 + n d + k^2 M + k^3) a point with k neighbours.
  Prediction predict(const GaussianProcess& process, const Points& points) const;
  Eigen::Index size() const { return points_.size(); }
  const Points& points() const { return points_; }

 private:
  friend class KeptPredictions;

  /// What one point learns from its neighbours.
  struct Neighbourhood {
    std::vector<Eigen::Index> places;  ///< of the neighbours, ascending
    Eigen::MatrixXd lower;             ///< k x k: Cholesky factor of their residual covariance with noise
    Eigen::VectorXd cross;             ///< lower^-1 times the residual covariance with the point
    Eigen::VectorXd residuals;         ///< lower^-1 times theirs
  };
  /// Empty where they have no factor: what the process alone says is an exact posterior too.
  Neighbourhood neighbourhood(const GaussianProcess& process, const Points& point, const Eigen::VectorXd& covariances,
                              const Eigen::VectorXd& whitened) const;

  Eigen::Index neighbours_;
  Points points_;
  Eigen::VectorXd noise_;      ///< n, with the process's own
  Eigen::MatrixXd whitened_;   ///< M x n: L^-1 C(X, .)
  Eigen::VectorXd residuals_;  ///< n: values less what the process predicts of them
};

/// Predictions of fixed points from a process and nearby observations, kept while more of these are appended: one costs
/// a point a row of its Cholesky factor instead of all of it.
///
///   KeptPredictions kept(process, rest, candidates);
///   rest.append(process, one_more);
///   kept.update(process, rest);
///   const Prediction prediction = kept.prediction();
///
/// A point learns from an observation that was appended if its covariance with it is larger than with one of its
/// neighbours, besides these; when it has three times as many, its neighbours are chosen anew. So each is still an
/// exact posterior given a part of the data, and the same however many are appended between two updates.
class KeptPredictions {
 public:
  /// As NearbyObservations::predict. Keeps 8 (M + k^2) bytes a point, at most nine times the latter.
  KeptPredictions(const GaussianProcess& process, const NearbyObservations& observations, const Points& points);

  /// Takes in what was appended since. `process`: as it was; `observations`: those that this was made with.
  void update(const GaussianProcess& process, const NearbyObservations& observations);
  Prediction prediction() const;

 private:
  struct Kept {
    std::vector<Eigen::Index> places;  ///< of the observations that it learned from
    std::vector<double> lower;         ///< rows of their Cholesky factor, one after the other: 1, 2, 3, ... numbers
    std::vector<double> cross;
    std::vector<double> residuals;
    double least = 0.0;  ///< the smallest absolute covariance with a neighbour
  };
  void choose(const GaussianProcess& process, const NearbyObservations& observations, Eigen::Index point,
              const Eigen::VectorXd& covariances);
  /// Row `place` of the observations becomes one more row of the factor. `residual`: its covariances with the
  /// observations before it; `cross`: with the point; `variance`: its own, with noise.
  static void append_row(Kept& kept, Eigen::Index place, const Eigen::VectorXd& residual, double cross, double variance,
                         double value);

  Eigen::Index known_ = 0;  ///< observations
  Points points_;
  Eigen::MatrixXd whitened_;  ///< M x points
  Prediction coarse_;         ///< what the process alone says
  std::vector<Kept> kept_;    ///< one a point
};

}  // namespace krigtune::surrogate
