#include "krigtune/surrogate/output_transform.h"

#include "krigtune/core/error.h"

namespace krigtune {

using Eigen::VectorXd;

OutputTransform::OutputTransform(Kind kind, const VectorXd&) : kind_(kind) {
  if (kind != Kind::kIdentity) throw UserError("this transform is not there yet");
}

double OutputTransform::to_latent(double value) const { return value; }
double OutputTransform::from_latent(double latent) const { return latent; }
VectorXd OutputTransform::to_latent(const VectorXd& values) const {
  return values.unaryExpr([this](double value) { return to_latent(value); });
}
double OutputTransform::latent_variance(double, double variance) const { return variance; }
double OutputTransform::output_mean(double mean, double) const { return mean; }

}  // namespace krigtune
