#include "result/trial_table.h"

#include <gtest/gtest.h>

#include "core/csv.h"
#include "report/labels.h"
#include "result/report_fixtures.h"

namespace krigtune::trial_table_test {

TEST(TrialTable, ShowsValuesRelativeToTheBaselineFailuresByNameAndMarksTheBest) {
  const session::Session session = bench_session();
  const search::History history = all_outcomes();
  const report::Table table = result::trial_table(run_view(session, history, recommendation()));
  const CsvTable csv = parse_csv(report::render(table, report::TableFormat::kCsv), "table");
  ASSERT_EQ(table.rows.size(), 6U) << "trial 6 still runs";
  const auto text = [&](std::size_t row, const char* column) {
    return table.rows.at(row).at(static_cast<std::size_t>(csv.column(column))).text;
  };
  EXPECT_EQ(text(0, "gain"), "1.00x");
  EXPECT_EQ(text(1, "value"), "OOM");
  EXPECT_EQ(text(2, "reason"), "predicted");
  EXPECT_EQ(text(3, "value"), "failed (timeout)");
  EXPECT_EQ(text(4, "value"), "<= 50 samples/s");
  EXPECT_EQ(text(5, "value"), "125 samples/s");
  EXPECT_EQ(text(5, "gain"), "1.25x");
  EXPECT_EQ(text(5, "best"), "*");
  EXPECT_EQ(text(0, "best"), "");
  EXPECT_TRUE(table.notes.empty());
}

TEST(TrialTable, IsLabelledWhereTheNetworkIsEmulated) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  const search::History history = all_outcomes();
  for (const report::TableFormat format :
       {report::TableFormat::kTable, report::TableFormat::kMarkdown, report::TableFormat::kJson}) {
    const std::string text = report::render(result::trial_table(run_view(session, history, std::nullopt)), format);
    EXPECT_NE(text.find("emulated network eth-25"), std::string::npos) << text;
  }
}

TEST(Labels, GiveBenchValuesTheirUnitsAndTableValuesNone) {
  session::Session session = bench_session();
  EXPECT_EQ(report::value_text(session, 12.345), "12.35 samples/s");
  EXPECT_EQ(report::value_text(session, 12345.6), "12346 samples/s");
  session.objective = {"latency", false, "step_time_s"};
  EXPECT_EQ(report::value_text(session, 0.0482), "48.2 ms");
  session.objective = {"flops", true, "flops_per_s"};
  EXPECT_EQ(report::value_text(session, 1.25e12), "1.25 TFLOP/s");
  session.runner = runner::ReplaySpec();
  session.objective = {"latency", false, "latency"};
  EXPECT_EQ(report::value_text(session, 160.6027), "160.6");
}

TEST(TrialTable, SaysWhereAndWhenTrialsRanWhereThatDiffers) {
  const session::Session session = bench_session();
  search::History history = all_outcomes();
  const auto columns = [&] {
    std::vector<std::string> names;
    for (const report::Column& column : result::trial_table(run_view(session, history, recommendation())).columns)
      names.push_back(column.name);
    return names;
  };
  const std::vector<std::string> undivided = columns();
  EXPECT_EQ(std::count(undivided.begin(), undivided.end(), "where"), 0);
  history[5].where = "slot 1, GPUs 2,3";
  ASSERT_EQ(columns().size(), undivided.size() + 3);
  const report::Table table = result::trial_table(run_view(session, history, recommendation()));
  const std::vector<report::Cell>& row = table.rows.at(5);
  EXPECT_EQ(row[undivided.size()].text, "slot 1, GPUs 2,3");
  EXPECT_EQ(row[undivided.size() + 1].text, "10:00:00");
  EXPECT_EQ(row[undivided.size() + 2].text, "2.50 s");
}

}  // namespace krigtune::trial_table_test
