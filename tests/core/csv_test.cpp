#include "core/csv.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "user_error.h"

namespace krigtune::csv_test {

using Row = std::vector<std::string>;

TEST(Csv, ReadsQuotesAndBothLineBreaks) {
  const CsvTable table = parse_csv("a,b,c\r\n1,\"x, \"\"y\"\"\nz\",3\n\n4,,\"\"", "t.csv");
  EXPECT_EQ(table.header, (Row{"a", "b", "c"}));
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0], (Row{"1", "x, \"y\"\nz", "3"}));
  EXPECT_EQ(table.rows[1], (Row{"4", "", ""}));
  EXPECT_EQ(table.column("c"), 2);
  EXPECT_EQ(table.column("d"), -1);
}

TEST(Csv, SkipsAByteOrderMark) {
  EXPECT_EQ(parse_csv("\xEF\xBB\xBF"
                      "a,b\n",
                      "t.csv")
                .column("a"),
            0);
}

TEST(Csv, NamesTheLineOfABadRow) {
  const auto error_of = [](const char* text) { return user_error_of([&] { parse_csv(text, "t.csv"); }); };
  EXPECT_EQ(error_of("a,b\n\"x\ny\",2\n1,2,3\n"), "t.csv:4: 3 fields where the header has 2; fix the row");
  EXPECT_EQ(error_of("a,b\n1,\"2\n"), "t.csv:2: a quoted field does not end; close the quote");
  EXPECT_EQ(error_of(""), "t.csv: the table is empty; give it a header and rows");
}

TEST(CsvLine, QuotesOnlyWhereItMust) {
  EXPECT_EQ(csv_line({"1", "x y", "", "a,b", "say \"x\"", "two\nlines"}),
            "1,x y,,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\n");
}

// Texts that a spreadsheet would treat as a formula: OWASP, "CSV Injection".
TEST(SpreadsheetSafe, PutsAnApostropheBeforeTextsThatBeginLikeAFormula) {
  EXPECT_EQ(spreadsheet_safe("=a,b\n=1+1,x\n+1x,-\n@SUM(A1),\"\tq\"\n\"\rr\",'=\n"),
            "'=a,b\n'=1+1,x\n'+1x,'-\n'@SUM(A1),'\tq\n\"'\rr\",'=\n");
}

TEST(SpreadsheetSafe, LeavesNumbersAndOtherTextsAsTheyAre) {
  const std::string table = "a,b,c\n-1,-2.5e-07,3\n,x=1,\"say \"\"x\"\", 1\"\n-inf,-nan,-0\n";
  EXPECT_EQ(spreadsheet_safe(table), table);
}

TEST(Csv, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(parse_csv("\xEF\xBB\xBF"
                      "a,b\n1,2\n",
                      "t.csv")
                .header,
            (Row{"a", "b"}));
}

TEST(Csv, SurvivesWritingAndReadingOfAnyText) {
  const auto survives = [](const Row& cells) {
    RC_PRE(!cells.empty());
    Row header;
    for (std::size_t i = 0; i <= cells.size(); ++i) header.push_back(std::to_string(i));
    Row row = cells;
    row.push_back("end");  // a single empty field is an empty line
    const CsvTable table = parse_csv(csv_line(header) + csv_line(row) + csv_line(row), "t.csv");
    RC_ASSERT(table.header == header);
    RC_ASSERT(table.rows == (std::vector<Row>{row, row}));
  };
  const auto cell = rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab1 ,\"\n\r;'\xC3\xA9")));
  EXPECT_TRUE(rc::check("parse_csv(csv_line(x)) == x", [&] { survives(*rc::gen::container<Row>(cell).as("cells")); }));
}

}  // namespace krigtune::csv_test
