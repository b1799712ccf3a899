#include "page/html/html.h"

#include <gtest/gtest.h>

#include "html_reader.h"

namespace krigtune::html_test {

TEST(Html, EscapesMarkup) {
  EXPECT_EQ(page::escaped("<script>alert(\"1\" & '2')</script>"),
            "&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;");
  EXPECT_EQ(page::element("a", {{"href", "\"><script>"}, {"hidden", ""}}, "x"),
            "<a href=\"&quot;&gt;&lt;script&gt;\" hidden>x</a>");
}

TEST(Html, ShowsWhatWouldTurnTheTextAround) {
  EXPECT_EQ(page::escaped("a\xE2\x80\xAE"
                          "b"),
            "aU+202Eb");
  EXPECT_EQ(page::escaped("\xE2\x81\xA6\xD8\x9C\x01\x7F"), "U+2066U+061CU+0001U+007F");
  EXPECT_EQ(page::escaped("a\tb\nc"), "a\tb\nc");
}

// A torn and an overlong sequence, a surrogate, a code point beyond the last character, a lone continuation byte.
TEST(Html, ReplacesWhatIsNoText) {
  const std::string replaced = "\xEF\xBF\xBD";
  EXPECT_EQ(page::escaped("\xE2\x80"), replaced + replaced);
  EXPECT_EQ(page::escaped("\xC0\xAF"), replaced + replaced);
  EXPECT_EQ(page::escaped("\xED\xA0\x80"), replaced + replaced + replaced);
  EXPECT_EQ(page::escaped("\xF4\x90\x80\x80"), replaced + replaced + replaced + replaced);
  EXPECT_EQ(page::escaped("\x80z"), replaced + "z");
  EXPECT_EQ(page::escaped("é漢😀"), "é漢😀");
}

TEST(Html, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(page::user_text("ab", 2), "<bdi>ab</bdi>");
  EXPECT_EQ(page::user_text("漢漢漢", 2), "<bdi>漢漢</bdi> … (9 bytes in all)");
  EXPECT_LT(page::user_text(std::string(10'000, '<')).size(), 1000U);
}

TEST(Html, TablesAreWhole) {
  const std::string html = page::table({"A <caption>", {"a", "b"}, {{"1", "2"}, {"3", "4"}}});
  const HtmlReader read(html);
  EXPECT_EQ(read.fault(), "");
  EXPECT_EQ(read.count("td"), 2);
  EXPECT_EQ(read.count("th"), 4);
}

// The other tests rely on this reader.
TEST(HtmlReader, FindsFaults) {
  EXPECT_EQ(HtmlReader("<p>a</p>").fault(), "");
  for (const char* bad : {"<p>a", "<p>a</b>", "a & b", "<p class=x>a</p>", "a > b", "<a id=\"1\"></a><a id=\"1\"></a>",
                          "<img src=\"x\"/>", "<p onclick=\"x\">a</p>"}) {
    EXPECT_NE(HtmlReader(bad).fault(), "") << bad;
  }
}

}  // namespace krigtune::html_test
