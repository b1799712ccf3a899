#include <gtest/gtest.h>

#include "user_error.h"

namespace krigtune::error_test {

std::string line_of(const std::string& what, const std::string& hint = "") {
  return user_error_of([&] { throw UserError(what, hint); });
}

TEST(UserError, SaysWhatIsWrongAndThenTheMend) {
  EXPECT_EQ(line_of("it is wrong", "mend it"), "it is wrong; mend it");
  EXPECT_EQ(line_of("it is wrong"), "it is wrong");
}

// Keys and values of the user's stand in the text: two lines, or a terminal that obeys them, would be a surprise.
TEST(UserError, IsOneLineThatNoTerminalObeys) {
  EXPECT_EQ(line_of("a\nb\tc\033[2Jd\x7f", "\r"), "a\\nb\\x09c\\x1b[2Jd\\x7f; \\x0d");
  EXPECT_EQ(line_of("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb0"), "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8d\xb0");
  EXPECT_EQ(line_of("\xff \xc3( \xe2\x82"), "\\xff \\xc3( \\xe2\\x82");
}

}  // namespace krigtune::error_test
