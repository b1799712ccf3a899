#include "core/pattern.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>

namespace krigtune::pattern_test {

TEST(Pattern, FindsWhatTheStandardLibraryFinds) {
  // Seed 11: texts and expressions of few letters, so that many match. Short texts take the fast way and long ones the
  // one that looks at the clock.
  std::mt19937 random(11);
  const std::vector<std::string> expressions = {"a+b",      "(a|b)*c", "^ab(c+)", "(b?)c$",      "b{2,3}(a)",
                                                "[ab]+(c)", "",        "a(?=b)",  "(?:ab)+(c)?", "\\bab\\b"};
  int matches = 0;
  for (const std::string& expression : expressions) {
    const Pattern pattern(expression);
    const std::regex reference(expression);
    for (const int size : {0, 1, 5, 20, 900}) {
      for (int round = 0; round < 20; ++round) {
        std::string text;
        for (int i = 0; i < size; ++i) text += "abc "[random() % (round < 10 ? 4 : 2)];
        std::smatch expected;
        const bool has = std::regex_search(text, expected, reference);
        SearchLimit limit;
        const auto found = pattern.search(text, limit);
        ASSERT_EQ(found.has_value(), has) << expression << " in " << text;
        if (!has) continue;
        ++matches;
        EXPECT_EQ(found->begin, static_cast<std::size_t>(expected.position(0))) << expression << " in " << text;
        EXPECT_EQ(limit.given_up, 0);
      }
    }
  }
  EXPECT_GT(matches, 300);
}

TEST(Pattern, FindsTheValueOfItsGroup) {
  SearchLimit limit;
  const auto found = Pattern("loss: ([0-9.]+)").search("step 4 loss: 1.25 s", limit);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->begin, 7);
  EXPECT_EQ(found->length, 10);
  EXPECT_EQ(found->value_begin, 13);
  EXPECT_EQ(found->value, "1.25");
}

TEST(Pattern, GivesUpWhereASearchTakesTooLong) {
  const std::string far = std::string(5000, 'x') + " loss: 3";
  const Pattern pattern("[a-z]*: ([0-9])");
  SearchLimit none{.most_s = 0.0, .left = 2};
  EXPECT_FALSE(pattern.search(far, none));
  EXPECT_FALSE(pattern.search(far, none));
  EXPECT_EQ(none.left, 0);
  // From now on nothing is searched, not even what would be found at once.
  EXPECT_FALSE(pattern.search("loss: 3", none));
  EXPECT_EQ(none.given_up, 3);
  SearchLimit ample{.most_s = 1000.0};
  EXPECT_TRUE(pattern.search(far, ample));
}

// std::regex by default would need more than the age of the universe, or the stack.
TEST(Pattern, EndsOnTextThatBacktrackingNeverEndsOn) {
  const Pattern pattern("(x+x+)+y");
  EXPECT_FALSE(pattern.matches(std::string(60, 'x')));
  EXPECT_FALSE(pattern.matches(std::string(1 << 16, 'x')));
}

TEST(Pattern, CountsStates) {
  EXPECT_EQ(states_of_pattern("abc"), 3);
  EXPECT_EQ(states_of_pattern("[a-z]\\d{3}"), 4);
  EXPECT_EQ(states_of_pattern("(ab){10}"), 30);
  EXPECT_GT(states_of_pattern("((a{100}){100}){100}"), Pattern::kMostStates);
  EXPECT_GT(states_of_pattern("a{99999999999999999999}"), Pattern::kMostStates);
}

TEST(Pattern, RefusesWhatWouldTakeTooLong) {
  EXPECT_THROW(Pattern("(a{1000}){1000}"), std::regex_error);
  EXPECT_THROW(Pattern("(?=(?=a)b)c"), std::regex_error);
  EXPECT_THROW(Pattern("(a"), std::regex_error);
  EXPECT_NO_THROW(Pattern("(?=a)a(?!b)"));
}

std::string trouble_with(const std::string& text) {
  try {
    static_cast<void>(Pattern(text));
  } catch (const std::regex_error& error) {
    return trouble_with_pattern(error);
  }
  return "";
}

TEST(Pattern, SaysWhatIsWrongWithAnExpression) {
  EXPECT_EQ(trouble_with("loss ([0-9"), "a [ has no ]");
  EXPECT_EQ(trouble_with("loss ([0-9.]+"), "a ( has no ), a ) has no (, or a *, + or ? has nothing before it");
  EXPECT_EQ(trouble_with("loss [0-9.]+)"), "a ( has no ), a ) has no (, or a *, + or ? has nothing before it");
  EXPECT_EQ(trouble_with("+ loss"), "a ( has no ), a ) has no (, or a *, + or ? has nothing before it");
  EXPECT_EQ(trouble_with("[9-0]"), "a range in [ ] is backwards, as z-a is");
  EXPECT_EQ(trouble_with("(a{1000}){1000}"), "it would take too long to search");
  EXPECT_EQ(trouble_with("loss ([0-9.]+)"), "");
}

TEST(Pattern, WithLookaheadsSearchesOnlyTheBegin) {
  SearchLimit limit;
  const Pattern pattern("a(?=b)");
  EXPECT_TRUE(pattern.search("xab", limit));
  EXPECT_FALSE(pattern.search(std::string(Pattern::kMostWithLookaheads, 'x') + "ab", limit));
}

}  // namespace krigtune::pattern_test
