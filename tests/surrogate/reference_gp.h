#pragma once
// Gaussian-process formulas in their direct form, in long double with explicit inverses: slow, and independent of the
// library (no Cholesky, no standardisation, no Eigen arithmetic).
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "krigtune/rng.h"
#include "krigtune/surrogate/points.h"

namespace krigtune::reference {

using Real = long double;
using Vector = std::vector<Real>;
using Matrix = std::vector<Vector>;

inline surrogate::Points random_points(Rng& rng, int count, int ordered, int categories) {
  surrogate::Points points = surrogate::Points::zero(count, ordered, categories);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < ordered; ++j) points.ordered(i, j) = rng.uniform();
    for (int j = 0; j < categories; ++j) points.categories(i, j) = static_cast<int>(rng.below(3));
  }
  return points;
}

/// theta: [log lengthscales of ordered columns and categories, ...].
inline Real squared_distance(const surrogate::Points& x, Eigen::Index i, const surrogate::Points& y, Eigen::Index j,
                             const Eigen::VectorXd& theta) {
  Real r2 = 0;
  Eigen::Index p = 0;
  for (Eigen::Index k = 0; k < x.ordered.cols(); ++k, ++p)
    r2 += std::pow((static_cast<Real>(x.ordered(i, k)) - y.ordered(j, k)) / std::exp(static_cast<Real>(theta[p])), 2);
  for (Eigen::Index k = 0; k < x.categories.cols(); ++k, ++p)
    if (x.categories(i, k) != y.categories(j, k)) r2 += std::exp(-2 * static_cast<Real>(theta[p]));
  return r2;
}

inline Real matern52(const surrogate::Points& x, Eigen::Index i, const surrogate::Points& y, Eigen::Index j,
                     const Eigen::VectorXd& theta) {
  const Real r2 = squared_distance(x, i, y, j, theta);
  const Real r = std::sqrt(r2);
  const Real root5 = std::sqrt(static_cast<Real>(5));
  const Eigen::Index signal = x.ordered.cols() + x.categories.cols();
  return std::exp(static_cast<Real>(theta[signal])) * (1 + root5 * r + 5 * r2 / 3) * std::exp(-root5 * r);
}

inline Matrix gram(const surrogate::Points& x, const surrogate::Points& y, const Eigen::VectorXd& theta) {
  Matrix k(static_cast<std::size_t>(x.size()), Vector(static_cast<std::size_t>(y.size())));
  for (Eigen::Index i = 0; i < x.size(); ++i)
    for (Eigen::Index j = 0; j < y.size(); ++j)
      k[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = matern52(x, i, y, j, theta);
  return k;
}

struct Inverse {
  Matrix inverse;
  Real log_determinant = 0;  ///< of a positive determinant
};

/// Gauss-Jordan with row pivoting.
inline Inverse invert(Matrix a) {
  const std::size_t n = a.size();
  Inverse result{Matrix(n, Vector(n, 0)), 0};
  for (std::size_t i = 0; i < n; ++i) result.inverse[i][i] = 1;
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; ++row)
      if (std::abs(a[row][column]) > std::abs(a[pivot][column])) pivot = row;
    std::swap(a[pivot], a[column]);
    std::swap(result.inverse[pivot], result.inverse[column]);
    const Real lead = a[column][column];
    result.log_determinant += std::log(std::abs(lead));
    for (std::size_t j = 0; j < n; ++j) {
      a[column][j] /= lead;
      result.inverse[column][j] /= lead;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const Real factor = a[row][column];
      if (row == column || factor == 0) continue;
      for (std::size_t j = 0; j < n; ++j) {
        a[row][j] -= factor * a[column][j];
        result.inverse[row][j] -= factor * result.inverse[column][j];
      }
    }
  }
  return result;
}

inline Real quadratic(const Vector& a, const Matrix& m, const Vector& b) {
  Real sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) sum += a[i] * m[i][j] * b[j];
  return sum;
}

inline Matrix with_diagonal(Matrix k, const Vector& added) {
  for (std::size_t i = 0; i < k.size(); ++i) k[i][i] += added[i];
  return k;
}

struct Moments {
  Vector mean;
  Vector variance;
};

/// Zero-mean GP; `noise_variance` one per observation.
inline Moments predict(const surrogate::Points& x, const Vector& y, const Vector& noise_variance,
                       const Eigen::VectorXd& theta, const surrogate::Points& at) {
  const Matrix inverse = invert(with_diagonal(gram(x, x, theta), noise_variance)).inverse;
  const Matrix cross = gram(at, x, theta);
  Moments moments;
  for (std::size_t i = 0; i < cross.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    moments.mean.push_back(quadratic(cross[i], inverse, y));
    moments.variance.push_back(matern52(at, row, at, row, theta) - quadratic(cross[i], inverse, cross[i]));
  }
  return moments;
}

inline Real log_marginal_likelihood(const surrogate::Points& x, const Vector& y, const Vector& noise_variance,
                                    const Eigen::VectorXd& theta) {
  const Inverse k = invert(with_diagonal(gram(x, x, theta), noise_variance));
  const Real log_two_pi = std::log(2 * std::acos(static_cast<Real>(-1)));
  return -quadratic(y, k.inverse, y) / 2 - k.log_determinant / 2 - static_cast<Real>(y.size()) * log_two_pi / 2;
}

inline Vector to_reference(const Eigen::VectorXd& v) { return {v.begin(), v.end()}; }

}  // namespace krigtune::reference
