#include "space/encoder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

#include "core/error.h"
#include "space/spaces.h"

namespace krigtune::encoder_test {

void expect_law(const space::Space& space) {
  const space::Encoder encoder(space);
  std::int64_t count = 0;
  space.for_each([&](const space::Configuration& c) {
    ++count;
    const space::EncodedPoint point = encoder.encode(c);
    EXPECT_EQ(static_cast<int>(point.ordered.size()), encoder.ordered_dims());
    EXPECT_EQ(static_cast<int>(point.categories.size()), encoder.category_dims());
    for (const double at : point.ordered) EXPECT_TRUE(at >= 0.0 && at <= 1.0) << c.text();
    EXPECT_EQ(encoder.decode(point).text(), c.text());
    return !testing::Test::HasFailure();
  });
  EXPECT_GT(count, 0);
}

TEST(Encoder, DecodesWhatItEncodedOverTheWholeQuickstart) {
  for (const std::int64_t parameter_count : {5'000'000, 200'000, 5'000}) expect_law(quickstart_space(parameter_count));
}

TEST(Encoder, DecodesWhatItEncodedForEveryKindOfParameter) {
  expect_law(space_from(R"({
    "list": [8, 1, 4.5], "flag": [false, true], "where": ["none", "cpu", "nvme"], "one": [3],
    "log": {"min": 1, "max": 1e9, "scale": "log", "steps": 40}, "linear": {"min": -3, "max": 3}})"));
  expect_law(space_from(R"({"dense": {"min": 1, "max": 3000, "scale": "log", "steps": 5000}})"));
  expect_law(space_from(R"({"wide": {"min": 0, "max": 4000000000000000000, "steps": 1001}})"));
  expect_law(space_from(R"({"micro_batch": {"min": 1, "max": 16}, "tensor_parallel": [1, 2, 4],
                            "gradient_accumulation_steps": {"min": 1, "max": 16}})",
                        {.ranks = 4, .train_batch_size = 48}));
}

TEST(Encoder, DecodesWhatItEncodedForAnySpace) {
  const auto is_identity = [] {
    std::vector<space::Parameter> parameters;
    const auto dims = *rc::gen::inRange<std::size_t>(1, 4);
    while (parameters.size() < dims) {
      space::Parameter parameter{"p" + std::to_string(parameters.size()), {}};
      parameter.scale = *rc::gen::element(space::Scale::kRank, space::Scale::kLinear, space::Scale::kLog);
      auto numbers = *rc::gen::nonEmpty(
          rc::gen::unique<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 40)));
      if (numbers.size() > 8) numbers.resize(8);
      if (parameter.scale != space::Scale::kRank) std::sort(numbers.begin(), numbers.end());
      parameter.values.assign(numbers.begin(), numbers.end());
      parameters.push_back(parameter);
    }
    const space::Space space(parameters, {});
    const space::Encoder encoder(space);
    for (const space::Configuration& c : all_of(space)) RC_ASSERT(encoder.decode(encoder.encode(c)) == c);
  };
  EXPECT_TRUE(rc::check("decode(encode(c)) == c", is_identity));
}

std::vector<double> column(const std::string& json, const std::vector<space::Value>& values) {
  const space::Encoder encoder(space_from("{\"p\": " + json + "}"));
  std::vector<double> positions;
  for (const space::Value& value : values) positions.push_back(encoder.encode({{"p", value}}).ordered.at(0));
  return positions;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-12) << i;
}

constexpr std::int64_t operator""_i(unsigned long long value) { return static_cast<std::int64_t>(value); }

TEST(Encoder, FindsTheNumberAtEachPosition) {
  const space::Space space = space_from(R"({
    "list": [8, 1, 4.5], "flag": [false, true], "log": {"min": 1, "max": 1e9, "scale": "log", "steps": 40},
    "real": {"type": "real", "min": 2, "max": 6}})");
  const space::Encoder encoder(space);
  Rng rng(0, 0);
  for (int i = 0; i < 200; ++i) {
    const space::Configuration configuration = space.sample(rng);
    const space::EncodedPoint point = encoder.encode(configuration);
    for (int column = 0; column < encoder.ordered_dims(); ++column) {
      const std::string& name = encoder.ordered_parameter(column).name;
      const double number = space::as_number(*configuration.find(name));
      EXPECT_NEAR(encoder.number_on_axis(column, point.ordered[static_cast<std::size_t>(column)]), number,
                  1e-9 * number)
          << name;
    }
  }
  EXPECT_DOUBLE_EQ(encoder.number_on_axis(0, 0.75), 2.75);
}

TEST(Encoder, PlacesListsByRank) {
  expect_near(column("[1, 2, 4, 100]", {1_i, 2_i, 4_i, 100_i}), {0.0, 1.0 / 3, 2.0 / 3, 1.0});
  expect_near(column("[true, false]", {true, false}), {0.0, 1.0});
}

