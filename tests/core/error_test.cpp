#include <gtest/gtest.h>

#include "user_error.h"

namespace krigtune::error_test {

std::string line_of(const std::string& what, const std::string& hint = "") {
  return user_error_of([&] { throw UserError(what, hint); });
}

TEST(UserError, SaysWhatIsWrongAndThenTheMend) {
  EXPECT_EQ(line_of("it is wrong", "fix it"), "it is wrong; fix it");
  EXPECT_EQ(line_of("it is wrong"), "it is wrong");
}

// The user's keys and values are part of the text. They must not split the line or control the terminal.
TEST(UserError, IsOneLineThatNoTerminalObeys) {
  EXPECT_EQ(line_of("a\nb\tc\033[2Jd\x7f", "\r"), "a\\nb\\x09c\\x1b[2Jd\\x7f; \\x0d");
  EXPECT_EQ(line_of("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb0"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb0");
  EXPECT_EQ(line_of("\xff \xc3( \xe2\x82"), "\\xff \\xc3( \\xe2\\x82");
  EXPECT_EQ(line_of("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
}

TEST(UserError, QuotesNoMegabyte) {
  const std::string line = line_of("s.json: /space: '" + std::string(1'000'000, 'k') + "' is unknown", "remove it");
  EXPECT_LT(line.size(), 5000U);
  EXPECT_TRUE(line.starts_with("s.json: /space: 'kkk"));
  EXPECT_TRUE(line.ends_with("kkk' is unknown; remove it"));
}

}  // namespace krigtune::error_test
