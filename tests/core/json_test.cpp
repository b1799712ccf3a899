#include "core/json.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "user_error.h"

namespace krigtune::json_test {

TEST(ParseJson, AllowsCommentsAndTrailingCommas) {
  const Json json = parse_json(R"({
    // a comment, with "quotes" and , commas ]
    "url": "http://host//path", // after a value
    "text": "a \" // no comment, ]",
    "list": [1, 2, 3,], "nested": [[1, ], {"a": 1, }, ],
    "last": {"x": 1, // the comma before this is a trailing one
    },
  } // the end)",
                               "s.json");
  EXPECT_EQ(json.dump(), R"({"url":"http://host//path","text":"a \" // no comment, ]","list":[1,2,3],)"
                         R"("nested":[[1],{"a":1}],"last":{"x":1}})");
}

TEST(ParseJson, KeepsTheOrderOfKeys) {
  EXPECT_EQ(parse_json(R"({"z": 1, "a": 2, "m": 3})", "s").dump(), R"({"z":1,"a":2,"m":3})");
}

TEST(ParseJson, RefusesAKeyThatStandsTwiceInOneObject) {
  EXPECT_EQ(user_error_of([] { parse_json(R"({"a": {"b": 1}, "c": {"b": 1, "b": 2}})", "s.json"); }),
            "s.json: /c/b: duplicate key; keep one of them");
  EXPECT_EQ(user_error_of([] { parse_json(R"({"a": [0, [1], {"b": 1}, {"b": 1, "b": 2}]})", "s.json"); }),
            "s.json: /a/3/b: duplicate key; keep one of them");
  EXPECT_EQ(user_error_of([] { parse_json(R"({"a": 1, "b": 2, "a": 3})", "s.json"); }),
            "s.json: /a: duplicate key; keep one of them");
  EXPECT_EQ(user_error_of([] { parse_json(R"({"a": {"b": 1}, "b": [{"b": 1}, {"b": 2}]})", "s.json"); }), "no error");
}

TEST(ParseJson, RefusesWhatIsNestedTooDeepToWalk) {
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return std::string(n, '[') + std::string(n, ']');
  };
  EXPECT_EQ(user_error_of([&] { parse_json(nested(64), "s.json"); }), "no error");
  EXPECT_EQ(user_error_of([&] { parse_json(nested(65), "s.json"); }),
            "s.json: nested more than 64 deep; fix its brackets");
  EXPECT_EQ(user_error_of([&] { parse_json(nested(1'000'000), "s.json"); }),
            "s.json: nested more than 64 deep; fix its brackets");
}

TEST(ParseJson, SaysWhereTheSyntaxBreaks) {
  EXPECT_EQ(user_error_of([] {
              parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "s.json");
            }).rfind("s.json: not JSON at line 3, column 7: unexpected number literal", 0),
            0U);
  for (const char* text : {"", "{", "[1 2]", "[,]", "{,}", "[1,,]", "[1,,2]", "{\"a\": }", "{} x", "\"\\", "/"}) {
    EXPECT_NE(user_error_of([&] { parse_json(text, "s.json"); }), "no error") << text;
  }
}

TEST(ParseJson, SaysHowToMendWhatIsOftenWrong) {
  const auto line = [](const char* text) { return user_error_of([&] { parse_json(text, "s.json"); }); };
  EXPECT_EQ(line("{\"a\": 1\n\"b\": 2}"),
            "s.json: not JSON at line 2, column 3: unexpected string literal; expected '}'; put a comma before it");
  EXPECT_EQ(line("{a: 1}"),
            "s.json: not JSON at line 1, column 2: invalid literal; expected string literal; write names in double "
            "quotes, and values after a colon");
  EXPECT_EQ(line("/* no */ {}"), "s.json: not JSON at line 1, column 1: invalid literal; write comments with //");
  EXPECT_EQ(line("[1, 2"),
            "s.json: not JSON at line 1, column 6: unexpected end of input; expected ']'; close what is open");
  EXPECT_EQ(
      line("{} {}"),
      "s.json: not JSON at line 1, column 4: unexpected '{'; expected end of input; keep one { ... } in the file");
  EXPECT_NE(line("[\"\xff\"]").find("; save the file as UTF-8"), std::string::npos) << line("[\"\xff\"]");
  EXPECT_EQ(line("  // nothing\n"), "s.json: /: the file is empty; write { ... }");
}

