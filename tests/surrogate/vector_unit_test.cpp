#include "vector_unit/vector_unit.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <limits>

#include "core/processor.h"
#include "krigtune/rng.h"

namespace krigtune::vector_unit_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using MatrixXl = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

// Sizes around those of blocks (32), their halves and vector registers, and 1 and 0.
constexpr Index kSizes[] = {0, 1, 2, 7, 31, 32, 33, 64, 65, 97, 150};

MatrixXd random_matrix(Rng& rng, Index rows, Index cols) {
  return MatrixXd::NullaryExpr(rows, cols, [&rng] { return rng.normal(); });
}

/// The condition number is about 10, so the errors are those of the arithmetic.
MatrixXd random_covariance(Rng& rng, Index n) {
  const MatrixXd root = random_matrix(rng, n, n);
  const double scale = 1.0 / static_cast<double>(n);
  return scale * root * root.transpose() + 0.5 * MatrixXd::Identity(n, n);
}

MatrixXl lower_of(const MatrixXd& covariance) { return covariance.cast<long double>().llt().matrixL(); }

double largest(const MatrixXl& m) { return m.size() == 0 ? 0.0 : static_cast<double>(m.cwiseAbs().maxCoeff()); }

// Entries are of order 1, sums have up to 150 terms, condition numbers are about 10: at most a hundred roundings.
constexpr double kTolerance = 2e-14;

/// Puts `matrix` into a larger one whose other entries must not change.
struct Framed {
  static constexpr Index kMargin = 3;
  static constexpr double kOutside = 1e300;
  MatrixXd whole;
  Index rows;
  Index cols;
  explicit Framed(const MatrixXd& matrix)
      : whole(MatrixXd::Constant(matrix.rows() + 2 * kMargin, matrix.cols() + 2, kOutside)),
        rows(matrix.rows()),
        cols(matrix.cols()) {
    inner() = matrix;
  }
  Eigen::Block<MatrixXd> inner() { return whole.block(kMargin, 1, rows, cols); }
  double* data() { return whole.data() + whole.rows() + kMargin; }
  Index stride() const { return whole.rows(); }
  bool frame_is_whole() const { return (whole.array() == kOutside).count() == whole.size() - rows * cols; }
};

class EveryVectorUnit : public testing::TestWithParam<const surrogate::VectorUnit*> {
 protected:
  const surrogate::VectorUnit& unit() const { return *GetParam(); }
  Rng rng{51, 0};
};

std::string name_of(const testing::TestParamInfo<const surrogate::VectorUnit*>& info) { return info.param->name; }

INSTANTIATE_TEST_SUITE_P(Units, EveryVectorUnit, testing::ValuesIn(surrogate::available_vector_units()), name_of);

TEST(VectorUnit, IsTheOneThatTheProcessHasChosen) {
  EXPECT_STREQ(surrogate::vector_unit().name, to_string(chosen_vector_unit()));
  EXPECT_STREQ(surrogate::available_vector_units().front()->name, "plain");
  if (surrogate::available_vector_units().size() == 1)
    GTEST_SKIP() << "this machine has no vector unit beyond the plain one";
}

TEST_P(EveryVectorUnit, FactorisesACovariance) {
  for (const Index n : kSizes) {
    SCOPED_TRACE(n);
    const MatrixXd covariance = random_covariance(rng, n);
    Framed a(covariance);
    ASSERT_TRUE(unit().cholesky(n, a.data(), a.stride()));
    const MatrixXl lower = MatrixXd(a.inner().triangularView<Eigen::Lower>()).cast<long double>();
    EXPECT_LE(largest(lower - lower_of(covariance)), kTolerance);
    EXPECT_TRUE(a.frame_is_whole());
  }
}

TEST_P(EveryVectorUnit, LeavesTheUpperTriangleOfACovarianceAlone) {
  const MatrixXd covariance = random_covariance(rng, 150);
  MatrixXd half = covariance;
  half.triangularView<Eigen::StrictlyUpper>().setConstant(1e300);
  ASSERT_TRUE(unit().cholesky(150, half.data(), 150));
  const MatrixXl lower = MatrixXd(half.triangularView<Eigen::Lower>()).cast<long double>();
  EXPECT_LE(largest(lower - lower_of(covariance)), kTolerance);
  for (Index j = 0; j < 150; ++j) EXPECT_TRUE((half.col(j).head(j).array() == 1e300).all());
}

TEST_P(EveryVectorUnit, RefusesWhatIsNotPositiveDefinite) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Index place : {0, 5, 40, 69})
    for (const double pivot : {-1.0, 0.0, kNan, kInfinity}) {
      MatrixXd a = random_covariance(rng, 70);
      a(place, place) = pivot;
      EXPECT_FALSE(unit().cholesky(70, a.data(), 70)) << place << ' ' << pivot;
    }
  MatrixXd hidden = random_covariance(rng, 70);
  hidden(60, 3) = kNan;
  EXPECT_FALSE(unit().cholesky(70, hidden.data(), 70));
}

