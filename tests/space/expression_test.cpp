#include "space/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "space/random_spaces.h"
#include "user_error.h"

namespace krigtune::expression_test {

using Names = std::map<std::string, space::Value, std::less<>>;

std::optional<bool> holds(const std::string& text, const Names& names = {}) {
  return space::Expression::parse(text).holds([&](std::string_view name) {
    const auto found = names.find(name);
    return found == names.end() ? nullptr : &found->second;
  });
}

constexpr std::int64_t operator""_i(unsigned long long value) { return static_cast<std::int64_t>(value); }

TEST(Expression, CalculatesWithTheUsualPrecedence) {
  for (const char* text : {"1 + 2 * 3 == 7",
                           "(1 + 2) * 3 == 9",
                           "7 - 4 - 2 == 1",
                           "16 / 4 / 2 == 2",
                           "17 % 5 * 2 == 4",
                           "-2 + 3 == 1",
                           "2 * -3 == -6",
                           "1e3 == 1000 && .5 + 2.5 == 3",
                           "min(3, 1, 2) == 1",
                           "max(4) == 4",
                           "max(1, min(5, 3)) == 3",
                           "!(1 > 2)",
                           "!false && true",
                           "false && false || true",
                           "true || false && false",
                           "(1 < 2) + (2 < 3) == 2",
                           "'a b' == \"a b\"",
                           "'a' != 'b'",
                           "--1 == 1",
                           "!!true",
                           "-7 % 4 == -3"}) {
    EXPECT_EQ(holds(text), true) << text;
  }
  for (const char* text : {"1 > 2", "2 != 2", "1 >= 2", "2 <= 1", "'a' == 'b'", "1 == 2 || 2 == 3", "!true"}) {
    EXPECT_EQ(holds(text), false) << text;
  }
}

TEST(Expression, ReadsNames) {
  const Names names = {{"zero_stage", 3_i}, {"where", "cpu"}, {"overlap", true}, {"lr", 0.5}, {"x.y", 2_i}};
  EXPECT_EQ(holds("zero_stage == 3 && where == 'cpu' && overlap", names), true);
  EXPECT_EQ(holds("zero_stage * lr + overlap == 2.5 && x.y == 2", names), true);
  EXPECT_EQ(space::Expression::parse("b + a <= b * min(c, a)").names(), (std::vector<std::string>{"b", "a", "c"}));
  EXPECT_EQ(space::Expression::parse(" a  ==1 ").text(), " a  ==1 ");
}

TEST(Expression, IsUnknownWhereAndOnlyWhereItDependsOnWhatIsUnknown) {
  const Names names = {{"t", true}, {"f", false}, {"one", 1_i}};
  EXPECT_EQ(holds("f && unknown", names), false);
  EXPECT_EQ(holds("unknown && f", names), false);
  EXPECT_EQ(holds("t || unknown", names), true);
  EXPECT_EQ(holds("unknown || t", names), true);
  for (const char* text : {"t && unknown", "f || unknown", "!unknown", "unknown + 1 > one", "min(one, unknown) > 0",
                           "-unknown < 0", "unknown == 'x'", "one / 0 == unknown"}) {
    EXPECT_EQ(holds(text, names), std::nullopt) << text;
  }
}

// If more names are known, earlier results stay the same. Checked on random expressions, for each name in turn.
TEST(Expression, NeverTakesBackWhatItKnew) {
  Rng rng(4, 0);
  const std::vector<space::Parameter> parameters = {
      {"a", {1_i}}, {"b", {2_i}}, {"flag", {true}}, {"where", {"cpu"}, space::Scale::kRank, true}};
  for (int i = 0; i < 3000; ++i) {
    const std::string text = RandomConditions(rng, parameters).condition(3);
    const Names all = {{"a", 1_i},
                       {"b", static_cast<std::int64_t>(rng.below(5))},
                       {"flag", rng.below(2) == 0},
                       {"where", "cpu"},
                       {"dp", 2_i},
                       {"ranks", 8_i},
                       {"hidden", 5_i}};
    const auto result = holds(text, all);
    ASSERT_TRUE(result.has_value()) << text;
    for (std::uint64_t known = 0; known < 128; known += 5) {
      Names some;
      std::uint64_t bit = 1;
      for (const auto& entry : all) {
        if ((known & std::exchange(bit, bit * 2)) != 0) some.insert(entry);
      }
      const auto partial = holds(text, some);
      EXPECT_TRUE(!partial || partial == result) << text;
    }
  }
}

TEST(Expression, ComparesFalseWithWhatIsUndefined) {
  const Names names = {{"text", "x"}, {"zero", 0_i}};
  for (const char* text : {"1 / zero > 0", "1 / zero <= 0", "1 / zero != 1", "5 % zero == 0", "1 / zero == 1 / zero",
                           "min(1, 1 / zero) < 2", "text > 1", "text == 1", "text != 1", "text + 1 > 0", "-text < 0"}) {
    EXPECT_EQ(holds(text, names), false) << text;
  }
  EXPECT_EQ(holds("!(1 / zero > 0)", names), true);
}

struct Refused {
  const char* text;
  const char* message;
};

TEST(Expression, SaysWhatIsWrongWhereAndTheMend) {
  for (const Refused& refused : std::vector<Refused>{
           {"", "at character 1: the condition is empty; write for example zero_stage == 3"},
           {"(a + b <= 3", "at character 12: ')' is missing; close the '(' of character 1"},
           {"a <= 3)", "at character 7: ')' has no '('; drop it, or add '('"},
           {"a == 1 and b == 2", "at character 8: unknown operator 'and'; write &&"},
           {"a == 1 or b == 2", "at character 8: unknown operator 'or'; write ||"},
           {"not a", "at character 1: unknown operator 'not'; write !"},
           {"a = 3", "at character 3: unknown operator '='; write =="},
           {"a === 3", "at character 3: unknown operator '==='; write =="},
           {"a & b", "at character 3: unknown operator '&'; write &&"},
           {"a | b", "at character 3: unknown operator '|'; write ||"},
           {"a =< 3", "at character 3: unknown operator '=<'; write <="},
           {"a <> 3", "at character 3: unknown operator '<>'; write !="},
           {"a \xE2\x89\xA4 3", "at character 3: unknown operator '\xE2\x89\xA4'; write <="},
           {"a ** 2 > 3", "at character 3: unknown operator '**'; there are no powers: write a * a"},
           {"a in [1, 2]", "at character 3: unknown operator 'in'; there are no lists: write a == 1 || a == 2"},
           {"1 <= a <= 3", "at character 8: comparisons do not chain; write 1 <= a && a <= 8"},
           {"a <= ", "at character 6: a name, a number or '(' was expected, not the end; complete the expression"},
           {"a b", "at character 3: an operator was expected, not 'b'; join conditions with && or ||"},
           {"a == 'x", "at character 6: the text does not end; close it with '"},
           {"64k > a", "at character 1: '64k' is not a number; write 65536 or 6.5e4; names begin with a letter"},
           {"1.2.3 > a", "at character 1: '1.2.3' is not a number; write 65536 or 6.5e4; names begin with a letter"},
           {"a < 1e999", "at character 5: the number 1e999 is out of range; write a number up to 1e308"},
           {"abs(a) > 3", "at character 1: unknown function 'abs'; known: min, max"},
           {"mni(a, 2) > 3", "at character 1: unknown function 'mni'; did you mean 'min'?"},
           {"min() > 3", "at character 5: 'min' has no arguments; name some"},
           {"min(a, ) > 3", "at character 8: a name, a number or '(' was expected, not ')'; complete the expression"},
           {"a $ 3",
            "at character 3: unexpected character '$'; known: + - * / % == != <= >= < > && || ! ( ) , min max"},
           {"a + 1", "at character 3: a condition was expected, not a number; compare it: ... <= 8"},
           {"7", "at character 1: a condition was expected, not a number; compare it: ... <= 8"},
           {"a > 1 && b + 1", "at character 12: a condition was expected, not a number; compare it: ... <= 8"},
           {"!3", "at character 2: a condition was expected, not a number; compare it: ... <= 8"},
           {"'x'", "at character 1: a condition was expected, not a text; compare it: name == 'text'"},
           {"a < 'x'", "at character 5: texts have no order; texts can be compared with == and != only"},
           {"a + 'x' == 3",
            "at character 5: a text cannot be calculated with; texts can be compared with == and != only"},
           {"a + 1 == 'x'",
            "at character 7: a text is compared with a number; compare texts with texts, numbers with "
            "numbers"}}) {
    EXPECT_EQ(user_error_of([&] { space::Expression::parse(refused.text); }), refused.message) << refused.text;
  }
}

TEST(Expression, SurvivesWhatIsHostile) {
  const std::string deep = std::string(500, '(') + "1" + std::string(500, ')') + " == 1";
  EXPECT_EQ(user_error_of([&] { space::Expression::parse(deep); }),
            "at character 101: more than 100 levels of nesting; drop needless parentheses");
  for (const char c : {'(', '!', '-', '\'', '\0', '\xff', ' '}) {
    for (const std::size_t length : {3999, 100'000}) {
      EXPECT_THROW(space::Expression::parse(std::string(length, c)), UserError) << c;
    }
  }
  std::string chain = "a";
  while (chain.size() + 8 < 4000) chain += "+a";
  EXPECT_EQ(holds(chain + " > 0", {{"a", 1_i}}), true);
  std::string conjunction = "a";
  while (conjunction.size() + 4 < 4000) conjunction += "&&a";
  EXPECT_EQ(holds(conjunction, {{"a", true}}), true);
}

// Random bytes and random tokens give an expression or an error with a position, and nothing else.
TEST(Expression, TakesAnyText) {
  const std::vector<std::string> pieces = {"a", "1", "'t'", "(", ")",  "min", ",",  "+", "-",  "*", "/",
                                           "%", "!", "==",  "<", "&&", "||",  "\"", " ", "1e", ".", "\xC3"};
  Rng rng(9, 0);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (std::uint64_t n = rng.below(12); n > 0; --n) {
      text += rng.below(20) == 0 ? std::string(1, static_cast<char>(rng.below(256))) : pieces[rng.below(pieces.size())];
    }
    try {
      holds(text, {{"a", 1_i}});
    } catch (const UserError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("at character ", 0), 0U) << text;
    }
  }
}