TEST(ParseJson, RefusesANumberThatNoDoubleHolds) {
  EXPECT_EQ(user_error_of([] { parse_json(R"({"a": [0, {"b": 1e999}]})", "s.json"); }),
            "s.json: /a/1/b: the number is beyond all bounds; write a number below 1.8e308");
}

TEST(ProgramJson, SaysWhatIsWrongOrIsDiscarded) {
  EXPECT_EQ(parse_program_json(R"({"b": 1, "a": [2, "x"], "b": 3})").dump(), R"({"b":3,"a":[2,"x"]})");
  EXPECT_EQ(
      user_error_of([] { parse_program_json("{\"a\": }"); }).rfind("not JSON: parse error at line 1, column 7", 0), 0U);
  EXPECT_EQ(user_error_of([] { parse_program_json("1e999"); }), "not JSON: number overflow parsing '1e999'");
  for (const char* text : {"", "x", "{", "{} {}", "[1,]", "// 1\n1"}) {
    EXPECT_TRUE(json_or_discarded(text).is_discarded()) << text;
    EXPECT_FALSE(json_or_discarded(text).is_object()) << text;
  }
}

TEST(ProgramJson, OfAnyDepthCannotOverflowTheStack) {
  constexpr std::size_t kDeep = 400'000;
  const std::string deep = R"({"a": )" + std::string(kDeep, '[') + std::string(kDeep, ']') + "}";
  EXPECT_TRUE(json_or_discarded(deep).is_discarded());
  EXPECT_TRUE(python_json_or_discarded(deep, OddNumbers::kText).is_discarded());
  EXPECT_EQ(user_error_of([&] { parse_program_json(deep); }), "nested more than 64 deep; fix its brackets");
}

TEST(ProgramJson, OfManyKeysIsReadInNoTime) {
  constexpr int kMany = 500'000;  // a search for each key would take minutes
  std::string text = R"({"k": 0)";
  for (int i = 0; i < kMany; ++i) text += ",\"k" + std::to_string(i) + "\":" + std::to_string(i);
  const Json json = json_or_discarded(text + "}");
  ASSERT_EQ(json.size(), kMany + 1U);
  EXPECT_EQ(json.back(), Json(kMany - 1));
}

TEST(PythonJson, HasOddNumbersOutsideOfTexts) {
  const char* const text = R"({"a": NaN, "b": [-Infinity, Infinity, 1], "NaN": "x \"NaN\\"})";
  EXPECT_EQ(python_json_or_discarded(text, OddNumbers::kNull).dump(),
            R"({"a":null,"b":[null,null,1],"NaN":"x \"NaN\\"})");
  EXPECT_EQ(python_json_or_discarded(text, OddNumbers::kText).dump(),
            R"({"a":"NaN","b":["-Infinity","Infinity",1],"NaN":"x \"NaN\\"})");
  EXPECT_EQ(python_json_or_discarded(R"({"a": 1.5})", OddNumbers::kNull).dump(), R"({"a":1.5})");
  for (const char* broken : {"", "Nan", "{\"a\": NaN", "\"NaN", "\"\\"}) {
    EXPECT_TRUE(python_json_or_discarded(broken, OddNumbers::kNull).is_discarded()) << broken;
  }
}

TEST(JsonNumber, IsAnIntegerWhereItIsOne) {
  EXPECT_EQ(json_number(5e8).dump(), "500000000");
  EXPECT_EQ(json_number(-3.0).dump(), "-3");
  EXPECT_EQ(json_number(0.5).dump(), "0.5");
  EXPECT_TRUE(json_number(1e300).is_number_float());
}

