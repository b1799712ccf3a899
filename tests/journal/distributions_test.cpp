#include "journal/distributions.h"

#include <gtest/gtest.h>

#include <cmath>

namespace krigtune::distributions_test {

space::Parameter list(std::vector<space::Value> values) { return {"p", std::move(values), space::Scale::kRank, false}; }
space::Value n(std::int64_t value) { return value; }

void expect_json(const std::optional<Json>& distribution, const std::string& text) {
  ASSERT_TRUE(distribution.has_value());
  EXPECT_EQ(*distribution, Json::parse(text));
}

TEST(Distributions, ListsAreCategoricalInTheirOrder) {
  expect_json(journal::first_distribution(list({n(3), n(0), n(2)}), n(0)),
              R"({"name": "CategoricalDistribution", "attributes": {"choices": [3, 0, 2]}})");
  expect_json(journal::first_distribution(list({true, false}), true),
              R"({"name": "CategoricalDistribution", "attributes": {"choices": [true, false]}})");
  expect_json(journal::first_distribution({"p", {std::string("a"), std::string("b")}, space::Scale::kRank, true},
                                          std::string("b")),
              R"({"name": "CategoricalDistribution", "attributes": {"choices": ["a", "b"]}})");
}

TEST(Distributions, IntegerRangesKeepTheirStepAndLogarithm) {
  expect_json(journal::first_distribution({"p", {n(1), n(4), n(64)}, space::Scale::kLog, false}, n(4)),
              R"({"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 1, "high": 64}})");
  expect_json(journal::first_distribution({"p", {n(3), n(7), n(11)}, space::Scale::kLinear, false}, n(3)),
              R"({"name": "IntDistribution", "attributes": {"log": false, "step": 4, "low": 3, "high": 11}})");
}

TEST(Distributions, RealRangesAreFloat) {
  expect_json(
      journal::first_distribution({"p", {0.001, 0.01}, space::Scale::kLog, false}, 0.01),
      R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.001, "high": 0.01, "log": true}})");
}

TEST(Distributions, AFirstValueOutsideMakesANumericListARange) {
  expect_json(journal::first_distribution(list({n(2), n(4), n(8)}), n(6)),
              R"({"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 2, "high": 8}})");
  expect_json(journal::first_distribution(list({n(2), n(4)}), 0.5),
              R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 4.0, "log": false}})");
  expect_json(journal::first_distribution(list({std::string("a")}), std::string("z")),
              R"({"name": "CategoricalDistribution", "attributes": {"choices": ["a", "z"]}})");
}

TEST(Distributions, RangesWidenAndKeepTheirKind) {
  const Json log = *journal::first_distribution({"p", {n(2), n(8)}, space::Scale::kLog, false}, n(2));
  expect_json(journal::widened(log, n(4)), log.dump());
  expect_json(journal::widened(log, n(1)),
              R"({"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 1, "high": 8}})");
  expect_json(journal::widened(log, n(100)),
              R"({"name": "IntDistribution", "attributes": {"log": true, "step": 1, "low": 2, "high": 100}})");
  EXPECT_FALSE(journal::widened(log, n(0)).has_value());
  EXPECT_FALSE(journal::widened(log, 2.5).has_value());
  EXPECT_FALSE(journal::widened(log, std::string("x")).has_value());
  const Json steps = *journal::first_distribution({"p", {n(4), n(8), n(12)}, space::Scale::kLinear, false}, n(4));
  expect_json(journal::widened(steps, n(18)),
              R"({"name": "IntDistribution", "attributes": {"log": false, "step": 2, "low": 4, "high": 18}})");
  const Json real = *journal::first_distribution({"p", {0.5, 1.5}, space::Scale::kLog, false}, 0.5);
  expect_json(journal::widened(real, n(3)),
              R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.5, "high": 3.0, "log": true}})");
  EXPECT_FALSE(journal::widened(real, n(0)).has_value());
}

TEST(Distributions, ChoicesNeverChange) {
  const Json choices = *journal::first_distribution(list({n(1), n(2)}), n(1));
  expect_json(journal::widened(choices, n(2)), choices.dump());
  EXPECT_FALSE(journal::widened(choices, n(3)).has_value());
}

