#pragma once
#include <Eigen/Core>
#include <vector>

#include "krigtune/surrogate/gaussian_process.h"

namespace krigtune::surrogate {

/// More observations than a Cholesky factor can hold, in addition to a process that has observed some of the data. A
/// point is predicted from everything that the process has observed, and from the few other observations whose
/// covariance with it is the largest:
///
///   process.condition(backbone, theta);                      // a few hundred
///   const NearbyObservations rest(process, others, 16);      // any number
///   const Prediction prediction = rest.predict(process, points);
///
/// Each prediction is an exact posterior given a part of the data. So its variance is never below that of the posterior
/// given all data, and by the law of total variance the expected squared difference of the two means is the difference
/// of the two variances. If the backbone and the neighbours are all of the data, it is the exact posterior.
class NearbyObservations {
 public:
  /// Takes O(n M^2) time for n observations, if the process has M, and 8 n M bytes. The noise variance of each
  /// observation is the process's common one plus its own.
  NearbyObservations(const GaussianProcess& process, const Observations& observations, Eigen::Index neighbours);

  /// Adds observations. `process` must be in the state of the construction, for this and for predict.
  void append(const GaussianProcess& process, const Observations& more);
  /// Takes O(M^2 + n d + k^2 M + k^3) time for each point with k neighbours.
  Prediction predict(const GaussianProcess& process, const Points& points) const;
  Eigen::Index size() const { return points_.size(); }
  const Points& points() const { return points_; }

 private:
  friend class KeptPredictions;

  /// The information of a point's neighbours.
  struct Neighbourhood {
    std::vector<Eigen::Index> places;  ///< indices of the neighbours, ascending
    Eigen::MatrixXd lower;             ///< k x k: Cholesky factor of their residual covariance with noise
    Eigen::VectorXd cross;             ///< lower^-1 times the residual covariance with the point
    Eigen::VectorXd residuals;         ///< lower^-1 times theirs
  };
  /// Empty if the covariance of the neighbours has no factor: the process's own prediction is an exact posterior too.
  Neighbourhood neighbourhood(const GaussianProcess& process, const Points& point, const Eigen::VectorXd& covariances,
                              const Eigen::VectorXd& whitened) const;

  Eigen::Index neighbours_;
  Points points_;
  Eigen::VectorXd noise_;      ///< n, including the process's noise
  Eigen::MatrixXd whitened_;   ///< M x n: L^-1 C(X, .)
  Eigen::VectorXd residuals_;  ///< n: values minus the process's predictions of them
};

/// Keeps the predictions of fixed points up to date while nearby observations are appended. An appended observation
/// costs one row of a point's Cholesky factor instead of the whole factor.
///
///   KeptPredictions kept(process, rest, candidates);
///   rest.append(process, one_more);
///   kept.update(process, rest);
///   const Prediction prediction = kept.prediction();
///
/// A point uses an appended observation, in addition to its neighbours, if their covariance is larger than that with
/// one of its neighbours. When it has three times as many observations, its neighbours are chosen again. So each
/// prediction remains an exact posterior given a part of the data, and it does not depend on how many observations are
/// appended between two updates.
class KeptPredictions {
 public:
  /// Predicts as NearbyObservations::predict does. Stores 8 (M + k^2) bytes for each point, later at most 8 (M + 9
  /// k^2).
  KeptPredictions(const GaussianProcess& process, const NearbyObservations& observations, const Points& points);

  /// Uses what was appended since the last call. `process` must be in the same state, and `observations` the object
  /// with which this one was made.
  void update(const GaussianProcess& process, const NearbyObservations& observations);
  Prediction prediction() const;

 private:
  struct Kept {
    std::vector<Eigen::Index> places;  ///< of the observations that it uses
    std::vector<double> lower;         ///< rows of their Cholesky factor, concatenated: 1, 2, 3, ... numbers
    std::vector<double> cross;
    std::vector<double> residuals;
    double least = 0.0;  ///< the smallest absolute covariance with a neighbour
  };
  void choose(const GaussianProcess& process, const NearbyObservations& observations, Eigen::Index point,
              const Eigen::VectorXd& covariances);
  /// Adds observation `place` as a row of the factor. `residual` has its residual covariances with the observations,
  /// `cross` is that with the point, and `variance` is its own, including noise.
  static void append_row(Kept& kept, Eigen::Index place, const Eigen::VectorXd& residual, double cross, double variance,
                         double value);

  Eigen::Index known_ = 0;  ///< number of observations
  Points points_;
  Eigen::MatrixXd whitened_;  ///< M x points
  Prediction coarse_;         ///< predictions of the process alone
  std::vector<Kept> kept_;    ///< by point
};

}  // namespace krigtune::surrogate