std::optional<space::Value> value(const std::string& text, const Names& names = {}) {
  return space::Expression::parse_value(text).value([&](std::string_view name) {
    const auto found = names.find(name);
    return found == names.end() ? nullptr : &found->second;
  });
}

TEST(ExpressionValue, IsANumberATruthOrAText) {
  const Names names = {{"n", 3_i}, {"lr", 0.5}, {"on", true}, {"where", "cpu"}, {"big", 9007199254740993_i}};
  const std::vector<std::pair<std::string, space::Value>> cases = {
      {"n", 3_i},
      {"lr", 0.5},
      {"on", true},
      {"where", std::string("cpu")},
      {"'a b'", std::string("a b")},
      {"true", true},
      {"7", 7_i},
      {"n * 2", 6_i},
      {"n / 2", 1.5},
      {"n / 2 * 2", 3_i},
      {"-n", -3_i},
      {"on + 1", 2_i},
      {"n % 2", 1_i},
      {"min(n, lr)", 0.5},
      {"n > 2", true},
      {"!on", false},
      {"on && n > 4", false},
      {"where == 'cpu'", true},
      {"(n + 1) * 1e6", 4000000_i},
      {"big", 9007199254740993_i},  // a single name keeps the digits that a double would lose
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(value(text, names), expected) << text;
}

TEST(ExpressionValue, IsUnknownOrUndefined) {
  EXPECT_EQ(value("absent"), std::nullopt);
  EXPECT_EQ(value("absent + 1"), std::nullopt);
  EXPECT_EQ(value("false && absent"), space::Value(false));
  EXPECT_TRUE(std::isnan(std::get<double>(value("1 / 0").value())));
  EXPECT_TRUE(std::isnan(std::get<double>(value("1 + 2 % 0").value())));
  EXPECT_EQ(value("1 / 0 > 1"), space::Value(false));
}

// The value of a condition is whether it is true.
TEST(ExpressionValue, AgreesWithHolds) {
  const Names names = {{"n", 3_i}, {"on", true}, {"where", "cpu"}};
  for (const char* text : {"n == 3", "n > 3 || on", "!on && absent", "where != 'cpu'", "absent == 1", "n / 0 <= 1"}) {
    const std::optional<bool> expected = holds(text, names);
    EXPECT_EQ(value(text, names), expected ? std::optional<space::Value>(*expected) : std::nullopt) << text;
  }
}

TEST(ExpressionValue, IsRefusedWithThePlace) {
  const auto error = [](const std::string& text) {
    return user_error_of([&] { return space::Expression::parse_value(text); });
  };
  EXPECT_EQ(error("1 +"), "at character 4: a name, a number or '(' was expected, not the end; complete the expression");
  EXPECT_EQ(error("a b"), "at character 3: an operator was expected, not 'b'; join conditions with && or ||");
  EXPECT_EQ(error("'a' + 1"),
            "at character 1: a text cannot be calculated with; texts can be compared with == and != "
            "only");
  EXPECT_NE(error(std::string(4001, ' ')).find("the expression is longer than 4000 characters"), std::string::npos);
}

}  // namespace krigtune::expression_test
