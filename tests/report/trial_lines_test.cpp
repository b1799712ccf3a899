#include "report/trial_lines.h"

#include <gtest/gtest.h>

#include "core/columns.h"
#include "report/labels.h"
#include "result/report_fixtures.h"

namespace krigtune::trial_lines_test {

TEST(TrialLines, SayWhatDiffersFromTheBestNotTheWholeConfiguration) {
  const session::Session session = bench_session();
  const report::TrialLines lines(session, 80);
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0, 1.5), "baseline")};
  const search::Recommendation first = best_of(history[0], 100.0, 1.0);
  EXPECT_EQ(lines.header(), (std::vector<std::string>{"trial             throughput    gain     memory  changes from "
                                                      "the best (*)"}));
  EXPECT_EQ(lines.line(history[0], history, first, std::nullopt),
            "    0*    100 ±2.9 samples/s   1.00x  120.6 KiB  baseline");
  history.push_back(trial_record(1, configuration(3, 2, true), measured_samples(125.0)));
  const search::Recommendation second = best_of(history[1], 125.0, 1.25);
  EXPECT_EQ(lines.line(history[1], history, second, first),
            "    1*         125 samples/s   1.25x  120.6 KiB  zero_stage=3 overlap_comm=true");
  history.push_back(trial_record(2, configuration(3, 4, true), trial::OutOfMemory{std::nullopt, false}));
  EXPECT_EQ(lines.line(history[2], history, second, second),
            "    2                    OOM                     micro_batch=4");
  history.push_back(trial_record(3, configuration(1, 2, true), trial::Bounded{50.0}));
  EXPECT_EQ(lines.line(history[3], history, second, second),
            "    3        <= 50 samples/s                     zero_stage=1");
  history.push_back(trial_record(4, configuration(3, 2, true), measured_samples(124.0)));
  history[4].proposal.repeat_of = 1;
  EXPECT_NE(lines.line(history[4], history, second, second).find("  trial 1 again"), std::string::npos);
}

TEST(TrialLines, MarkAMeasurementAboveTheBestThatTheModelDoesNotBelieve) {
  const session::Session session = bench_session();
  const search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline"),
                                   trial_record(1, configuration(3, 2, true), measured_samples(125.0)),
                                   trial_record(2, configuration(3, 4, true), measured_samples(126.0))};
  const search::Recommendation best = best_of(history[1], 125.0, 1.25);
  EXPECT_EQ(report::TrialLines(session, 80).line(history[2], history, best, best).substr(0, 6), "    2^");
  EXPECT_EQ(report::raw_best_sentence(session, answer::answer_of(session, history, best)),
            "trial 2 measured the largest value, 126 samples/s; by all measurements together the model expects trial 1 "
            "to be better");
  const search::Recommendation same = best_of(history[2], 126.0, 1.26);
  EXPECT_EQ(report::raw_best_sentence(session, answer::answer_of(session, history, same)), "");
}

TEST(TrialLines, StayWithinTheTerminalWhateverNamesAndValuesAre) {
  const std::string long_name(70, 'n');
  const std::string wide = "\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1\u7ffb\u8bd1";
  const std::string nasty = "<script>\x1b[31m\u202e" + std::string(10'000, 'x');
  const Json space = {{long_name, {1, 2, 3}}, {wide, {wide + "1", wide + "2"}}, {"plain", {"a", nasty}}};
  const Json json = {{"space", space},
                     {"baseline", nullptr},
                     {"objective", {{"metric", "speed"}, {"direction", "maximize"}}},
                     {"runner", {{"kind", "none"}}}};
  const session::Session session = session::read_session(json, "session", ".");
  search::History history;
  int number = 0;
  for (const std::int64_t a : {1, 2}) {
    for (const std::string& b : {wide + "1", wide + "2"}) {
      for (const std::string& c : {std::string("a"), nasty}) {
        trial::Measured measured;
        measured.metrics = {{"speed", 1e9 * (number + 1)}};
        measured.value_sem = 123.0;
        measured.peak_memory = Bytes{std::int64_t{1} << 40};
        history.push_back(trial_record(number++, {{long_name, a}, {wide, b}, {"plain", c}}, measured));
      }
    }
  }
  const search::Recommendation best = best_of(history[3], 1.0, 1.0);
  for (const int columns : {20, 40, 60, 80, 120, 200}) {
    const report::TrialLines lines(session, columns);
    for (const std::string& line : lines.header()) EXPECT_LE(columns_of(line), columns);
    for (const journal::Trial& trial : history) {
      for (const auto& known : {std::optional(best), std::optional<search::Recommendation>()}) {
        const std::string line = lines.line(trial, history, known, known);
        EXPECT_LE(columns_of(line), columns) << line;
        EXPECT_EQ(line.find('\x1b'), std::string::npos);
        EXPECT_EQ(line, visible(line)) << "nothing moves the cursor or turns the writing";
      }
    }
  }
}

TEST(Fitted, ShowsAsManyAsFitAndCountsTheRest) {
  const std::vector<std::string> items = {"zero_stage=1", "micro_batch=4", "overlap_comm=true"};
  EXPECT_EQ(report::fitted(items, 80), "zero_stage=1 micro_batch=4 overlap_comm=true");
  EXPECT_EQ(report::fitted(items, 30), "zero_stage=1 micro_batch=4 +1");
  EXPECT_EQ(report::fitted(items, 20), "zero_stage=1 +2");
  EXPECT_EQ(report::fitted({"activation_checkpointing=full"}, 20), "activation_c...=full") << "the value is kept";
  EXPECT_EQ(report::fitted({}, 20), "");
  for (int columns = 0; columns < 60; ++columns) EXPECT_LE(columns_of(report::fitted(items, columns)), columns);
}

TEST(Labels, GiveAValueItsIntervalInItsOwnUnit) {
  session::Session session = bench_session();
  EXPECT_EQ(report::value_with_half_width(session, 280.7, 2.123), "280.7 ±2.1 samples/s");
  EXPECT_EQ(report::value_with_half_width(session, 12345.6, 123.4), "12346 ±123 samples/s");
  session.objective = {"latency", false, "step_time_s"};
  EXPECT_EQ(report::value_with_half_width(session, 0.0482, 0.0003), "48.2 ±0.3 ms");
  EXPECT_EQ(report::value_with_half_width(session, 77.0, 0.5), "1 min 17 s ±500 ms");
  EXPECT_EQ(report::interval_text(session, 0.0482, 0.05), "48.2 to 50.0 ms");
  EXPECT_EQ(report::interval_text(session, 0.9, 1.1), "900 ms to 1.10 s");
  EXPECT_EQ(report::interval_text(session, 77.0, 137.0), "1 min 17 s to 2 min 17 s");
  EXPECT_EQ(report::interval_text(bench_session(), 306.6, 326.4), "306.6 to 326.4 samples/s");
  EXPECT_EQ(report::short_value_text(std::int64_t{400'000'000}), "4e8");
  EXPECT_EQ(report::short_value_text(std::int64_t{316'228}), "316228");
  EXPECT_EQ(report::short_value_text(std::int64_t{4096}), "4096");
}

}  // namespace krigtune::trial_lines_test
