#include <gtest/gtest.h>

#include <cmath>

#include "krigtune/surrogate/maximize.h"
#include "spaces.h"
#include "user_error.h"

namespace krigtune::mixed_space_test {

using Eigen::Index;

TEST(MixedSpace, SamplesEvenlyWhatIsAllowed) {
  surrogate::MixedSpace space = mixed_space();
  space.allowed = [](const surrogate::Points& p, Index i) { return p.ordered(i, 0) < 0.1; };
  Rng rng(1, 0);
  const surrogate::Points points = space.sample(600, rng);
  ASSERT_EQ(points.size(), 600);
  EXPECT_LT(points.ordered.col(0).maxCoeff(), 0.1);
  EXPECT_LE(std::abs(points.ordered.col(2).mean() - 0.5), 0.02);
  for (int index = 0; index < 4; ++index)
    EXPECT_LE(std::abs(static_cast<double>((points.categories.col(0).array() == index).count()) - 150.0), 15.0);
  for (const double value : grid(11))
    EXPECT_LE(std::abs(static_cast<double>((points.ordered.col(1).array() == value).count()) - 600.0 / 11.0), 15.0);
}

TEST(MixedSpace, SamplesFewerWhereLittleIsAllowed) {
  surrogate::MixedSpace space = continuous(1);
  space.allowed = [](const surrogate::Points& p, Index i) { return p.ordered(i, 0) < 1e-3; };
  Rng rng(1, 0);
  const Index found = space.sample(100, rng).size();
  EXPECT_GE(found, 1);
  EXPECT_LT(found, 100);
}

TEST(MixedSpace, RefusesWhatMakesNoSense) {
  EXPECT_NE(user_error_of([] { surrogate::MixedSpace{}.validate(); }), "no error");
  EXPECT_NE(user_error_of([] { surrogate::MixedSpace{{{{0.0, 1.5}}}, {}, {}, {}}.validate(); }), "no error");
  EXPECT_NE(user_error_of([] { surrogate::MixedSpace{{{{0.5, 0.5}}}, {}, {}, {}}.validate(); }), "no error");
  EXPECT_NE(user_error_of([] { surrogate::MixedSpace{{{{std::nan("")}}}, {}, {}, {}}.validate(); }), "no error");
  EXPECT_NE(user_error_of([] { surrogate::MixedSpace{{}, {2, 0}, {}, {}}.validate(); }), "no error");
  EXPECT_EQ(user_error_of([] { mixed_space().validate(); }), "no error");
  surrogate::MaximizeOptions options;
  options.samples = 0;
  EXPECT_NE(user_error_of([&] { options.validate(); }), "no error");
}

}  // namespace krigtune::mixed_space_test
