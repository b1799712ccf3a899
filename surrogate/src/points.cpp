#include "krigtune/surrogate/points.h"

#include "core/error.h"

namespace krigtune::surrogate {
namespace {

/// `more` is a copy: an object may be appended to itself.
template <class Matrix>
void append_rows(Matrix& matrix, const Matrix more) {
  const Eigen::Index before = matrix.rows();
  matrix.conservativeResize(before + more.rows(), Eigen::NoChange);
  if (matrix.cols() > 0) matrix.bottomRows(more.rows()) = more;
}

}  // namespace

Points Points::zero(Eigen::Index count, Eigen::Index ordered_dims, Eigen::Index category_dims, Eigen::Index features) {
  return {Eigen::MatrixXd::Zero(count, ordered_dims), Eigen::MatrixXi::Zero(count, category_dims),
          Eigen::MatrixXd::Zero(count, features)};
}

void Points::append(const Points& more) {
  if (size() == 0) {
    *this = more;
    return;
  }
  append_rows(ordered, more.ordered);
  append_rows(categories, more.categories);
  append_rows(features, more.features);
}

Points Points::slice(Eigen::Index first, Eigen::Index count) const {
  Points part = zero(count, ordered.cols(), categories.cols(), features.cols());
  part.ordered = ordered.middleRows(first, count);
  if (categories.cols() > 0) part.categories = categories.middleRows(first, count);
  if (features.cols() > 0) part.features = features.middleRows(first, count);
  return part;
}

Points Points::rows(const std::vector<Eigen::Index>& indices) const {
  return {ordered(indices, Eigen::all), categories(indices, Eigen::all), features(indices, Eigen::all)};
}

void Observations::validate() const {
  if (size() < 1) throw UserError("no observations: there must be one at least");
  const auto fits = [this](const auto& columns) { return columns.cols() == 0 || columns.rows() == size(); };
  if (!fits(points.categories) || !fits(points.features))
    throw UserError("observations: every point needs its categories and features");
  if (values.size() != size() || (variance.size() != 0 && variance.size() != size()))
    throw UserError("observations: every point needs one value, and one variance or none at all");
  if (!values.allFinite() || !points.ordered.allFinite() || !points.features.allFinite())
    throw UserError("observations: points, features and values must be finite");
  if (variance.size() > 0 && !(variance.allFinite() && variance.minCoeff() >= 0.0))
    throw UserError("observations: variances must be finite and not negative");
}

void Observations::append(const Observations& more) {
  const Eigen::VectorXd zeros_here = Eigen::VectorXd::Zero(size());
  const Eigen::VectorXd zeros_there = Eigen::VectorXd::Zero(more.size());
  if (variance.size() > 0 || more.variance.size() > 0) {
    Eigen::VectorXd joined(size() + more.size());
    joined << (variance.size() > 0 ? variance : zeros_here), (more.variance.size() > 0 ? more.variance : zeros_there);
    variance = joined;
  }
  append_rows(values, more.values);
  points.append(more.points);
}

}  // namespace krigtune::surrogate
