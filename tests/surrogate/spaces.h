#pragma once
// Spaces and functions to maximise over them.
#include <functional>
#include <utility>
#include <vector>

#include "krigtune/surrogate/maximize.h"

namespace krigtune {

/// A function of one point as a score. Gradients are central differences, whose error of 1e-10 (step^2) is negligible
/// compared with the tolerance of the ascent.
class Function final : public surrogate::ScoreFunction {
 public:
  explicit Function(std::function<double(const surrogate::Points&, Eigen::Index)> f) : f_(std::move(f)) {}
  Eigen::VectorXd values(const surrogate::Points& points) const override {
    Eigen::VectorXd result(points.size());
    for (Eigen::Index i = 0; i < points.size(); ++i) result[i] = f_(points, i);
    return result;
  }
  double value_with_gradient(const surrogate::Points& point, Eigen::VectorXd& gradient) const override {
    constexpr double kStep = 1e-5;
    gradient.resize(point.ordered.cols());
    for (Eigen::Index j = 0; j < gradient.size(); ++j) {
      surrogate::Points moved = point;
      moved.ordered(0, j) = point.ordered(0, j) + kStep;
      const double above = f_(moved, 0);
      moved.ordered(0, j) = point.ordered(0, j) - kStep;
      gradient[j] = (above - f_(moved, 0)) / (2.0 * kStep);
    }
    return f_(point, 0);
  }

 private:
  std::function<double(const surrogate::Points&, Eigen::Index)> f_;
};

inline std::vector<double> grid(int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<double>(i) / (count - 1));
  return values;
}

inline surrogate::MixedSpace continuous(int dims) {
  surrogate::MixedSpace space;
  space.ordered.resize(static_cast<std::size_t>(dims));
  return space;
}

/// Three ordered columns, the second with 11 values, and four categories.
inline surrogate::MixedSpace mixed_space() {
  surrogate::MixedSpace space = continuous(3);
  space.ordered[1].values = grid(11);
  space.categories = {4};
  return space;
}

}  // namespace krigtune
