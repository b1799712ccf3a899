// Spaces with continuous parameters cannot be listed; everything else works.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "space/encoder.h"
#include "space/spaces.h"
#include "user_error.h"

namespace krigtune::real_range_test {

double number(const space::Configuration& c, const char* name) { return space::as_number(*c.find(name)); }

// Returns the largest distance of the draws' distribution from the uniform one on [0, 1] (Kolmogorov, Smirnov).
double distance_from_uniform(std::vector<double> draws) {
  std::sort(draws.begin(), draws.end());
  double largest = 0.0;
  const auto count = static_cast<double>(draws.size());
  for (std::size_t i = 0; i < draws.size(); ++i) {
    largest = std::max({largest, std::abs(draws[i] - static_cast<double>(i) / count),
                        std::abs(draws[i] - static_cast<double>(i + 1) / count)});
  }
  return largest;
}

constexpr int kDraws = 4000;
const double kFarthest = 2.0 / std::sqrt(kDraws);  // exceeded once in 1500 (Kolmogorov's distribution)

constexpr const char* kMixed = R"({
  "lr": {"type": "real", "min": 1e-5, "max": 1e-1, "scale": "log"},
  "dropout": {"type": "real", "min": 0, "max": 0.5},
  "layers": [2, 4, 8]
})";

TEST(RealRange, CannotBeListedAndSaysSo) {
  const space::Space space = space_from(kMixed);
  EXPECT_FALSE(space.listable());
  EXPECT_FALSE(space.is_empty());
  EXPECT_EQ(space.lattice_count(), 3);
  EXPECT_EQ(user_error_of([&] { space.count(); }),
            "the space cannot be listed: 'lr' is any real number of its range; give it \"steps\"");
  EXPECT_THROW(space.for_each([](const space::Configuration&) { return true; }), UserError);
  EXPECT_TRUE(space_from(R"({"x": {"type": "real", "min": 0, "max": 1, "steps": 3}})").listable());
}

TEST(RealRange, IsSampledUniformlyOnItsScale) {
  const space::Space space = space_from(kMixed);
  Rng rng(41, 0);
  std::vector<double> lr;
  std::vector<double> dropout;
  int eights = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const space::Configuration c = space.sample(rng);
    ASSERT_TRUE(space.contains(c)) << c.text();
    lr.push_back((std::log10(number(c, "lr")) + 5.0) / 4.0);
    dropout.push_back(number(c, "dropout") / 0.5);
    eights += c.integer("layers", 0) == 8 ? 1 : 0;
  }
  EXPECT_LE(distance_from_uniform(lr), kFarthest);
  EXPECT_LE(distance_from_uniform(dropout), kFarthest);
  EXPECT_NEAR(eights, kDraws / 3.0, 5.0 * std::sqrt(kDraws * 2.0 / 9.0));
}

TEST(RealRange, UnderAConstraintIsUniformWhereItHolds) {
  // x < n / 4: the values 1, 2, 4 of the list have a share of n / 4 each, together 7 / 4.
  const space::Space space =
      constrained(R"({"x": {"type": "real", "min": 0, "max": 1}, "n": [1, 2, 4]})", {"4 * x < n"});
  Rng rng(43, 0);
  std::vector<double> x;
  double ones = 0.0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const space::Configuration c = space.sample(rng);
    ones += c.integer("n", 0) == 1 ? 1.0 : 0.0;
    x.push_back(number(c, "x") * 4.0 / static_cast<double>(c.integer("n", 0)));
  }
  EXPECT_LE(distance_from_uniform(x), kFarthest);
  EXPECT_NEAR(ones / kDraws, 1.0 / 7.0, 5.0 * std::sqrt(6.0 / 49.0 / kDraws));
}

TEST(RealRange, MayDecideWhatExists) {
  // Above 0.5 there are four methods, below it none, so four of five draws are above.
  const space::Space space = constrained(R"({"method": {"values": ["a", "b", "c", "d"], "when": "x > 0.5"},
                                      "x": {"type": "real", "min": 0, "max": 1},
                                      "depth": {"type": "real", "min": 1, "max": 2, "when": "method == 'a'"}})",
                                         {});
  Rng rng(47, 0);
  double with_method = 0.0;
  for (int draw = 0; draw < kDraws; ++draw) {
    const space::Configuration c = space.sample(rng);
    ASSERT_TRUE(space.contains(c)) << c.text();
    ASSERT_EQ(c.has("method"), number(c, "x") > 0.5);
    ASSERT_EQ(c.has("depth"), c.has("method") && std::get<std::string>(*c.find("method")) == "a");
    with_method += c.has("method") ? 1.0 : 0.0;
  }
  EXPECT_NEAR(with_method / kDraws, 0.8, 5.0 * std::sqrt(0.16 / kDraws));
}

