#include "space/configuration.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/json.h"
#include "user_error.h"

namespace krigtune::configuration_test {

TEST(Value, IsWrittenForPeopleAndTables) {
  EXPECT_EQ(to_string(Value(true)), "true");
  EXPECT_EQ(to_string(Value(false)), "false");
  EXPECT_EQ(to_string(Value(std::int64_t{500'000'000})), "500000000");
  EXPECT_EQ(to_string(Value(0.1)), "0.1");
  EXPECT_EQ(to_string(Value(4.0)), "4");
  EXPECT_EQ(to_string(Value(std::string("cpu"))), "cpu");
}

TEST(Value, IsTheSameAsAUserMeansIt) {
  EXPECT_TRUE(same_value(Value(std::int64_t{4}), Value(4.0)));
  EXPECT_FALSE(same_value(Value(std::int64_t{4}), Value(4.5)));
  EXPECT_FALSE(same_value(Value(std::int64_t{1}), Value(true)));
  EXPECT_FALSE(same_value(Value(std::string("4")), Value(std::int64_t{4})));
  // Two integers that are one double.
  EXPECT_FALSE(same_value(Value(std::int64_t{9007199254740993}), Value(std::int64_t{9007199254740992})));
}

TEST(Value, OfATextIsWhatTheTextMeans) {
  EXPECT_EQ(value_from_text("true"), Value(true));
  EXPECT_EQ(value_from_text("8"), Value(std::int64_t{8}));
  EXPECT_EQ(value_from_text("-3"), Value(std::int64_t{-3}));
  EXPECT_EQ(value_from_text("1e6"), Value(std::int64_t{1'000'000}));
  EXPECT_EQ(value_from_text("0.25"), Value(0.25));
  for (const char* text : {"", "cpu", "8b", "nan", "inf", "1.5.2", " 1"}) {
    EXPECT_EQ(value_from_text(text), Value(std::string(text))) << text;
  }
}

TEST(Value, SurvivesTextAndJson) {
  const Value values[] = {
      true, false, std::int64_t{0}, std::int64_t{-7},        std::numeric_limits<std::int64_t>::max(),
      0.1,  1e300, -2.5e-9,         std::string("selective")};
  for (const Value& value : values) {
    EXPECT_EQ(value_from_text(to_string(value)), value) << to_string(value);
    EXPECT_EQ(value_from_json(Json::parse(to_json(value).dump()), "test"), value) << to_string(value);
  }
}

TEST(Value, OfAWholeDoubleInJsonIsAnInteger) {
  EXPECT_EQ(value_from_json(Json::parse("5e8"), "test"), Value(std::int64_t{500'000'000}));
  EXPECT_EQ(value_from_json(Json::parse("5.0"), "test"), Value(std::int64_t{5}));
  EXPECT_EQ(value_from_json(Json::parse("18446744073709551615"), "test"), Value(18446744073709551615.0));
  EXPECT_EQ(user_error_of([] { value_from_json(Json::parse("[1]"), "s.json: /a"); }),
            "s.json: /a: a number, a string, true or false was expected, not [1]; write one value");
}

TEST(Configuration, KeepsTheOrderInWhichNamesWereSet) {
  Configuration configuration{{"zero_stage", std::int64_t{3}}, {"micro_batch", std::int64_t{4}}};
  configuration.set("overlap_comm", true);
  configuration.set("zero_stage", std::int64_t{1});
  EXPECT_EQ(configuration.text(), "zero_stage=1 micro_batch=4 overlap_comm=true");
  EXPECT_EQ(configuration.size(), 3U);
  EXPECT_EQ(configuration.find("lr"), nullptr);
}

TEST(Configuration, IsEqualWhateverTheOrderOfNames) {
  const Configuration a{{"x", std::int64_t{1}}, {"y", 2.0}};
  const Configuration b{{"y", std::int64_t{2}}, {"x", std::int64_t{1}}};
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a == (Configuration{{"x", std::int64_t{1}}}));
  EXPECT_FALSE(a == (Configuration{{"x", std::int64_t{1}}, {"z", 2.0}}));
  EXPECT_FALSE(a == (Configuration{{"x", std::int64_t{1}}, {"y", std::int64_t{3}}}));
}

TEST(Configuration, GivesIntegersAndBooleansOrSaysWhyNot) {
  const Configuration configuration{{"stage", 2.0}, {"lr", 0.5}, {"overlap", true}};
  EXPECT_EQ(configuration.integer("stage", 7), 2);
  EXPECT_EQ(configuration.integer("absent", 7), 7);
  EXPECT_TRUE(configuration.boolean("overlap", false));
  EXPECT_TRUE(configuration.boolean("absent", true));
  EXPECT_EQ(user_error_of([&] { configuration.integer("lr", 0); }),
            "'lr' is 0.5, where an integer was expected; mend its value");
  EXPECT_EQ(user_error_of([&] { configuration.boolean("stage", false); }),
            "'stage' is 2, where true or false was expected; mend its value");
}

TEST(Configuration, SurvivesJsonInItsOrder) {
  const Configuration configuration{{"b", std::int64_t{500'000'000}}, {"a", 0.5}, {"flag", false}, {"where", "cpu"}};
  EXPECT_EQ(to_json(configuration).dump(), R"({"b":500000000,"a":0.5,"flag":false,"where":"cpu"})");
  EXPECT_EQ(configuration_from_json(to_json(configuration), "s.json", "").text(), configuration.text());
  EXPECT_EQ(user_error_of([] { configuration_from_json(Json::parse(R"({"a": {}})"), "s.json", "/baseline"); }),
            "s.json: /baseline/a: a number, a string, true or false was expected, not {}; write one value");
}

}  // namespace krigtune::configuration_test
