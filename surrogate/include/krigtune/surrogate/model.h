#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// A Gaussian posterior of the noise-free function at each of m points.
struct Prediction {
  Eigen::VectorXd mean;
  Eigen::VectorXd variance;
};

/// The same at one point, with the derivatives by its ordered columns (d), features held fixed.
struct PredictionGradient {
  double mean = 0.0;
  double variance = 0.0;
  Eigen::VectorXd mean_gradient;
  Eigen::VectorXd variance_gradient;
};

/// What acquisition functions are made of: anything that says how an unknown function is distributed at a point.
class Model {
 public:
  virtual ~Model() = default;
  virtual Prediction predict(const Points& points) const = 0;
  virtual PredictionGradient predict_with_gradient(const Points& point) const = 0;
};

}  // namespace krigtune::surrogate
