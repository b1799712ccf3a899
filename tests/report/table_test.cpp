#include "report/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/columns.h"
#include "core/csv.h"
#include "core/error.h"
#include "core/json.h"

namespace krigtune::table_test {

report::Table fruit() {
  report::Table table{"fruit", {{"name", "name"}, {"weight_g", "weight", true}}, {}, {"weighed in June"}};
  table.rows = {{report::text_cell("pear"), report::number_cell(150.0, "150 g")},
                {report::text_cell("a|b, \"c\""), report::number_cell(std::nullopt, "lost")},
                {report::text_cell("apple"), report::number_cell(75.5, "75.5 g")}};
  return table;
}

std::vector<std::string> names(const report::Table& table) {
  std::vector<std::string> result;
  for (const auto& row : table.rows) result.push_back(row[0].text);
  return result;
}

TEST(Table, PadsItsColumnsForPeople) {
  EXPECT_EQ(report::render(fruit(), report::TableFormat::kTable),
            "name      weight\n"
            "pear       150 g\n"
            "a|b, \"c\"    lost\n"
            "apple     75.5 g\n"
            "weighed in June\n");
}

TEST(Table, FoldsColumnsThatSayTheSameInEveryRow) {
  report::Table table{"trials",
                      {{"trial", "trial", true}, {"mode", "mode"}, {"reason", "reason"}, {"size", "size", true}},
                      {{report::text_cell("0"), report::text_cell("fast"), {}, report::text_cell("1")},
                       {report::text_cell("1"), report::text_cell("fast"), {}, report::text_cell("2")}},
                      {}};
  report::Table kept = table;
  EXPECT_EQ(report::fold_constants(kept, {"trial", "mode"}), std::vector<std::string>());
  EXPECT_EQ(kept.columns.size(), 3U) << "an empty column goes without a word";
  EXPECT_EQ(report::fold_constants(table, {"trial"}), (std::vector<std::string>{"mode=fast"}));
  EXPECT_EQ(report::render(table, report::TableFormat::kTable), "trial  size\n    0     1\n    1     2\n");
  table.rows.pop_back();
  EXPECT_TRUE(report::fold_constants(table, {"trial"}).empty()) << "of one row nothing is known to be the same";
}

TEST(Table, FitsATerminalByTallTitlesThenByShorterTexts) {
  report::Table table{"trials",
                      {{"trial", "trial", true},
                       {"stage3_prefetch_bucket_size", "stage3_prefetch_bucket_size", true},
                       {"text", "text"}},
                      {{report::text_cell("0"), report::text_cell("5e7"), report::text_cell("short")}},
                      {"a note that is long enough to be wrapped into two lines or more"}};
  EXPECT_EQ(report::render_for_terminal(table, 30),
            "         stage3_\n"
            "       prefetch_\n"
            "         bucket_\n"
            "trial       size  text\n"
            "    0        5e7  short\n"
            "a note that is long enough to\n"
            "  be wrapped into two lines or\n"
            "  more\n");
  EXPECT_EQ(report::render_for_terminal(table, 100).substr(0, 40), "trial  stage3_prefetch_bucket_size  text");
  const std::string wide = "\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1";
  table.rows.push_back({report::text_cell("1"), report::text_cell("5e8"), report::text_cell(wide + wide + wide)});
  table.rows.push_back({report::text_cell("2"), report::text_cell("5e8"), report::text_cell(std::string(10'000, 'x'))});
  for (const int columns : {40, 60, 80}) {
    std::istringstream lines(report::render_for_terminal(table, columns));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), columns) << line;
  }
}

TEST(Table, PadsWideCharactersByWhatIsSeen) {
  const report::Table table{"t",
                            {{"a", "a"}, {"b", "b"}},
                            {{report::text_cell("\u7ffb\u8bd1"), report::text_cell("1")},
                             {report::text_cell("x\ny"), report::text_cell("2")}},
                            {}};
  EXPECT_EQ(report::render(table, report::TableFormat::kTable), "a     b\n\u7ffb\u8bd1  1\nx\\ny  2\n");
}

TEST(Table, EscapesBarsInMarkdown) {
  EXPECT_EQ(report::render(fruit(), report::TableFormat::kMarkdown),
            "| name | weight |\n|---|---:|\n| pear | 150 g |\n| a\\|b, \"c\" | lost |\n| apple | 75.5 g |\n"
            "\nweighed in June\n");
}

TEST(Table, LetsNoTagAndNoLineBreakIntoMarkdown) {
  const report::Table table("t", {{"a", "a"}}, {{report::text_cell("<script>x</script>\n| y")}}, {});
  EXPECT_EQ(report::render(table, report::TableFormat::kMarkdown),
            "| a |\n|---|\n| &lt;script>x&lt;/script>\\n\\| y |\n");
}

TEST(Table, HasRawValuesInCsv) {
  const std::string text = report::render(fruit(), report::TableFormat::kCsv);
  EXPECT_EQ(text, "name,weight_g\npear,150\n\"a|b, \"\"c\"\"\",\napple,75.5\n");
  EXPECT_EQ(parse_csv(text, "table").rows.at(1).at(0), "a|b, \"c\"");
}

TEST(Table, IsOneJsonDocumentWithSchemaVersion) {
  const Json json = parse_json(report::render(fruit(), report::TableFormat::kJson), "table");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["fruit"].size(), 3U);
  EXPECT_EQ(json["fruit"][0], parse_json(R"({"name": "pear", "weight_g": 150})", "expected"));
  EXPECT_TRUE(json["fruit"][1]["weight_g"].is_null());
}

TEST(Table, SortsWhatIsNotAvailableToTheEndInBothDirections) {
  report::Table table = fruit();
  report::sort_rows(table, "weight_g", true, "--sort");
  EXPECT_EQ(names(table), (std::vector<std::string>{"pear", "apple", "a|b, \"c\""}));
  report::sort_rows(table, "weight_g", false, "--sort");
  EXPECT_EQ(names(table), (std::vector<std::string>{"apple", "pear", "a|b, \"c\""}));
  report::sort_rows(table, "name", false, "--sort");
  EXPECT_EQ(names(table), (std::vector<std::string>{"apple", "a|b, \"c\"", "pear"}));
}

TEST(Table, NamesTheNearestColumnAndFormat) {
  report::Table table = fruit();
  try {
    report::sort_rows(table, "wieght_g", false, "--sort");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "--sort: there is no column 'wieght_g'; did you mean 'weight_g'?");
  }
  EXPECT_THROW(report::table_format_from("jsn", "--format"), UserError);
  EXPECT_EQ(report::table_format_from("md", "--format"), report::TableFormat::kMarkdown);
}

}  // namespace krigtune::table_test