class Object : public testing::Test {
 protected:
  Json json_ = parse_json(R"({"int": 3, "whole": 4.0, "real": 0.5, "flag": true, "text": "x", "none": null,
                              "texts": ["a", "b"], "inner": {"deep": 1}, "large": 9007199254740993})",
                          "s.json");
  JsonObject object_{json_, "s.json", "/top"};
};

TEST_F(Object, GivesValuesOrFallbacks) {
  EXPECT_EQ(object_.integer("int", 0), 3);
  EXPECT_EQ(object_.integer("whole", 0), 4);
  EXPECT_EQ(object_.integer("absent", 9), 9);
  EXPECT_EQ(object_.integer("large", 0), 9007199254740993) << "more digits than a double has";
  EXPECT_DOUBLE_EQ(object_.number("real", 0.0), 0.5);
  EXPECT_TRUE(object_.boolean("flag", false));
  EXPECT_EQ(object_.text("text", ""), "x");
  EXPECT_EQ(object_.texts("texts"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(object_.texts("absent").empty());
  EXPECT_EQ(object_.optional_number("none"), std::nullopt) << "null is absent";
  EXPECT_FALSE(object_.has("none"));
}

TEST_F(Object, NamesSourcePointerAndMendInItsErrors) {
  EXPECT_EQ(user_error_of([&] { object_.integer("real", 0); }),
            "s.json: /top/real: a whole number was expected, not 0.5; write one without a fraction");
  EXPECT_EQ(user_error_of([&] { object_.number("text", 0); }),
            "s.json: /top/text: a number was expected, not \"x\"; write a number");
  EXPECT_EQ(user_error_of([&] { object_.boolean("int", false); }),
            "s.json: /top/int: true or false was expected, not 3; write true or false");
  EXPECT_EQ(user_error_of([&] { object_.text("int", ""); }),
            "s.json: /top/int: a string was expected, not 3; write \"...\"");
  EXPECT_EQ(user_error_of([&] { object_.texts("inner"); }),
            "s.json: /top/inner: a list of strings was expected; write [\"...\", ...]");
  EXPECT_EQ(user_error_of([&] { object_.require("absent"); }), "s.json: /top/absent: is missing; add it");
  EXPECT_EQ(user_error_of([&] { object_.require("hole"); }), "s.json: /top/whole: unknown key; did you mean 'hole'?");
  EXPECT_EQ(user_error_of([&] { object_.object("texts"); }),
            "s.json: /top/texts: an object was expected, not array; write { ... }");
  EXPECT_EQ(user_error_of([&] {
              JsonObject inner = object_.object("inner");
              inner.text("deep", "");
            }),
            "s.json: /top/inner/deep: a string was expected, not 1; write \"...\"");
  const Json number = 3;
  EXPECT_EQ(user_error_of([&] { JsonObject(number, "s.json", ""); }),
            "s.json: /: an object was expected, not number; write { ... }");
}

TEST(JsonObject, RefusesKeysThatNobodyAskedForWithTheNearestName) {
  const Json json = parse_json(R"({"trials": 3, "huors": 2})", "s.json");
  JsonObject object(json, "s.json", "/budget");
  object.integer("trials", 0);
  object.number("hours", 0.0);
  EXPECT_EQ(user_error_of([&] { object.finish(); }), "s.json: /budget/huors: unknown key; did you mean 'hours'?");
  object.number("huors", 0.0);
  EXPECT_EQ(user_error_of([&] { object.finish(); }), "no error");
}

TEST(LoadJson, NamesTheFile) {
  EXPECT_EQ(user_error_of([] { load_json("/nowhere/s.json"); }),
            "cannot read '/nowhere/s.json': No such file or directory; check the path");
}

TEST_F(Object, QuotesLongValuesInPart) {
  const Json json = {{"key", Json::array()}};
  Json longer = json;
  for (int i = 0; i < 1000; ++i) longer["key"].push_back(i);
  const std::string line = user_error_of([&] { JsonObject(longer, "s.json", "").number("key", 0.0); });
  EXPECT_EQ(line,
            "s.json: /key: a number was expected, not [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,...; "
            "write a number");
}

}  // namespace krigtune::json_test
