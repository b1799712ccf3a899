// The summary of tune, best.json, summary.md, the page, watch and the library tell the same result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "cli/cli_fixtures.h"
#include "core/csv.h"
#include "core/json.h"
#include "krigtune/tuning.h"

namespace krigtune::answer_told_test {

/// A program with eight micro-batches, whose speed is ten times the micro-batch. Seven and eight do not fit, and five
/// crashes.
class ToldAnswer : public testing::Test {
 protected:
  void SetUp() override {
    directory_.write_program("own", R"(
      mb=$(sed -n 's/.*"micro_batch": *\([0-9]*\).*/\1/p' "$1")
      if [ "$mb" -ge 7 ]; then echo '{"status": "oom"}' > "$2"; exit 1; fi
      if [ "$mb" -eq 5 ]; then echo "boom"; exit 3; fi
      echo "{\"speed\": $((10 * mb))}" > "$2"
    )");
  }
  std::string session(const std::string& baseline) const {
    return directory_
        .write("own.json", R"({"space": {"micro_batch": {"min": 1, "max": 8}, "threads": [1, 2]},
      "baseline": )" + baseline +
                               R"(, "objective": {"metric": "speed", "direction": "maximize"},
      "cluster": {"gpus_per_node": 2}, "budget": {"trials": 9},
      "runner": {"kind": "command", "argv": ["./own", "{config}", "{result}"], "timeout_s": 60}})")
        .string();
  }
  std::string run() const { return (directory_ / "run").string(); }
  Said say(const std::vector<std::string>& arguments, const Clock& clock) const {
    return run_krigtune(arguments, "/nowhere/krigtune", clock);
  }
  void tell(int trial, const std::vector<std::string>& result) const {
    std::vector<std::string> arguments = {"tell", run(), "--trial", std::to_string(trial)};
    arguments.insert(arguments.end(), result.begin(), result.end());
    EXPECT_EQ(say(arguments, by_hand_).code, 0) << trial;
  }
  // A worker of Optuna's ends a trial without having chosen its parameters.
  void pass_over(int trial) const {
    std::ofstream journal(directory_ / "run/journal.log", std::ios::app);
    journal << R"({"op_code": 4, "worker_id": "o", "study_id": 0, "datetime_start": "2026-08-23T10:00:00.000000"})"
            << '\n'
            << fmt::format(R"({{"op_code": 6, "worker_id": "o", "trial_id": {}, "state": 3, "values": null, )"
                           R"("datetime_complete": "2026-08-23T10:00:01.000000"}})",
                           trial)
            << '\n';
  }
  // The baseline is lost with its node after two hours, another trial is interrupted after these two hours, one fails,
  // and one is passed over. Then tune runs the rest.
  void run_with_losses(const std::string& baseline) {
    session_ = session(baseline);
    ASSERT_EQ(say({"ask", run(), "--session", session_, "--count", "3"}, by_hand_).code, 0);
    by_hand_.advance_s(7200.0);
    tell(0, {"--status", "failed", "--reason", "environment"});
    tell(1, {"--status", "failed", "--reason", "interrupted"});
    tell(2, {"--status", "failed", "--reason", "timeout"});
    pass_over(3);
    const Said ran = say({"tune", session_, "--out", run(), "--full-budget"}, clock_);
    ASSERT_EQ(ran.code, 0) << ran.err;
    summary_ = ran.out;
    document_ = parse_json(say({"tune", session_, "--out", run(), "--full-budget", "--json"}, clock_).out, "tune");
    best_ = load_json(directory_ / "run/best.json");
    ASSERT_EQ(say({"export", run(), "--format", "markdown"}, clock_).code, 0);
    markdown_ = read_text(directory_ / "run/export/summary.md");
    ASSERT_EQ(say({"report", run()}, clock_).code, 0);
    page_ = read_text(directory_ / "run/report.html");
    watched_ = say({"watch", run(), "--once"}, clock_).out;
    watched_document_ = parse_json(say({"watch", run(), "--json"}, clock_).out, "watch");
  }
  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text.substr(0, 4000);
  }
  static std::string between(const std::string& text, const std::string& before, const std::string& after) {
    const std::size_t begin = text.find(before);
    if (begin == std::string::npos) return "nothing after " + before;
    return text.substr(begin + before.size(), text.find(after, begin + before.size()) - begin - before.size());
  }

  ManualClock by_hand_;
  const SystemClock clock_;
  const TemporaryDirectory directory_;
  std::string session_, summary_, markdown_, page_, watched_;
  Json document_, best_, watched_document_;
};

