#include <gtest/gtest.h>

#include "core/formats/toml.h"
#include "core/formats/yaml.h"
#include "user_error.h"

namespace krigtune::formats_test {

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::string yaml_error(const std::string& text) {
  return user_error_of([&] { parse_yaml(text, "a.yaml"); });
}

std::string toml_error(const std::string& text) {
  return user_error_of([&] { parse_toml(text, "a.toml"); });
}

TEST(Yaml, OfAllDocumentsIsParsed) {
  const std::vector<YAML::Node> documents = parse_yaml("a: {b: [1, 2]}\n---\nc\n", "a.yaml");
  ASSERT_EQ(documents.size(), 2U);
  EXPECT_EQ(documents[0]["a"]["b"][1].as<int>(), 2);
  EXPECT_EQ(documents[1].as<std::string>(), "c");
  EXPECT_TRUE(parse_yaml("", "a.yaml").empty());
}

TEST(Yaml, ErrorsNameTheLine) {
  EXPECT_EQ(yaml_error("a: 1\nb: [\n").rfind("a.yaml: invalid YAML at line 3: ", 0), 0U) << yaml_error("a: 1\nb: [\n");
  EXPECT_EQ(user_error_of([] { parse_yaml("a: b: c", ""); }),
            "invalid YAML at line 1: illegal map value; fix that line");
}

TEST(Yaml, ThatIsTooDeepOrTooLargeToWalkIsRefused) {
  EXPECT_EQ(yaml_error(repeated("[", 64) + repeated("]", 64)), "no error");
  EXPECT_EQ(yaml_error(repeated("[", 66) + repeated("]", 66)), "a.yaml: nested more than 64 deep; name a flatter file");
  EXPECT_EQ(yaml_error("a: &a [1, *a]"), "a.yaml: nested more than 64 deep; name a flatter file");
  for (const char* open : {"[", "{", "- ", "? ", "{a: ", "!", "&a "}) {
    EXPECT_NE(yaml_error(repeated(open, 400'000)), "") << open;
  }
  std::string bomb = "l0: &l0 [1,2,3,4,5,6,7,8,9]\n";
  for (int i = 1; i < 20; ++i) {
    const std::string below = std::to_string(i - 1);
    bomb += "l" + std::to_string(i) + ": &l" + std::to_string(i) + " [" + repeated("*l" + below + ",", 8) + "]\n";
  }
  EXPECT_EQ(yaml_error(bomb), "a.yaml: more than 100000 values, with its aliases written out; name a smaller file");
}

TEST(Toml, ErrorsNameTheLine) {
  EXPECT_EQ(parse_toml("a.b = 1", "a.toml")["a"]["b"].value<int>(), 1);
  EXPECT_EQ(toml_error("a = 1\nb = \n").rfind("a.toml: invalid TOML at line 2: ", 0), 0U)
      << toml_error("a = 1\nb = \n");
}

TEST(Toml, HasCharactersBeyondAsciiInStringsAndCommentsOnly) {
  EXPECT_EQ(toml_error("\xEF\xBB\xBF[a] # \u65E5\n\"\u00F6\" = '\u2C60'\nb = \"\"\"\n\u3042\"\"\"\n"), "no error");
  for (const std::string key : {"\u00F6", "[a.\u2C60]\nb", "[[x\u65E5]]\nb", "a = [\u3042]\nb"}) {
    EXPECT_EQ(toml_error(key + " = 1"),
              "a.toml: invalid TOML at line 1: a character beyond ASCII, which only strings and comments may have; fix "
              "that line");
  }
}

TEST(Toml, ThatIsTooDeepToWalkIsRefused) {
  const std::string deepest = repeated("a.", 900) + "a";
  EXPECT_EQ(toml_error(deepest + " = 1"), "no error");
  EXPECT_EQ(toml_error("x = [" + repeated("0.5, ", 5000) + "]"), "no error") << "dots of numbers are no keys";
  for (const std::string& text : {std::string("%s = 1"), std::string("[%s]"), std::string("x = {%s = 1}")}) {
    const std::size_t at = text.find("%s");
    const std::string deep = text.substr(0, at) + repeated("a.", 400'000) + "a" + text.substr(at + 2);
    EXPECT_EQ(toml_error(deep), "a.toml: line 1: a key of more than 1000 parts; shorten it");
  }
  EXPECT_NE(toml_error("a = " + repeated("[", 400'000) + repeated("]", 400'000)), "no error");
  EXPECT_NE(toml_error("a = " + repeated("{a=", 400'000)), "no error");
}

}  // namespace krigtune::formats_test
