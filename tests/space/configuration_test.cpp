#include "space/configuration.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/json.h"
#include "user_error.h"

namespace krigtune::configuration_test {

TEST(Value, IsWrittenForPeopleAndTables) {
  EXPECT_EQ(space::to_string(space::Value(true)), "true");
  EXPECT_EQ(space::to_string(space::Value(false)), "false");
  EXPECT_EQ(space::to_string(space::Value(std::int64_t{500'000'000})), "500000000");
  EXPECT_EQ(space::to_string(space::Value(0.1)), "0.1");
  EXPECT_EQ(space::to_string(space::Value(4.0)), "4");
  EXPECT_EQ(space::to_string(space::Value(std::string("cpu"))), "cpu");
}

TEST(Value, IsTheSameAsAUserMeansIt) {
  EXPECT_TRUE(space::same_value(space::Value(std::int64_t{4}), space::Value(4.0)));
  EXPECT_FALSE(space::same_value(space::Value(std::int64_t{4}), space::Value(4.5)));
  EXPECT_FALSE(space::same_value(space::Value(std::int64_t{1}), space::Value(true)));
  EXPECT_FALSE(space::same_value(space::Value(std::string("4")), space::Value(std::int64_t{4})));
  // Two integers that are the same double.
  EXPECT_FALSE(
      space::same_value(space::Value(std::int64_t{9007199254740993}), space::Value(std::int64_t{9007199254740992})));
}

TEST(Value, OfATextIsWhatTheTextMeans) {
  EXPECT_EQ(space::value_from_text("true"), space::Value(true));
  EXPECT_EQ(space::value_from_text("8"), space::Value(std::int64_t{8}));
  EXPECT_EQ(space::value_from_text("-3"), space::Value(std::int64_t{-3}));
  EXPECT_EQ(space::value_from_text("1e6"), space::Value(std::int64_t{1'000'000}));
  EXPECT_EQ(space::value_from_text("0.25"), space::Value(0.25));
  for (const char* text : {"", "cpu", "8b", "nan", "inf", "1.5.2", " 1"}) {
    EXPECT_EQ(space::value_from_text(text), space::Value(std::string(text))) << text;
  }
}

TEST(Value, SurvivesTextAndJson) {
  const space::Value values[] = {
      true, false, std::int64_t{0}, std::int64_t{-7},        std::numeric_limits<std::int64_t>::max(),
      0.1,  1e300, -2.5e-9,         std::string("selective")};
  for (const space::Value& value : values) {
    EXPECT_EQ(space::value_from_text(space::to_string(value)), value) << space::to_string(value);
    EXPECT_EQ(space::value_from_json(Json::parse(space::to_json(value).dump()), "test"), value)
        << space::to_string(value);
  }
}

TEST(Value, OfAWholeDoubleInJsonIsAnInteger) {
  EXPECT_EQ(space::value_from_json(Json::parse("5e8"), "test"), space::Value(std::int64_t{500'000'000}));
  EXPECT_EQ(space::value_from_json(Json::parse("5.0"), "test"), space::Value(std::int64_t{5}));
  EXPECT_EQ(space::value_from_json(Json::parse("18446744073709551615"), "test"), space::Value(18446744073709551615.0));
  EXPECT_EQ(user_error_of([] { space::value_from_json(Json::parse("[1]"), "s.json: /a"); }),
            "s.json: /a: a number, a string, true or false was expected, not [1]; write one value");
}

TEST(Configuration, KeepsTheOrderInWhichNamesWereSet) {
  space::Configuration configuration{{"zero_stage", std::int64_t{3}}, {"micro_batch", std::int64_t{4}}};
  configuration.set("overlap_comm", true);
  configuration.set("zero_stage", std::int64_t{1});
  EXPECT_EQ(configuration.text(), "zero_stage=1 micro_batch=4 overlap_comm=true");
  EXPECT_EQ(configuration.size(), 3U);
  EXPECT_EQ(configuration.find("lr"), nullptr);
}

TEST(Configuration, IsEqualWhateverTheOrderOfNames) {
  const space::Configuration a{{"x", std::int64_t{1}}, {"y", 2.0}};
  const space::Configuration b{{"y", std::int64_t{2}}, {"x", std::int64_t{1}}};
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == (space::Configuration{{"x", std::int64_t{1}}}));
  EXPECT_FALSE(a == (space::Configuration{{"x", std::int64_t{1}}, {"z", 2.0}}));
  EXPECT_FALSE(a == (space::Configuration{{"x", std::int64_t{1}}, {"y", std::int64_t{3}}}));
}

TEST(Configuration, GivesIntegersAndBooleansOrSaysWhyNot) {
  const space::Configuration configuration{{"stage", 2.0}, {"lr", 0.5}, {"overlap", true}};
  EXPECT_EQ(configuration.integer("stage", 7), 2);
  EXPECT_EQ(configuration.integer("absent", 7), 7);
  EXPECT_TRUE(configuration.boolean("overlap", false));
  EXPECT_TRUE(configuration.boolean("absent", true));
  EXPECT_EQ(user_error_of([&] { configuration.integer("lr", 0); }),
            "'lr' is 0.5, where an integer was expected; fix its value");
  EXPECT_EQ(user_error_of([&] { configuration.boolean("stage", false); }),
            "'stage' is 2, where true or false was expected; fix its value");
}

TEST(Configuration, SurvivesJsonInItsOrder) {
  const space::Configuration configuration{
      {"b", std::int64_t{500'000'000}}, {"a", 0.5}, {"flag", false}, {"where", "cpu"}};
  EXPECT_EQ(space::to_json(configuration).dump(), R"({"b":500000000,"a":0.5,"flag":false,"where":"cpu"})");
  EXPECT_EQ(space::configuration_from_json(space::to_json(configuration), "s.json", "").text(), configuration.text());
  EXPECT_EQ(user_error_of([] { space::configuration_from_json(Json::parse(R"({"a": {}})"), "s.json", "/baseline"); }),
            "s.json: /baseline/a: a number, a string, true or false was expected, not {}; write one value");
}

}  // namespace krigtune::configuration_test