TEST_F(ToldAnswer, CountsTheSameTrialsAfterALostNodeAnInterruptionAndATrialThatIsPassedOver) {
  run_with_losses(R"({"micro_batch": 2, "threads": 1})");
  const Json counts = document_["trials"];
  std::string by_status;
  int closed = 0;
  for (const auto& [status, count] : counts.items()) {
    closed += count.get<int>();
    if (count != 0) by_status += fmt::format("{}{} {}", by_status.empty() ? "" : ", ", count.get<int>(), status);
  }
  const CsvTable rows = parse_csv(read_text(directory_ / "run/trials.csv"), "trials");
  EXPECT_EQ(closed, static_cast<int>(rows.rows.size()) - 3) << "three rows of trials.csv do not count";
  EXPECT_EQ(closed, 9);
  EXPECT_GE(counts["failed"], 1) << "the time limit, which counts";
  expect_in(summary_, fmt::format("\ntrials     {}: {}\n", closed, by_status));
  EXPECT_EQ(best_["trials"], counts);
  expect_in(markdown_, fmt::format("\n{} trials by the strategy bayes: {};", closed, by_status));
  expect_in(page_, fmt::format("<p>{} trials. ", closed));
  EXPECT_EQ(watched_document_["closed"], closed);
  Json by_class = {{"ok", 0}, {"oom", 0}, {"failed", 0}, {"bounded", 0}};
  for (const auto& [name, count] : watched_document_["by_class"].items()) {
    Json& sum = by_class[name.substr(0, name.find(' '))];
    sum = sum.get<int>() + count.get<int>();
  }
  EXPECT_EQ(by_class, counts);
  const std::string classes = between(watched_, "closed   ", "\n");
  expect_in(page_, fmt::format("Trials in their order. {} trials: {}. ", closed, classes));
}

TEST_F(ToldAnswer, TakesTheSameHoursAsSpent) {
  run_with_losses(R"({"micro_batch": 2, "threads": 1})");
  const std::string hours = between(markdown_, "; ", " rank-hours spent in them.");
  expect_in(page_, fmt::format("The trials took {} rank-hours on 2 ranks.", hours.substr(hours.rfind(' ') + 1)));
  EXPECT_EQ(hours.substr(hours.rfind(' ') + 1), "12") << "three trials by hand of two hours on two ranks";
}

TEST_F(ToldAnswer, NamesTheSameBestAndTheSameReference) {
  run_with_losses(R"({"micro_batch": 2, "threads": 1})");
  const Json& best = document_["best"];
  ASSERT_GE(best["reference_trial"], 4) << "the baseline was measured again after its node was lost";
  const std::string gain = fmt::format("{:.2f}", best["gain"].get<double>());
  const std::string reference = fmt::format("trial {}", best["reference_trial"].get<int>());
  expect_in(summary_, fmt::format("best       trial {}: ", best["trial"].get<int>()));
  expect_in(summary_, fmt::format(", {}x {} (20)\n", gain, reference));
  EXPECT_EQ(best_["trial"], best["trial"]);
  EXPECT_EQ(best_["reference"]["trial"], best["reference_trial"]);
  EXPECT_EQ(best_["gain"], best["gain"]);
  expect_in(markdown_, fmt::format("**{}x your own configuration**", gain));
  expect_in(page_, fmt::format("is {} times better than yours ({})", gain, reference));
  expect_in(page_, fmt::format("yours ({})</li>", reference));
  expect_in(watched_, fmt::format(", {}x {} (20)\n", gain, reference));
  EXPECT_EQ(watched_document_["best"]["gain"], best["gain"]);
  const std::optional<Best> library = Tuning(session_, run()).best();
  ASSERT_TRUE(library);
  EXPECT_EQ(library->trial, best["trial"].get<int>());
  EXPECT_EQ(library->gain, best["gain"].get<double>());
}

TEST_F(ToldAnswer, ComparesWithTheFirstSuccessWhereTheBaselineDoesNotRun) {
  run_with_losses(R"({"micro_batch": 8, "threads": 1})");
  const std::string reference = fmt::format("trial {}", document_["best"]["reference_trial"].get<int>());
  const std::string gain = fmt::format("{:.2f}", document_["best"]["gain"].get<double>());
  expect_in(summary_, "the baseline failed; gains are relative to " + reference);
  expect_in(markdown_, fmt::format("**{}x {}**", gain, reference));
  EXPECT_EQ(page_.find("yours (trial"), std::string::npos);
  // The interval is that of the gain over this trial, and not over the baseline, which nobody measured.
  const std::string interval = between(summary_, gain + "x " + reference, "           runner-up");
  const double low = std::stod(between(interval, "model of all trials: ", "x"));
  EXPECT_LE(std::abs(low / document_["best"]["gain"].get<double>() - 1.0), 0.2) << summary_;
}

}  // namespace krigtune::answer_told_test
