#include "core/columns.h"

#include <gtest/gtest.h>

#include <sstream>

namespace krigtune::columns_test {

TEST(Columns, CountWhatATerminalShows) {
  EXPECT_EQ(columns_of("plain"), 5);
  EXPECT_EQ(columns_of("\u00e9t\u00e9"), 3);
  EXPECT_EQ(columns_of("e\u0301"), 1) << "an accent of its own";
  EXPECT_EQ(columns_of("\u7ffb\u8bd1"), 4) << "wide characters";
  EXPECT_EQ(columns_of("\uac00\uff21"), 4);
  EXPECT_EQ(columns_of("\U0001f680"), 2);
  EXPECT_EQ(columns_of("\u0416\u03b1"), 2) << "Cyrillic and Greek are narrow";
  EXPECT_EQ(columns_of("\xff\xc3"), 2) << "bytes that are no UTF-8";
}

TEST(Columns, MakeVisibleWhatWouldMoveTheCursorOrHide) {
  EXPECT_EQ(visible("a\nb\tc\x1b[2J"), "a\\nb\\tc\\x1b[2J");
  EXPECT_EQ(visible("evil\u202etxt.exe"), "evil\\u202etxt.exe");
  EXPECT_EQ(visible_lines("a\x1b[2J\n\nb\n"), "a\\x1b[2J\n\nb\n");
  EXPECT_EQ(visible("\xff"), "\\xff");
  EXPECT_EQ(visible("\u7ffb\u8bd1 \u00e9"), "\u7ffb\u8bd1 \u00e9");
  EXPECT_EQ(visible("\xc0\xaf"), "\\xc0\\xaf") << "an overlong slash";
}

TEST(Columns, ClipAtWholeCharacters) {
  EXPECT_EQ(clipped("abcdef", 6), "abcdef");
  EXPECT_EQ(clipped("abcdef", 5), "ab...");
  EXPECT_EQ(clipped("\u7ffb\u8bd1\u7ffb\u8bd1", 6), "\u7ffb...") << "three columns are left, and a character takes two";
  EXPECT_EQ(clipped("abcdef", 2), "ab");
  EXPECT_EQ(clipped("abcdef", 0), "");
  for (int columns = 0; columns < 12; ++columns) {
    EXPECT_LE(columns_of(clipped("\u00e9\u7ffbx\u8bd1\u00e9\u00e9\U0001f680", columns)), columns);
  }
}

TEST(Columns, PadToTheWidthThatIsSeen) {
  EXPECT_EQ(padded("\u7ffb", 4, true), "  \u7ffb");
  EXPECT_EQ(padded("\u7ffb", 4, false), "\u7ffb  ");
  EXPECT_EQ(padded("long", 2, true), "long");
}

TEST(Columns, WrapAtBlanksAndClipWordsThatAreLongerThanALine) {
  EXPECT_EQ(wrapped_lines("one two three", 7, 2), "one two\n  three");
  EXPECT_EQ(wrapped_lines("  kept  apart", 20, 2), "  kept  apart");
  const std::string text = wrapped_lines("name=" + std::string(200, 'x') + " \u7ffb\u8bd1\u7ffb\u8bd1 end", 12, 4);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 12) << text;
  EXPECT_NE(text.find("end"), std::string::npos);
}

}  // namespace krigtune::columns_test
