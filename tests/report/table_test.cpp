#include "report/table.h"

#include <gtest/gtest.h>

#include "core/csv.h"
#include "core/error.h"
#include "core/json.h"

namespace krigtune::table_test {

Table fruit() {
  Table table{"fruit", {{"name", "name"}, {"weight_g", "weight", true}}, {}, {"weighed in June"}};
  table.rows = {{text_cell("pear"), number_cell(150.0, "150 g")},
                {text_cell("a|b, \"c\""), number_cell(std::nullopt, "lost")},
                {text_cell("apple"), number_cell(75.5, "75.5 g")}};
  return table;
}

std::vector<std::string> names(const Table& table) {
  std::vector<std::string> result;
  for (const auto& row : table.rows) result.push_back(row[0].text);
  return result;
}

TEST(Table, PadsItsColumnsForPeople) {
  EXPECT_EQ(render(fruit(), TableFormat::kTable),
            "name      weight\n"
            "pear       150 g\n"
            "a|b, \"c\"    lost\n"
            "apple     75.5 g\n"
            "weighed in June\n");
}

TEST(Table, EscapesBarsInMarkdown) {
  EXPECT_EQ(render(fruit(), TableFormat::kMarkdown),
            "| name | weight |\n|---|---:|\n| pear | 150 g |\n| a\\|b, \"c\" | lost |\n| apple | 75.5 g |\n"
            "\nweighed in June\n");
}

TEST(Table, HasRawValuesInCsv) {
  const std::string text = render(fruit(), TableFormat::kCsv);
  EXPECT_EQ(text, "name,weight_g\npear,150\n\"a|b, \"\"c\"\"\",\napple,75.5\n");
  EXPECT_EQ(parse_csv(text, "table").rows.at(1).at(0), "a|b, \"c\"");
}

TEST(Table, IsOneJsonDocumentWithSchemaVersion) {
  const Json json = parse_json(render(fruit(), TableFormat::kJson), "table");
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["fruit"].size(), 3U);
  EXPECT_EQ(json["fruit"][0], parse_json(R"({"name": "pear", "weight_g": 150})", "expected"));
  EXPECT_TRUE(json["fruit"][1]["weight_g"].is_null());
}

TEST(Table, SortsWhatIsNotAvailableToTheEndInBothDirections) {
  Table table = fruit();
  sort_rows(table, "weight_g", true, "--sort");
  EXPECT_EQ(names(table), (std::vector<std::string>{"pear", "apple", "a|b, \"c\""}));
  sort_rows(table, "weight_g", false, "--sort");
  EXPECT_EQ(names(table), (std::vector<std::string>{"apple", "pear", "a|b, \"c\""}));
  sort_rows(table, "name", false, "--sort");
  EXPECT_EQ(names(table), (std::vector<std::string>{"apple", "a|b, \"c\"", "pear"}));
}

TEST(Table, NamesTheNearestColumnAndFormat) {
  Table table = fruit();
  try {
    sort_rows(table, "wieght_g", false, "--sort");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "--sort: there is no column 'wieght_g'; did you mean 'weight_g'?");
  }
  EXPECT_THROW(table_format_from("jsn", "--format"), UserError);
  EXPECT_EQ(table_format_from("md", "--format"), TableFormat::kMarkdown);
}

}  // namespace krigtune::table_test
