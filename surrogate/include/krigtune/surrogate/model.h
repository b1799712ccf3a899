#pragma once
#include <Eigen/Core>

#include "krigtune/surrogate/points.h"

namespace krigtune::surrogate {

/// Gaussian posteriors of the noise-free function at m points.
struct Prediction {
  Eigen::VectorXd mean;
  Eigen::VectorXd variance;
};

/// The posterior at one point, with its derivatives with respect to the d ordered columns; features are held fixed.
struct PredictionGradient {
  double mean = 0.0;
  double variance = 0.0;
  Eigen::VectorXd mean_gradient;
  Eigen::VectorXd variance_gradient;
};

/// Anything that gives the distribution of an unknown function at a point. Acquisition functions need nothing else.
class Model {
 public:
  virtual ~Model() = default;
  virtual Prediction predict(const Points& points) const = 0;
  virtual PredictionGradient predict_with_gradient(const Points& point) const = 0;
};

}  // namespace krigtune::surrogate
