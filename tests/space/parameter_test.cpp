#include "space/parameter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/json.h"
#include "user_error.h"

namespace krigtune::parameter_test {

space::Parameter read(const std::string& json) {
  return space::read_parameters(parse_json("{\"p\": " + json + "}", "s.json"), "s.json", "/space").at(0);
}

std::vector<std::int64_t> integers(const space::Parameter& parameter) {
  std::vector<std::int64_t> values;
  for (const space::Value& value : parameter.values) values.push_back(std::get<std::int64_t>(value));
  return values;
}

using Integers = std::vector<std::int64_t>;

TEST(Parameters, KeepTheOrderOfTheFile) {
  const auto parameters = space::read_parameters(parse_json(R"({"z": [1], "a": [2], "m": [3]})", "s"), "s", "/space");
  ASSERT_EQ(parameters.size(), 3U);
  EXPECT_EQ(parameters[0].name + parameters[1].name + parameters[2].name, "zam");
}

TEST(List, OfNumbersIsOrderedByPosition) {
  const space::Parameter parameter = read("[4, 1, 0.5, 2e3]");
  EXPECT_EQ(parameter.scale, space::Scale::kRank);
  EXPECT_FALSE(parameter.categorical);
  EXPECT_EQ(parameter.values, (std::vector<space::Value>{std::int64_t{4}, std::int64_t{1}, 0.5, std::int64_t{2000}}));
  EXPECT_EQ(parameter.index_of(space::Value(0.5)), 2);
  EXPECT_EQ(parameter.index_of(space::Value(std::int64_t{3})), -1);
}

TEST(List, OfBooleansIsOrderedAndOfTextsIsNot) {
  EXPECT_FALSE(read("[true, false]").categorical);
  EXPECT_TRUE(read(R"(["none", "cpu"])").categorical);
}

TEST(Range, WithoutAScaleHoldsEveryInteger) {
  const space::Parameter parameter = read(R"({"min": -1, "max": 3})");
  EXPECT_EQ(integers(parameter), (Integers{-1, 0, 1, 2, 3}));
  EXPECT_EQ(parameter.scale, space::Scale::kLinear);
  EXPECT_EQ(integers(read(R"({"min": 5, "max": 5})")), (Integers{5}));
}

TEST(Range, WithStepsIsEvenlySpaced) {
  EXPECT_EQ(integers(read(R"({"min": 0, "max": 100, "steps": 5})")), (Integers{0, 25, 50, 75, 100}));
  EXPECT_EQ(integers(read(R"({"min": 1, "max": 3, "steps": 9})")), (Integers{1, 2, 3}));
}

TEST(Range, OnALogScaleIsSpacedGeometricallyWithBothEnds) {
  const space::Parameter parameter = read(R"({"min": 1e4, "max": 1e6, "scale": "log", "steps": 5})");
  EXPECT_EQ(integers(parameter), (Integers{10'000, 31'623, 100'000, 316'228, 1'000'000}));  // 10^4.5, 10^5.5
  EXPECT_EQ(parameter.scale, space::Scale::kLog);
}

TEST(Range, OnALogScaleDropsWhatRoundingMakesEqual) {
  const Integers values = integers(read(R"({"min": 1, "max": 10, "scale": "log", "steps": 50})"));
  EXPECT_EQ(values, (Integers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
}

TEST(Range, OnALogScaleHitsLargeEndsExactly) {
  const Integers values = integers(read(R"({"min": 3, "max": 4000000000000000001, "scale": "log", "steps": 7})"));
  EXPECT_EQ(values.front(), 3);
  EXPECT_EQ(values.back(), 4'000'000'000'000'000'001);
  EXPECT_EQ(values.size(), 7U);
}

TEST(Range, OnALog2ScaleHoldsThePowersOfTwoWithin) {
  EXPECT_EQ(integers(read(R"({"min": 1, "max": 64, "scale": "log2"})")), (Integers{1, 2, 4, 8, 16, 32, 64}));
  EXPECT_EQ(integers(read(R"({"min": 3, "max": 31, "scale": "log2"})")), (Integers{4, 8, 16}));
  EXPECT_EQ(integers(read(R"({"min": 4e18, "max": 9e18, "scale": "log2"})")), (Integers{4'611'686'018'427'387'904}));
}

TEST(RealRange, WithoutStepsHoldsEveryNumberBetween) {
  const space::Parameter parameter = read(R"({"type": "real", "min": 1e-5, "max": 0.1, "scale": "log"})");
  ASSERT_TRUE(parameter.continuous());
  EXPECT_TRUE(parameter.values.empty());
  EXPECT_EQ(parameter.range->min, 1e-5);
  EXPECT_EQ(parameter.range->max, 0.1);
  EXPECT_EQ(parameter.scale, space::Scale::kLog);
  EXPECT_EQ(read(R"({"type": "real", "min": -1, "max": 1})").scale, space::Scale::kLinear);
  EXPECT_EQ(read(R"({"type": "real", "min": 2, "max": 2})").values, (std::vector<space::Value>{std::int64_t{2}}));
}

TEST(RealRange, WithStepsIsAListWithExactEnds) {
  const space::Parameter even = read(R"({"type": "real", "min": 0, "max": 0.5, "steps": 6})");
  EXPECT_EQ(even.values, (std::vector<space::Value>{std::int64_t{0}, 0.1, 0.2, 0.3, 0.4, 0.5}));
  EXPECT_FALSE(even.continuous());
  const space::Parameter log = read(R"({"type": "real", "min": 1e-5, "max": 1e-1, "scale": "log", "steps": 5})");
  ASSERT_EQ(log.values.size(), 5U);
  EXPECT_EQ(log.values.front(), space::Value(1e-5));
  EXPECT_EQ(log.values.back(), space::Value(1e-1));
  for (int i = 1; i < 4; ++i) {
    EXPECT_NEAR(space::as_number(log.values[static_cast<std::size_t>(i)]) / std::pow(10.0, i - 5), 1.0, 1e-14);
  }
  const space::Parameter wide = read(R"({"type": "real", "min": -1e308, "max": 1e308, "steps": 3})");
  EXPECT_EQ(space::as_number(wide.values.at(1)), 0.0);
}

TEST(When, IsReadOnRangesAndOnLists) {
  const space::Parameter range = read(R"({"min": 1, "max": 3, "when": "zero_stage == 3"})");
  ASSERT_TRUE(range.when.has_value());
  EXPECT_EQ(range.when->text(), "zero_stage == 3");
  const space::Parameter texts = read(R"({"values": ["cpu", "nvme"], "when": "zero_stage >= 1"})");
  EXPECT_TRUE(texts.categorical && texts.when);
  const space::Parameter numbers = read(R"({"values": [4, 1, 2], "when": "zero_stage >= 1"})");
  EXPECT_EQ(numbers.scale, space::Scale::kRank);
  EXPECT_EQ(integers(numbers), (Integers{4, 1, 2}));
  EXPECT_EQ(read(R"({"values": [1, 2], "scale": "log", "when": "a"})").scale, space::Scale::kLog);
  EXPECT_FALSE(read("[1, 2]").when.has_value());
}

TEST(Parameter, SurvivesWritingAndReading) {
  for (const char* json :
       {"[4, 1, 0.5]", "[true, false]", R"(["none", "cpu"])", R"({"min": 1, "max": 10, "scale": "log", "steps": 50})",
        R"({"min": 1, "max": 64, "scale": "log2"})", R"({"min": 0, "max": 9})", "[7]",
        R"({"values": ["a", "b"], "when": "x > 1"})", R"({"values": [3, 1], "when": "x > 1"})",
        R"({"min": 1, "max": 64, "scale": "log2", "when": "x == 'y' || z"})",
        R"({"type": "real", "min": 1e-5, "max": 0.1, "scale": "log"})", R"({"type": "real", "min": -1, "max": 1})",
        R"({"type": "real", "min": 0.1, "max": 0.7, "steps": 7, "when": "z"})",
        R"({"type": "real", "min": 0.1, "max": 0.7, "scale": "log", "when": "!z"})"}) {
    const space::Parameter parameter = read(json);
    const space::Parameter again = read(space::to_json(parameter).dump());
    EXPECT_EQ(again.values, parameter.values) << json;
    EXPECT_EQ(again.scale, parameter.scale) << json;
    EXPECT_EQ(again.categorical, parameter.categorical) << json;
    ASSERT_EQ(again.continuous(), parameter.continuous()) << json;
    if (parameter.continuous()) {
      EXPECT_EQ(again.range->min, parameter.range->min) << json;
      EXPECT_EQ(again.range->max, parameter.range->max) << json;
    }
    ASSERT_EQ(again.when.has_value(), parameter.when.has_value()) << json;
    EXPECT_EQ(again.when ? again.when->text() : "", parameter.when ? parameter.when->text() : "") << json;
  }
}

struct Refusal {
  const char* json;
  const char* message;  ///< its beginning
};

class RefusedParameter : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedParameter, IsNamedWithItsPointer) {
  try {
    read(GetParam().json);
    FAIL() << "no error for " << GetParam().json;
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind(GetParam().message, 0), 0U) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedParameter,
    testing::Values(
        Refusal{R"({"min": 5, "max": 1})", "s.json: /space/p/min: min 5 is above max 1"},
        Refusal{R"({"min": 0, "max": 4, "scale": "log2"})", "s.json: /space/p/min: a log2 scale starts above 0"},
        Refusal{R"({"min": -1, "max": 4, "scale": "log", "steps": 3})", "s.json: /space/p/min: a log scale starts"},
        Refusal{R"({"min": 1, "max": 4, "scale": "log"})", "s.json: /space/p: a log scale needs \"steps\""},
        Refusal{R"({"min": 1, "max": 4, "scale": "log", "steps": 1})", "s.json: /space/p/steps: 1 steps cannot"},
        Refusal{R"({"min": 1, "max": 4, "scale": "log2", "steps": 3})", "s.json: /space/p/steps: a log2 scale"},
        Refusal{R"({"min": 3, "max": 3, "scale": "log2"})", "s.json: /space/p: no power of two"},
        Refusal{R"({"min": 1, "max": 4, "scale": "cubic"})", "s.json: /space/p/scale: unknown value 'cubic'"},
        Refusal{R"({"min": 1, "max": 1e9})", "s.json: /space/p: 1000000000 values are too many"},
        Refusal{R"({"min": 1, "max": 1e9, "scale": "log", "steps": 2e6})", "s.json: /space/p/steps: 2000000 values"},
        Refusal{R"({"min": -9e18, "max": 9e18})", "s.json: /space/p: 18000000000000000000 values are too many"},
        Refusal{R"({"min": 1.5, "max": 4})", "s.json: /space/p/min: a whole number was expected"},
        Refusal{R"({"max": 4})", "s.json: /space/p/min: is missing"},
        Refusal{R"({"min": 1, "mx": 4})", "s.json: /space/p/mx: unknown key; did you mean 'max'?"},
        Refusal{R"({"min": 1, "max": 4, "step": 2})", "s.json: /space/p/step: unknown key; did you mean 'steps'?"},
        Refusal{R"({"type": "real", "min": 2, "max": 1})", "s.json: /space/p/min: min 2 is above max 1; swap them"},
        Refusal{R"({"type": "real", "min": 0, "max": 1, "scale": "log"})", "s.json: /space/p/min: a log scale starts"},
        Refusal{R"({"type": "real", "min": 1, "max": 8, "scale": "log2"})", "s.json: /space/p/scale: a log2 scale"},
        Refusal{R"({"type": "real", "min": 0, "max": 1, "steps": 1})", "s.json: /space/p/steps: 1 steps cannot"},
        Refusal{R"({"type": "real", "min": 0, "max": 1, "steps": 2e6})", "s.json: /space/p/steps: 2000000 values"},
        Refusal{R"({"type": "real", "min": "nan", "max": 1})", "s.json: /space/p/min: a number was expected"},
        Refusal{R"({"type": "real", "min": 0})", "s.json: /space/p/max: is missing"},
        Refusal{R"({"type": "reel", "min": 0, "max": 1})",
                "s.json: /space/p/type: unknown value 'reel'; did you mean 'real'?"},
        Refusal{R"({"type": "categorical", "min": 0, "max": 1})", "s.json: /space/p/type: there is no type 'categ"},
        Refusal{R"({"min": 1, "max": 4, "when": "a = 3"})",
                "s.json: /space/p/when: at character 3: unknown operator '='; write =="},
        Refusal{R"({"min": 1, "max": 4, "when": 3})", "s.json: /space/p/when: "},
        Refusal{R"({"values": [1], "when": "a +"})", "s.json: /space/p/when: at character 4: a name, a number"},
        Refusal{R"({"values": [1], "wen": "a"})", "s.json: /space/p/wen: unknown key; did you mean 'when'?"},
        Refusal{"[]", "s.json: /space/p: the list is empty"},
        Refusal{"[1, 2, 1.0]", "s.json: /space/p/2: duplicate value 1"},
        Refusal{R"([1, "cpu"])", "s.json: /space/p/1: \"cpu\" is of another kind"},
        Refusal{"[true, 1]", "s.json: /space/p/1: 1 is of another kind"},
        Refusal{"[1, null]", "s.json: /space/p/1: a number, a string"},
        Refusal{"7", "s.json: /space/p: a list or a range was expected, not 7; write [7]"},
        Refusal{R"({"values": [2, 1], "scale": "log"})", "s.json: /space/p/values: a scale needs numbers in ascending"},
        Refusal{R"({"values": [0, 1], "scale": "log"})", "s.json: /space/p/values/0: a log scale starts above 0"},
        Refusal{R"({"values": ["a"], "scale": "log"})", "s.json: /space/p/values: a scale needs numbers"},
        Refusal{R"({"values": [], "scale": "log"})", "s.json: /space/p/values: the list is empty"}));

TEST(Space, OfMoreThanAnybodyCanLearnFromIsRefused) {
  Json space = Json::object();
  for (int i = 0; i < 300; ++i) space[std::to_string(i)] = {1, 2};
  EXPECT_EQ(space::read_parameters(space, "s.json", "/space").size(), 300U);
  space["another"] = {1, 2};
  EXPECT_EQ(user_error_of([&] { space::read_parameters(space, "s.json", "/space"); }),
            "s.json: /space: 301 parameters are too many; at most 300: leave out those that matter least");
}

TEST(Parameter, OfALongListIsReadAndRefusedInOneLook) {
  Json list = Json::array();
  for (int i = 0; i < 20'000; ++i) list.push_back(fmt::format("w{}", i));
  Json space = Json::object();
  space["p"] = list;
  EXPECT_EQ(space::read_parameters(space, "s.json", "/space").front().values.size(), 20'000U);
  space["p"].push_back("w7");
  EXPECT_EQ(user_error_of([&] { space::read_parameters(space, "s.json", "/space"); }).substr(0, 46),
            "s.json: /space/p: 20001 values are too many; a");
}

TEST(Parameter, FindsTheValuesOfLongListsAscendingOrNot) {
  Json list = Json::array();
  for (int i = 0; i < 500; ++i) list.push_back((i * 7) % 500);
  Json space = Json::object();
  space["mixed"] = list;
  space["range"] = {{"min", 0}, {"max", 499}};
  const std::vector<space::Parameter> parameters = space::read_parameters(space, "s.json", "/space");
  for (std::int64_t i = 0; i < 500; ++i) {
    EXPECT_EQ(parameters[0].index_of(space::Value((i * 7) % 500)), i);
    EXPECT_EQ(parameters[1].index_of(space::Value(static_cast<double>(i))), i);
  }
  EXPECT_EQ(parameters[1].index_of(space::Value(0.5)), -1);
  EXPECT_EQ(parameters[0].index_of(space::Value(std::string("7"))), -1);
}

TEST(Space, WithoutParametersIsRefused) {
  EXPECT_THROW(space::read_parameters(Json::object(), "s.json", "/space"), UserError);
  EXPECT_THROW(space::read_parameters(Json::array(), "s.json", "/space"), UserError);
}

}  // namespace krigtune::parameter_test