TEST(Encoder, PlacesRangesByValueAndByLogarithm) {
  expect_near(column(R"({"min": 10, "max": 20})", {10_i, 13_i, 20_i}), {0.0, 0.3, 1.0});
  expect_near(column(R"({"min": 1, "max": 64, "scale": "log2"})", {1_i, 2_i, 8_i, 64_i}), {0.0, 1.0 / 6, 0.5, 1.0});
  expect_near(column(R"({"min": 1e4, "max": 1e6, "scale": "log", "steps": 3})", {10'000_i, 100'000_i}), {0.0, 0.5});
}

TEST(Encoder, PlacesOutsideValuesBetweenTheirNeighboursOrBeyondTheEnds) {
  expect_near(column("[1, 2, 4]", {3_i, 1.25, 8_i, 0_i}), {0.75, 0.125, 2.0, -0.5});
  expect_near(column("[4, 2, 1]", {3_i, 8_i, 0_i}), {0.25, -1.0, 1.5});
  expect_near(column(R"({"min": 10, "max": 20})", {5_i, 12.5, 30_i}), {-0.5, 0.25, 2.0});
  expect_near(column(R"({"min": 2, "max": 8, "scale": "log2"})", {1_i, 16_i, 0_i}), {-0.5, 1.5, -0.5});
}

TEST(Encoder, PlacesFarValuesNoFartherThanOneAxisBeyondTheEnd) {
  expect_near(column("[2000, 8000]", {500'000'000_i, -500'000'000_i}), {2.0, -1.0});
  expect_near(column(R"({"min": 10, "max": 20})", {1000_i}), {2.0});
}

TEST(Encoder, GivesSingleValuesAndDerivedAccumulationNoColumn) {
  const space::Space space =
      space_from(R"({"zero_stage": [3], "micro_batch": [1, 2], "offload_param": ["none", "cpu"]})",
                 {.ranks = 2, .train_batch_size = 16});
  const space::Encoder encoder(space);
  EXPECT_EQ(encoder.ordered_names(), (std::vector<std::string>{"micro_batch"}));
  EXPECT_EQ(encoder.category_dims(), 1);
  EXPECT_EQ(encoder.decode({{1.0}, {1}}).text(),
            "zero_stage=3 micro_batch=2 offload_param=cpu gradient_accumulation_steps=4");
}

TEST(Encoder, GivesAnUnknownCategoryAnIndexOfItsOwn) {
  const space::Encoder encoder(space_from(R"({"where": ["none", "cpu"]})"));
  EXPECT_EQ(encoder.encode({{"where", "nvme"}}).categories, (std::vector<int>{2}));
  EXPECT_EQ(encoder.decode({{}, {2}}).text(), "where=none");
}

TEST(Encoder, DecodesToTheNearestConfigurationOfTheSpace) {
  const space::Space space =
      space_from(R"({"micro_batch": {"min": 1, "max": 8}})", {.ranks = 2, .train_batch_size = 16});
  const space::Encoder encoder(space);
  // 1 to 8 are at 0, 1/7, ..., 1. Of these, 1, 2, 4 and 8 divide the batch, so 3 (slightly above) becomes 4, and 7
  // becomes 8.
  EXPECT_EQ(encoder.decode({{2.1 / 7}, {}}).integer("micro_batch", 0), 4);
  EXPECT_EQ(encoder.decode({{1.9 / 7}, {}}).integer("micro_batch", 0), 2);
  EXPECT_EQ(encoder.decode({{6.0 / 7}, {}}).integer("micro_batch", 0), 8);
  EXPECT_EQ(encoder.decode({{-3.0}, {}}).integer("micro_batch", 0), 1);
  EXPECT_EQ(encoder.decode({{9.0}, {}}).integer("micro_batch", 0), 8);
}

TEST(Encoder, HonoursRestrictions) {
  space::Space space = space_from(R"({"a": [1, 2, 3], "b": [1, 2, 3]})");
  space.restrict_to([](const space::Configuration& c) { return c.integer("a", 0) + c.integer("b", 0) <= 4; });
  const space::Encoder encoder(space);
  EXPECT_TRUE(space.contains(encoder.decode({{1.0, 1.0}, {}})));
}

TEST(Encoder, SaysWhatAConfigurationLacks) {
  const space::Encoder encoder(space_from(R"({"a": [1, 2], "b": [1, 2]})"));
  EXPECT_THROW(encoder.encode({{"a", 1_i}}), UserError);
  EXPECT_THROW(encoder.encode({{"a", 1_i}, {"b", "auto"}}), UserError);
}

}  // namespace krigtune::encoder_test
