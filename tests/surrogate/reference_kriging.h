#pragma once
// Universal kriging with a normal prior of the coefficients by the classical formulas (Rasmussen & Williams 2006, eq.
// 2.41 to 2.43), in long double with explicit inverses. K_y and the p x p matrix A are inverted separately, while the
// library adds H B H^T to the covariance.
#include <algorithm>
#include <vector>

#include "surrogate/reference_gp.h"

namespace krigtune::reference {

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix result(a.size(), Vector(b.empty() ? 0 : b[0].size(), 0));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < b.size(); ++k)
      for (std::size_t j = 0; j < b[k].size(); ++j) result[i][j] += a[i][k] * b[k][j];
  return result;
}

inline Matrix transpose(const Matrix& a, std::size_t columns) {
  Matrix result(columns, Vector(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < columns; ++j) result[j][i] = a[i][j];
  return result;
}

/// beta ~ Normal(centre, diag(variance)).
struct CoefficientPrior {
  Vector centre;
  Vector variance;
};

class Kriging {
 public:
  /// `basis`: h of the points, n x p; `noise_variance` one per observation; `theta` the kernel's.
  Kriging(surrogate::Points x, const Vector& y, const Vector& noise_variance, const Eigen::VectorXd& theta,
          const Matrix& basis, const CoefficientPrior& prior)
      : x_(std::move(x)),
        y_(y),
        theta_(theta),
        h_(basis),
        p_(prior.centre.size()),
        k_(invert(with_diagonal(gram(x_, x_, theta), noise_variance))),
        prior_(prior) {
    Matrix precision = product(transpose(h_, p_), product(k_.inverse, h_));  // H K_y^-1 H^T + B^-1, called A
    precision.resize(p_, Vector(p_, 0));
    for (std::size_t i = 0; i < p_; ++i) precision[i][i] += 1 / prior.variance[i];
    a_ = invert(precision);
    beta_.assign(p_, 0);
    for (std::size_t i = 0; i < p_; ++i)
      for (std::size_t j = 0; j < p_; ++j)
        beta_[i] += a_.inverse[i][j] * (quadratic(column(h_, j), k_.inverse, y_) + prior.centre[j] / prior.variance[j]);
  }

  const Vector& beta() const { return beta_; }
  const Matrix& beta_covariance() const { return a_.inverse; }

  Vector mean(const surrogate::Points& at, const Matrix& basis) const {
    const Matrix cross = gram(at, x_, theta_);
    Vector result;
    for (std::size_t i = 0; i < cross.size(); ++i) {
      Real sum = quadratic(cross[i], k_.inverse, y_);
      for (std::size_t j = 0; j < p_; ++j) sum += rest(basis, cross, i, j) * beta_[j];
      result.push_back(sum);
    }
    return result;
  }

  Matrix covariance(const surrogate::Points& at, const Matrix& basis) const {
    const Matrix cross = gram(at, x_, theta_);
    Matrix result = gram(at, at, theta_);
    Matrix r(cross.size(), Vector(p_));
    for (std::size_t i = 0; i < cross.size(); ++i)
      for (std::size_t j = 0; j < p_; ++j) r[i][j] = rest(basis, cross, i, j);
    for (std::size_t i = 0; i < cross.size(); ++i)
      for (std::size_t j = 0; j < cross.size(); ++j)
        result[i][j] += quadratic(r[i], a_.inverse, r[j]) - quadratic(cross[i], k_.inverse, cross[j]);
    return result;
  }

  /// Eq. 2.43, with its determinant and its inverse split by the matrix inversion lemma.
  Real log_marginal_likelihood() const {
    Vector residual = y_;
    for (std::size_t i = 0; i < y_.size(); ++i)
      for (std::size_t j = 0; j < p_; ++j) residual[i] -= h_[i][j] * prior_.centre[j];
    Real square = quadratic(residual, k_.inverse, residual);
    Real determinant = k_.log_determinant + a_.log_determinant;
    Vector projected(p_);
    for (std::size_t j = 0; j < p_; ++j) {
      projected[j] = quadratic(column(h_, j), k_.inverse, residual);
      determinant += std::log(prior_.variance[j]);
    }
    square -= quadratic(projected, a_.inverse, projected);
    const Real log_two_pi = std::log(2 * std::acos(static_cast<Real>(-1)));
    return -(square + determinant + static_cast<Real>(y_.size()) * log_two_pi) / 2;
  }

 private:
  static Vector column(const Matrix& m, std::size_t j) {
    Vector result;
    for (const Vector& row : m) result.push_back(row[j]);
    return result;
  }
  /// R = h(x*) - H K_y^-1 k*.
  Real rest(const Matrix& basis, const Matrix& cross, std::size_t i, std::size_t j) const {
    return basis[i][j] - quadratic(cross[i], k_.inverse, column(h_, j));
  }

  surrogate::Points x_;
  Vector y_;
  Eigen::VectorXd theta_;
  Matrix h_;
  std::size_t p_;
  Inverse k_;
  Inverse a_;
  CoefficientPrior prior_;
  Vector beta_;
};

}  // namespace krigtune::reference