TEST(RealRange, ThatNothingIsLeftOfIsAnError) {
  const char* json = R"({"x": {"type": "real", "min": 0, "max": 1}, "n": [1, 2]})";
  Rng rng(1, 0);
  const space::Space thin = constrained(json, {"x == 0.3 * n"});
  EXPECT_TRUE(thin.is_empty());
  EXPECT_THROW(thin.sample(rng), UserError);
  EXPECT_TRUE(constrained(json, {"x > n"}).is_empty()) << "seen without a draw: the bounds say so";
  EXPECT_FALSE(constrained(json, {"x + n > 2.99"}).is_empty());
}

TEST(RealRange, MovesByATenthOfItsAxis) {
  const space::Space space = space_from(kMixed);
  const space::Configuration c{{"lr", 1e-3}, {"dropout", 0.5}, {"layers", std::int64_t{2}}};
  ASSERT_TRUE(space.contains(c));
  const std::vector<space::Configuration> neighbours = space.neighbours(c);
  ASSERT_EQ(neighbours.size(), 4U);  // no step is possible from the end of dropout's axis
  EXPECT_NEAR(number(neighbours[0], "lr"), std::pow(10.0, -3.4), 1e-12);
  EXPECT_NEAR(number(neighbours[1], "lr"), std::pow(10.0, -2.6), 1e-12);
  EXPECT_NEAR(number(neighbours[2], "dropout"), 0.45, 1e-12);
  EXPECT_EQ(neighbours[3].integer("layers", 0), 4);
  for (const space::Configuration& neighbour : neighbours) EXPECT_TRUE(space.contains(neighbour)) << neighbour.text();
}

TEST(RealRange, IsEncodedOnItsAxisAndBack) {
  const space::Space space = space_from(kMixed);
  const space::Encoder encoder(space);
  EXPECT_EQ(encoder.ordered_names(), (std::vector<std::string>{"lr", "dropout", "layers"}));
  const space::EncodedPoint middle = encoder.encode({{"lr", 1e-3}, {"dropout", 0.125}, {"layers", std::int64_t{4}}});
  EXPECT_NEAR(middle.ordered.at(0), 0.5, 1e-12);
  EXPECT_NEAR(middle.ordered.at(1), 0.25, 1e-12);
  const space::EncodedPoint outside = encoder.encode({{"lr", 1.0}, {"dropout", -9.0}, {"layers", std::int64_t{4}}});
  EXPECT_NEAR(outside.ordered.at(0), 1.25, 1e-12);
  EXPECT_EQ(outside.ordered.at(1), -1.0);
  EXPECT_EQ(encoder.decode(outside).text(), "lr=0.1 dropout=0 layers=4");
  Rng rng(53, 0);
  for (int draw = 0; draw < 500; ++draw) {
    const space::Configuration c = space.sample(rng);
    const space::Configuration again = encoder.decode(encoder.encode(c));
    EXPECT_LE(std::abs(number(again, "lr") / number(c, "lr") - 1.0), 1e-12);
    EXPECT_LE(std::abs(number(again, "dropout") - number(c, "dropout")), 1e-12 * number(c, "dropout"));
    EXPECT_EQ(again.integer("layers", 0), c.integer("layers", 0));
  }
}

TEST(RealRange, DecodesIntoTheSpaceWhereAConstraintForbidsThePoint) {
  const space::Space space = constrained(kMixed, {"dropout * layers <= 1", "lr < 0.01 || layers == 2"});
  const space::Encoder encoder(space);
  const space::Configuration c = encoder.decode({{1.0, 1.0, 1.0}, {}});
  EXPECT_TRUE(space.contains(c)) << c.text();
  EXPECT_EQ(encoder.decode({{1.0, 1.0, 1.0}, {}}).text(), c.text()) << "the same each time";
}

TEST(RealRange, OfAWellKnownIntegerIsRefused) {
  EXPECT_EQ(user_error_of([] { space_from(R"({"micro_batch": {"type": "real", "min": 1, "max": 4}})"); }),
            "the parameter 'micro_batch' is a range of real numbers; its values are integers from 1 on");
}

TEST(RealRange, WithoutEffectHasItsLowerEnd) {
  const space::Space space =
      space_from(R"({"zero_stage": [2, 3], "stage3_fraction": {"type": "real", "min": 0.25, "max": 1}})", {.ranks = 2});
  Rng rng(59, 0);
  for (int draw = 0; draw < 100; ++draw) {
    const space::Configuration c = space.sample(rng);
    EXPECT_EQ(number(c, "stage3_fraction") == 0.25, c.integer("zero_stage", 0) == 2) << c.text();
    EXPECT_TRUE(space.contains(c)) << c.text();
  }
  EXPECT_FALSE(space.contains({{"zero_stage", std::int64_t{2}}, {"stage3_fraction", 0.5}}));
}

}  // namespace krigtune::real_range_test
