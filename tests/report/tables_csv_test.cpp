#include "report/tables_csv.h"

#include <gtest/gtest.h>

#include <sstream>

namespace krigtune::tables_csv_test {

const std::vector<std::string> kColumns = {"zero_stage", "overlap_comm"};
const space::Configuration kPoint = {{"zero_stage", std::int64_t{2}}, {"overlap_comm", true}};

const std::string kHeader =
    "zero_stage,overlap_comm,mean,stddev,lower_95,upper_95,expected_improvement,log_expected_improvement,"
    "probability_feasible,predicted_memory_bytes,memory_feasible,observed,status,median,rank\n";

insight::PredictionRow predicted(double median) {
  insight::PredictionRow row;
  row.configuration = kPoint;
  row.median = median;
  return row;
}

TEST(PredictionsCsv, HasTheColumnsOfTheContractAndSixDigits) {
  report::PredictionsCsv csv(kColumns, true);
  insight::PredictionRow row = predicted(12.5);
  row.stddev = 0.123456789;
  row.lower_95 = 11.5;
  row.upper_95 = 123456.789;
  row.expected_improvement = 1e-30;
  row.log_expected_improvement = -69.25;
  row.probability_feasible = 0.75;
  row.predicted_memory = Bytes{5'000'000'123};
  row.memory_feasible = true;
  row.observed = 12.0;
  row.status = "oom";
  csv.add(row);
  EXPECT_EQ(csv.text(), kHeader + "2,true,12.5,0.123457,11.5,123457,1e-30,-69.25,0.75,5000000123,true,12,oom,12.5,1\n");
}

TEST(PredictionsCsv, LeavesEmptyWhatIsNotAvailable) {
  report::PredictionsCsv csv(kColumns, true);
  insight::PredictionRow row;
  row.configuration = kPoint;
  csv.add(row);
  EXPECT_EQ(csv.text(), kHeader + "2,true,,,,,,,1,,,,,,\n");
}

TEST(PredictionsCsv, RanksWhatMayFitTheBestFirst) {
  for (const bool maximize : {true, false}) {
    report::PredictionsCsv csv(kColumns, maximize);
    for (const double median : {2.0, 3.0, 1.0}) csv.add(predicted(median));
    insight::PredictionRow too_large = predicted(maximize ? 9.0 : 0.5);
    too_large.memory_feasible = false;
    csv.add(too_large);
    std::istringstream lines(csv.text());
    std::string ranks;
    for (std::string line; std::getline(lines, line);) ranks += line.substr(line.rfind(',') + 1) + " ";
    EXPECT_EQ(ranks, maximize ? "rank 2 1 3  " : "rank 2 3 1  ");
  }
}

TEST(PredictionsCsv, HasFourColumnsForEachFurtherObjective) {
  report::PredictionsCsv csv(kColumns, true, {"power_w"});
  insight::PredictionRow row;
  row.configuration = kPoint;
  row.others = {{250.0, 200.0, 312.5, std::nullopt}};
  csv.add(row);
  const std::string text = csv.text();
  EXPECT_NE(text.find(",median,rank,power_w_median,power_w_lower_95,power_w_upper_95,power_w_observed\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with(",250,200,312.5,\n")) << text;
}

TEST(PlanCsv, HasExactlyTheColumnsOfTheContract) {
  EXPECT_EQ(report::plan_header(kColumns),
            "zero_stage,overlap_comm,predicted_value,predicted_step_time_s,predicted_memory_bytes,memory_verdict,"
            "probability_fits,bottleneck\n");
  forecast::Forecast forecast;
  EXPECT_EQ(report::plan_line(kPoint, forecast, kColumns), "2,true,,,,,,\n");
  forecast.memory = plan::MemoryVerdict{plan::Verdict::kUncertain, 0.25, Bytes{1024}};
  EXPECT_EQ(report::plan_line(kPoint, forecast, kColumns), "2,true,,,1024,uncertain,0.25,\n");
  forecast.cost = cost::StepCost{};
  forecast.cost->step_time_s = forecast.cost->exposed_comm_s = 0.5;
  forecast.value = 12.0;
  EXPECT_EQ(report::plan_line(kPoint, forecast, kColumns), "2,true,12,0.5,1024,uncertain,0.25,communication\n");
}

compare::Comparison small_comparison() {
  compare::Comparison comparison;
  comparison.trials = {{search::StrategyKind::kBayes, 3, 0, "ok", 10.0, 10.0, 0.5, 0.25},
                       {search::StrategyKind::kBayes, 3, 1, "failed", std::nullopt, 10.0, 0.5, 0.25},
                       {search::StrategyKind::kGrid, 3, 0, "oom", std::nullopt, std::nullopt, 1.0, 0.0}};
  compare::StrategySummary summary;
  summary.strategy = search::StrategyKind::kBayes;
  summary.seeds = 20;
  summary.trials_to_5pct = {7.0, 7.5, 5.0, 9.25};
  summary.trials_to_1pct = {41.0, 30.5, 20.0, 41.0};
  summary.failed_first_20_mean = 1.5;
  summary.best_over_optimum_at = {0.5, 0.75, 1.0, std::nullopt};
  comparison.summary = {summary};
  return comparison;
}

TEST(ComparisonCsv, HasExactlyTheColumnsOfTheContract) {
  EXPECT_EQ(report::comparison_csv(small_comparison()),
            "strategy,seed,trial,status,value,best_so_far,regret,wall_s\n"
            "bayes,3,0,ok,10,10,0.5,0.25\n"
            "bayes,3,1,failed,,10,0.5,0.25\n"
            "grid,3,0,oom,,,1,0\n");
}

TEST(ComparisonSummaryCsv, HasExactlyTheColumnsOfTheContract) {
  EXPECT_EQ(report::comparison_summary_csv(small_comparison()),
            "strategy,seeds,trials_to_5pct_median,trials_to_5pct_mean,trials_to_5pct_q25,trials_to_5pct_q75,"
            "trials_to_1pct_median,trials_to_1pct_mean,trials_to_1pct_q25,trials_to_1pct_q75,failed_first_20_mean,"
            "best_over_optimum_at_5,best_over_optimum_at_10,best_over_optimum_at_20,best_over_optimum_at_40\n"
            "bayes,20,7,7.5,5,9.25,41,30.5,20,41,1.5,0.5,0.75,1,\n");
}

}  // namespace krigtune::tables_csv_test