TEST_P(EveryVectorUnit, SolvesForRows) {
  for (const Index n : kSizes)
    for (const Index m : {Index{1}, Index{5}, Index{70}}) {
      SCOPED_TRACE(testing::Message() << m << " rows of " << n);
      const MatrixXd lower = random_covariance(rng, n).llt().matrixL();
      const MatrixXd solution = random_matrix(rng, m, n);
      Framed b((solution.cast<long double>() * lower.transpose().cast<long double>()).cast<double>());
      unit().solve_rows(m, n, lower.data(), n, b.data(), b.stride());
      EXPECT_LE(largest((b.inner() - solution).cast<long double>()), 10.0 * kTolerance);
      EXPECT_TRUE(b.frame_is_whole());
    }
}

TEST_P(EveryVectorUnit, SubtractsAProduct) {
  for (const Index n : {1, 2, 40})
    for (const Index k : {0, 1, 33}) {
      Framed a(random_matrix(rng, 50, k));
      Framed b(random_matrix(rng, n, k));
      const MatrixXd before = random_matrix(rng, 50, n);
      Framed c(before);
      unit().subtract_product(50, n, k, a.data(), a.stride(), b.data(), b.stride(), c.data(), c.stride());
      const MatrixXl want =
          before.cast<long double>() - a.inner().cast<long double>() * b.inner().transpose().cast<long double>();
      EXPECT_LE(largest(c.inner().cast<long double>() - want), kTolerance);
      EXPECT_TRUE(c.frame_is_whole());
    }
}

TEST_P(EveryVectorUnit, InvertsACovarianceFromItsFactor) {
  for (const Index n : kSizes) {
    SCOPED_TRACE(n);
    const MatrixXd covariance = random_covariance(rng, n);
    Framed l(covariance.llt().matrixL());
    unit().invert(n, l.data(), l.stride());
    const MatrixXl inverse = l.inner().cast<long double>();
    EXPECT_LE(largest(inverse * covariance.cast<long double>() - MatrixXl::Identity(n, n)), 10.0 * kTolerance);
    EXPECT_EQ(l.inner(), MatrixXd(l.inner().transpose()));
    EXPECT_TRUE(l.frame_is_whole());
  }
}

TEST_P(EveryVectorUnit, AddsMoments) {
  for (const Index m : {1, 9, 600}) {
    Framed v(random_matrix(rng, m, 21));
    const VectorXd weights = random_matrix(rng, 21, 1);
    VectorXd sums = VectorXd::Ones(m);
    VectorXd squares = VectorXd::Ones(m);
    unit().add_moments(m, 21, v.data(), v.stride(), weights.data(), sums.data(), squares.data());
    const MatrixXl rows = v.inner().cast<long double>();
    EXPECT_LE(largest(sums.cast<long double>() - rows * weights.cast<long double>() - MatrixXl::Ones(m, 1)),
              kTolerance);
    EXPECT_LE(largest(squares.cast<long double>() - rows.rowwise().squaredNorm() - MatrixXl::Ones(m, 1)),
              5.0 * kTolerance);
  }
}

struct Moments {
  VectorXd mean;
  VectorXd variance;
};

/// A Gaussian process with 120 observations in three dimensions, noise variance 1e-4 of the signal's, predicted at 50
/// points.
Moments posterior_by(const surrogate::VectorUnit& unit) {
  Rng rng(52, 0);
  const MatrixXd x = random_matrix(rng, 120, 3);
  const MatrixXd at = random_matrix(rng, 50, 3);
  const VectorXd whitened = random_matrix(rng, 120, 1);
  MatrixXd k = MatrixXd::Zero(120, 120);
  MatrixXd cross = MatrixXd::Zero(50, 120);
  for (Index j = 0; j < 120; ++j) {
    unit.add_squares(120, 3, x.data(), 120, x.data() + j, 120, k.col(j).data());
    unit.add_squares(50, 3, at.data(), 50, x.data() + j, 120, cross.col(j).data());
  }
  unit.matern52().correlation(k.size(), k.data());
  unit.matern52().correlation(cross.size(), cross.data());
  k.diagonal().array() += 1e-4;
  EXPECT_TRUE(unit.cholesky(120, k.data(), 120));
  unit.solve_rows(50, 120, k.data(), 120, cross.data(), 50);
  Moments moments{VectorXd::Zero(50), VectorXd::Zero(50)};
  unit.add_moments(50, 120, cross.data(), 50, whitened.data(), moments.mean.data(), moments.variance.data());
  return moments;
}

// The condition number is below 1e6: sixteen digits minus six, and one for margin.
TEST_P(EveryVectorUnit, HasThePosteriorOfThePlainOne) {
  const Moments plain = posterior_by(*surrogate::available_vector_units().front());
  const Moments here = posterior_by(unit());
  EXPECT_LE((here.mean - plain.mean).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LE((here.variance - plain.variance).cwiseAbs().maxCoeff(), 1e-9);
}

}  // namespace krigtune::vector_unit_test
