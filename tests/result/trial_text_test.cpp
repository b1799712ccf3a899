#include "result/trial_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/columns.h"
#include "result/report_fixtures.h"
#include "result/trial_table.h"

namespace krigtune::trial_text_test {

std::string text_of(const session::Session& session, const search::History& history, int columns,
                    std::optional<search::Recommendation> best = recommendation()) {
  const report::RunView run = run_view(session, history, std::move(best));
  return result::trial_text(run, result::trial_table(run), columns);
}

void expect_within(const std::string& text, int columns) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), columns) << line;
}

TEST(TrialText, SaysWhatIsTheSameInALineAndParametersSideBySideWhereTheyFit) {
  const session::Session session = bench_session();
  const std::string text = text_of(session, all_outcomes(), 120);
  EXPECT_EQ(text.rfind("all with reduce_bucket_size=500\n", 0), 0U) << text;
  EXPECT_NE(text.find("overlap"), std::string::npos) << text;
  EXPECT_EQ(text.find("status"), std::string::npos) << "the value says it: " << text;
  EXPECT_NE(text.find("failed (timeout)"), std::string::npos) << text;
  expect_within(text, 120);
}

TEST(TrialText, SaysWhatDiffersFromTheBestWhereTheyDoNotFit) {
  const session::Session session = bench_session();
  const std::string text = text_of(session, all_outcomes(), 80);
  EXPECT_NE(
      text.find("all with reduce_bucket_size=500\ntrial 5, the best: zero_stage=3 micro_batch=4 overlap_comm=true\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("zero_stage=2 micro_batch=2"), std::string::npos) << text;
  expect_within(text, 80);
}

TEST(TrialText, FitsForLongAndWideNamesAndValues) {
  const std::string wide = "\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1";
  const std::string name(70, 'n');
  const std::string nasty = "\x1b[2J\u202e" + std::string(10'000, 'x');
  const Json json = {{"space", {{name, {1, 2, 3}}, {wide, {wide + "1", nasty}}}},
                     {"baseline", nullptr},
                     {"objective", {{"metric", "speed"}, {"direction", "maximize"}}},
                     {"runner", {{"kind", "none"}}}};
  const session::Session session = session::read_session(json, "session", ".");
  search::History history;
  for (const std::int64_t a : {1, 2, 3}) {
    trial::Measured measured;
    measured.metrics = {{"speed", 1.5 * static_cast<double>(a)}};
    history.push_back(
        trial_record(static_cast<int>(a) - 1, {{name, a}, {wide, a == 2 ? nasty : wide + "1"}}, measured));
  }
  for (const int columns : {60, 80, 120}) {
    const std::string text = text_of(session, history, columns, std::nullopt);
    expect_within(text, columns);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
}

TEST(TrialText, ShowsTokensASecondAndMfuWhereTheGpuIsNamed) {
  const session::Session session =
      bench_session(R"({"gpus_per_node": 2, "gpu": "a100-80gb"})", R"(, "precision": "bf16")");
  const search::History history = all_outcomes();
  const report::RunView run = run_view(session, history, recommendation());
  const report::Table table = result::trial_table(run);
  const Json rows = report::rows_json(table);
  // Trial 5: 125 samples/s of 4 tokens on 2 GPUs; the step takes 8 / 125 s.
  EXPECT_NEAR(rows[5]["tokens_per_s_per_gpu"].get<double>(), 250.0, 1e-9);
  // 6 (12 h^2 + V h) + 12 s h FLOPs per token with h = V = 16 and s = 4, of 312 TFLOP/s.
  const double flops = 6.0 * (12.0 * 256.0 + 256.0) + 12.0 * 4.0 * 16.0;
  EXPECT_NEAR(rows[5]["mfu"].get<double>(), 250.0 * flops / 312e12, 1e-18);
  EXPECT_TRUE(rows[1]["mfu"].is_null()) << "it ran out of memory";
  EXPECT_NE(result::trial_text(run, table, 80).find("MFU: model FLOPs as in PaLM (Chowdhery et al. 2022)"),
            std::string::npos);
  expect_within(result::trial_text(run, table, 80), 80);
}

}  // namespace krigtune::trial_text_test
