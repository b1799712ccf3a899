#pragma once
#include <Eigen/Core>
#include <memory>
#include <vector>

#include "krigtune/surrogate/kernel.h"
#include "krigtune/surrogate/model.h"

namespace krigtune {

struct SuccessOptions {
  double signal_stddev = 2.0;
  double lengthscale = 0.5;
  double offset_stddev = 1.0;  ///< of a common offset on the mean
  double slope_stddev = 0.0;   ///< of a linear trend across each ordered column, from 0 to 1
};

/// Probability that a trial succeeds: Gaussian-process classification with logistic link and Laplace's approximation,
/// hyperparameters fixed (Rasmussen & Williams 2006, algorithms 3.1 and 3.2; probit-like averaging of MacKay 1992).
class SuccessModel {
 public:
  explicit SuccessModel(std::shared_ptr<const Kernel> kernel, SuccessOptions options = {});
  ~SuccessModel();

  /// `prior_logit`: mean of the latent at each point; `succeeded`: one outcome a point; n >= 0.
  void fit(const Points& points, const Eigen::VectorXd& prior_logit, const std::vector<bool>& succeeded);
  Eigen::VectorXd probability(const Points& points, const Eigen::VectorXd& prior_logit) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace krigtune
