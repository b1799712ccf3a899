#include "fleet/sureness.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/csv.h"
#include "core/files.h"
#include "core/json.h"
#include "core/text.h"

namespace krigtune::sureness_test {

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

// Published over predicted step times by kind.
std::map<std::string, std::vector<double>> published_ratios() {
  const std::string file = KRIGTUNE_EXPERIMENTS "/results/accuracy/published_rows.csv";
  const CsvTable table = parse_csv(read_text(file), file);
  std::map<std::string, std::vector<double>> ratios;
  for (const std::vector<std::string>& row : table.rows) {
    const std::string& ratio = row[static_cast<std::size_t>(table.column("predicted_over_published"))];
    if (ratio.empty()) continue;
    const std::string& group = row[static_cast<std::size_t>(table.column("group"))];
    const auto has = [&](const char* word) { return group.find(word) != std::string::npos; };
    ratios[has("experts")    ? "experts"
           : has("hybrids")  ? "hybrids"
           : has("adapters") ? "adapters"
                             : "dense"]
        .push_back(1.0 / std::stod(ratio));
  }
  return ratios;
}

workload::Workload workload_of(const std::string& text) {
  return workload::read_workload(parse_json(text, "w"), "w", "");
}

TEST(StepTimeRange, HoldsFourOfFivePublishedRuns) {
  const auto ratios = published_ratios();
  const auto expect_quantiles = [&](const char* kind, const char* text) {
    const fleet::StepTimeRange range = fleet::step_time_range(workload_of(text));
    const std::vector<double>& values = ratios.at(kind);
    EXPECT_EQ(range.runs, static_cast<int>(values.size())) << kind;
    EXPECT_NE(std::string(range.subject).find(fmt::format(" {} ", range.runs)), std::string::npos) << range.subject;
    // Constants have two digits, and predictions may move a little until somebody reads this.
    EXPECT_NEAR(range.low, std::min(1.0, quantile(values, 0.1)), 0.03) << kind;
    EXPECT_NEAR(range.high, quantile(values, 0.9), 0.03) << kind;
  };
  expect_quantiles("dense", R"({"model": {"preset": "llama-3-8b"}})");
  expect_quantiles("experts", R"({"model": {"preset": "mistralai/Mixtral-8x7B-v0.1", "seq_len": 4096}})");
  expect_quantiles("hybrids", R"({"model": {"layers": 4, "hidden": 256, "heads": 4, "vocab": 512, "seq_len": 64,
    "layer_kinds": {"mamba": 2, "attention": 2}, "mamba": {"heads": 8}}})");
  const fleet::StepTimeRange adapters =
      fleet::step_time_range(workload_of(R"({"model": {"preset": "llama-3-8b"}, "training": {"lora": {"rank": 8}}})"));
  EXPECT_EQ(adapters.runs, static_cast<int>(ratios.at("adapters").size()));
  EXPECT_NEAR(adapters.low, quantile(ratios.at("adapters"), 0.1), 0.03);
}

TEST(StepTimeRange, TurnsTimesAndRatesAround) {
  const fleet::StepTimeRange range{"", "", 1, 0.8, 1.25};
  const fleet::Estimate time = range.time(10.0);
  EXPECT_EQ(time.low, 8.0);
  EXPECT_EQ(time.high, 12.5);
  const fleet::Estimate rate = range.rate(100.0);
  EXPECT_EQ(rate.low, 80.0);
  EXPECT_EQ(rate.high, 125.0);
}

TEST(MemoryEstimate, HoldsFourFifthsOfANormalDistribution) {
  const fleet::Estimate estimate = fleet::memory_estimate(100.0, 0.1);
  // P(|z| < 1.2816) = 0.8: erf(1.2816 / sqrt 2)
  EXPECT_NEAR(std::erf(std::log(estimate.high / 100.0) / 0.1 / std::sqrt(2.0)), 0.8, 1e-4);
  EXPECT_NEAR(estimate.low * estimate.high, 100.0 * 100.0, 1e-6);
  EXPECT_EQ(fleet::memory_estimate(100.0, 0.0).high, 100.0);
}

}  // namespace krigtune::sureness_test