TEST(Distributions, ContinuousRangesAreFloatOnTheirScale) {
  space::Parameter parameter{"p", {}, space::Scale::kLog, false, space::RealRange{1e-5, 0.1}};
  expect_json(journal::first_distribution(parameter, 0.01),
              R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-5, "high": 0.1, "log": true}})");
  expect_json(journal::first_distribution(parameter, 0.5),
              R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-5, "high": 0.5, "log": true}})");
  expect_json(journal::first_distribution(parameter, n(0)),
              R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 0.1, "log": false}})");
  EXPECT_FALSE(journal::first_distribution(parameter, std::string("fast")).has_value());
  parameter.scale = space::Scale::kLinear;
  expect_json(journal::first_distribution(parameter, 0.01),
              R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-5, "high": 0.1, "log": false}})");
}

TEST(Distributions, WhatIsNoDistributionIsTold) {
  for (const std::string text :
       {"", "[]", "{", R"({"type": "int", "low": 1, "high": 4})", R"({"name": "CategoricalDistribution"})",
        R"({"name": "CategoricalDistribution", "attributes": {"choices": 3}})",
        R"({"name": "IntDistribution", "attributes": {"log": false, "step": null, "low": 1, "high": 4}})",
        R"({"name": "FloatDistribution", "attributes": {"log": false, "step": null, "low": 1}})",
        R"({"name": "UniformDistribution", "attributes": {"low": 1, "high": 4}})"}) {
    EXPECT_FALSE(journal::read_distribution(text).has_value()) << text;
  }
  const Json real =
      *journal::first_distribution({"p", {}, space::Scale::kLinear, false, space::RealRange{0.0, 1.0}}, 0.5);
  EXPECT_EQ(journal::read_distribution(real.dump()), real);
}

TEST(Distributions, CompatibleOnesDifferInBoundsOnly) {
  const Json a = *journal::first_distribution({"p", {n(1), n(4)}, space::Scale::kLog, false}, n(4));
  EXPECT_TRUE(journal::are_compatible(a, *journal::widened(a, n(100))));
  EXPECT_FALSE(journal::are_compatible(
      a, *journal::first_distribution({"p", {n(1), n(4)}, space::Scale::kLinear, false}, n(4))));
  EXPECT_FALSE(journal::are_compatible(
      a, *journal::first_distribution({"p", {}, space::Scale::kLog, false, space::RealRange{1, 4}}, n(4))));
  const Json choices = *journal::first_distribution(list({n(1), n(2)}), n(1));
  EXPECT_FALSE(journal::are_compatible(choices, *journal::first_distribution(list({n(2), n(1)}), n(1))));
}

TEST(Distributions, InternalNumbersThatMeanNothingGiveNoValue) {
  const Json choices =
      Json::parse(R"({"name": "CategoricalDistribution", "attributes": {"choices": ["a", null, [1, 2]]}})");
  EXPECT_EQ(journal::external_value(choices, 0), space::Value(std::string("a")));
  for (const double internal : {-1.0, 1.0, 2.0, 3.0, 1e300, std::nan("")}) {
    EXPECT_FALSE(journal::external_value(choices, internal).has_value()) << internal;
  }
  EXPECT_EQ(journal::internal_value(choices, std::string("a")), 0);
  EXPECT_FALSE(
      journal::external_value(*journal::first_distribution({"p", {n(1), n(4)}, space::Scale::kLog, false}, n(4)), 1e300)
          .has_value());
}

TEST(Distributions, InternalValuesLeadBack) {
  const std::vector<space::Parameter> parameters = {
      list({n(3), n(0), n(2)}),
      list({true, false}),
      list({0.25, n(7)}),
      {"p", {std::string("a"), std::string("b")}, space::Scale::kRank, true},
      {"p", {n(1), n(4), n(64)}, space::Scale::kLog, false},
      {"p", {0.1, 0.2}, space::Scale::kLinear, false}};
  for (const space::Parameter& parameter : parameters) {
    for (const space::Value& value : parameter.values) {
      const Json distribution = *journal::first_distribution(parameter, value);
      EXPECT_TRUE(space::same_value(
          *journal::external_value(distribution, journal::internal_value(distribution, value)), value));
    }
  }
}

}  // namespace krigtune::distributions_test
