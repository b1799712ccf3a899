#include "programs/krigtune/progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/columns.h"
#include "programs/krigtune/session_state.h"
#include "result/report_fixtures.h"
#include "run/loop.h"
#include "trial/temporary_directory.h"

namespace krigtune::progress_test {

class ProgressTest : public testing::Test {
 protected:
  cli::Console console(bool terminal, int width) {
    cli::Console made{out_, err_, clock_, "/nowhere/krigtune"};
    made.err_is_terminal = terminal;
    made.width = width;
    return made;
  }
  /// Returns the lines above a terminal's last line, without those that were removed.
  std::vector<std::string> kept_lines() const {
    std::vector<std::string> kept;
    std::istringstream lines(err_.str());
    for (std::string line; std::getline(lines, line);) {
      const std::size_t cleared = line.rfind("\r\033[K");
      if (!lines.eof()) kept.push_back(cleared == std::string::npos ? line : line.substr(cleared + 4));
    }
    return kept;
  }
  std::optional<search::Recommendation> best_;
  std::ostringstream out_;
  std::ostringstream err_;
  ManualClock clock_;
};

// Of measured.json, whatever a program wrote there instead.
TEST_F(ProgressTest, SaysOnceWhatTheMeasurementOfATrialDoubts) {
  const session::Session session = bench_session();
  const TemporaryDirectory directory;
  search::History history;
  const cli::Console terminal = console(false, 120);
  cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
  cli::Progress progress(
      session, clock_, log, [&] { return best_; }, 1, directory.path());
  for (const char* text :
       {R"({"doubts": ["'value' grows by 1 with each step\u001b[2J"]})",
        R"({"doubts": ["'value' grows by 2 with each step\u001b[2J"]})", R"({"doubts": [7]})", "nonsense"}) {
    const int number = static_cast<int>(history.size());
    history.push_back(trial_record(number, configuration(2, 2, false), measured_samples(100.0)));
    const auto folder = directory.path() / "trials" / run::trial_folder(history.back());
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "measured.json") << text;
    progress.trial_ended(history.back(), history);
  }
  const std::string said = err_.str();
  EXPECT_NE(said.find("warning: trial 0: 'value' grows by 1 with each step"), std::string::npos) << said;
  EXPECT_EQ(said.find("grows"), said.rfind("grows")) << said;
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
}

/// said_after() returns the lines about the job, each with the number of the trial that it followed. `told`: after each
/// trial, the probability that the session is right about the model.
class JobLines : public ProgressTest {
 protected:
  std::vector<std::string> said_after(const std::vector<double>& told, bool resumed = false) {
    const session::Session session = bench_session();
    const cli::Console terminal = console(false, 200);
    cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
    cli::Progress progress(session, clock_, log, [&] { return best_; });
    search::History history;
    std::vector<std::string> said;
    for (const double probability : told) {
      const int number = static_cast<int>(history.size());
      history.push_back(trial_record(number, configuration(2, 2, false), measured_samples(100.0)));
      best_ = best_of(history.front(), 100.0, 1.0);
      best_->job = search::JobSummary{
          true,
          probability,
          0.03,
          {{search::JobAspect::kParameters, {{4e9, "", 0.97 - probability}, {8e9, "", probability}}}}};
      err_.str("");
      if (resumed && number == 0) {
        progress.resumed(history);
      } else {
        progress.trial_ended(history.back(), history);
      }
      for (const std::string& line : kept_lines()) {
        if (line.find("the job: ") != std::string::npos) said.push_back(fmt::format("{}{}", number, line));
      }
    }
    return said;
  }

  static constexpr const char* kContradicted =
      "       the job: the trials contradict the session: they look like a model of 4.0 billion parameters";
  static constexpr const char* kNoLonger = "       the job: the trials no longer contradict the session";
};

TEST_F(JobLines, SayAGuessOnceWhenTwoTrialsInARowLeadToIt) {
  EXPECT_EQ(said_after({0.9, 0.01, 0.02, 0.01, 0.9, 0.8, 0.9}),
            (std::vector<std::string>{std::string("2") + kContradicted, std::string("5") + kNoLonger}));
}

TEST_F(JobLines, AreNotPrintedWhileTheGuessChangesWithEachTrial) {
  EXPECT_EQ(said_after({0.01, 0.9, 0.01, 0.9, 0.01, 0.9, 0.9}), std::vector<std::string>{});
  // Once it was said, one trial that says something else does not bring it up again.
  EXPECT_EQ(said_after({0.01, 0.02, 0.9, 0.01, 0.02}), std::vector<std::string>{std::string("1") + kContradicted});
}

TEST_F(JobLines, DoNotRepeatWhatASessionSaidBeforeItWasResumed) {
  EXPECT_EQ(said_after({0.01, 0.02, 0.01, 0.9, 0.9}, true), std::vector<std::string>{std::string("4") + kNoLonger});
}

TEST_F(ProgressTest, KeepsALineForEachTrialAndRewritesOneStatusLineBelowThem) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  const cli::Console terminal = console(true, 80);
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")};
  {
    cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
    cli::Progress progress(session, clock_, log, [&] { return best_; });
    progress.resumed({});
    progress.trial_begins(history[0], history);
    best_ = best_of(history[0], 100.0, 1.0);
    progress.trial_ended(history[0], history);
    history.push_back(trial_record(1, configuration(3, 2, false), measured_samples(125.0)));
    best_ = best_of(history[1], 125.0, 1.25);
    progress.trial_ended(history[1], history);
    history.push_back(trial_record(2, configuration(3, 4, false), std::nullopt));
    progress.trial_begins(history[2], history);
    clock_.advance_s(3.0);
    progress.waiting(history[2]);
  }
  EXPECT_EQ(kept_lines(),
            (std::vector<std::string>{"trial 0, the baseline: zero_stage=2 micro_batch=2 reduce_bucket_size=500000000",
                                      "  overlap_comm=false",
                                      "trial  throughput (emulated)    gain     memory  changes from the best (*)",
                                      "    0*         100 samples/s   1.00x  120.6 KiB  baseline",
                                      "    1*         125 samples/s   1.25x  120.6 KiB  zero_stage=3"}));
  const std::string text = err_.str();
  EXPECT_TRUE(text.ends_with("\r\033[K")) << "what the live line said holds no longer: " << text;
  const std::string shown = text.substr(0, text.size() - std::string("\r\033[K").size());
  EXPECT_EQ(shown.substr(shown.rfind("\033[K") + 3),
            "trial 2 (3 s) | 2/30 done | best 1: 125 samples/s 1.25x | 0:03 | emulated");
}

TEST_F(ProgressTest, TakesTheTimeThatRunsOffTheTimeThatIsLeft) {
  const session::Session session = bench_session();
  const cli::Console terminal = console(true, 200);
  cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
  cli::Progress progress(session, clock_, log, [&] { return best_; });
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")};
  progress.trial_ended(history[0], history);
  history.push_back(trial_record(1, configuration(3, 2, false), std::nullopt));
  progress.trial_begins(history[1], history);
  const auto last = [&] { return err_.str().substr(err_.str().rfind("\033[K") + 3); };
  EXPECT_NE(last().find("| about 1 min 19 s left"), std::string::npos) << last();
  clock_.advance_s(40.0);
  progress.waiting(history[1]);
  EXPECT_NE(last().find("| about 39 s left"), std::string::npos) << last();
  clock_.advance_s(60.0);
  progress.waiting(history[1]);
  EXPECT_EQ(last().find("left"), std::string::npos) << "nobody knows any more: " << last();
  const std::string before = err_.str();
  progress.waiting(history[1]);
  EXPECT_EQ(err_.str(), before) << "the same is not written twice";
}

TEST_F(ProgressTest, FitsTheTerminalWhateverItsWidth) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  for (const int width : {20, 40, 80, 132}) {
    err_.str("");
    const cli::Console terminal = console(true, width);
    cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
    cli::Progress progress(
        session, clock_, log, [&] { return best_; }, 3);
    const search::History history = all_outcomes();
    best_ = recommendation();
    for (int i : {6, 4, 3}) progress.trial_begins(history[static_cast<std::size_t>(i)], history);
    for (const journal::Trial& trial : history) {
      if (trial.outcome) progress.trial_ended(trial, history);
    }
    clock_.advance_s(1e5);
    progress.waiting(history[6]);
    std::string text = err_.str();
    std::replace(text.begin(), text.end(), '\r', '\n');
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("\033[K", 0) == 0) line.erase(0, 3);
      EXPECT_LE(columns_of(line), width) << line;
    }
  }
}

TEST_F(ProgressTest, ExplainsAMarkWhereItIsFirstSeen) {
  const session::Session session = bench_session();
  const cli::Console narrow = console(true, 80);
  cli::Log log(narrow, cli::Verbosity::kNormal, std::nullopt);
  cli::Progress progress(session, clock_, log, [&] { return best_; });
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")};
  best_ = best_of(history[0], 100.0, 1.0);
  progress.trial_ended(history[0], history);
  for (const int number : {1, 2}) {
    trial::Bounded bounded;
    bounded.at_best = 50.0;
    history.push_back(trial_record(number, configuration(3, 4 * number, true), bounded));
    progress.trial_ended(history.back(), history);
  }
  const std::vector<std::string> lines = kept_lines();
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[2], "    1        <= 50 samples/s                     zero_stage=3 micro_batch=4 +1");
  EXPECT_EQ(lines[3], "       +1: so many more parameters differ; krigtune results DIR --wide shows all");
  EXPECT_EQ(lines[4], "       <= a value: ended early, because it was clearly worse than the best");
  EXPECT_EQ(lines[5], "    2        <= 50 samples/s                     zero_stage=3 micro_batch=8 +1");
}

TEST_F(ProgressTest, CountsFailuresByClassAndSaysTheSameTroubleOnce) {
  const session::Session session = bench_session();
  const cli::Console terminal = console(true, 120);
  cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
  cli::Progress progress(session, clock_, log, [&] { return best_; });
  search::History history;
  for (int number = 0; number < 3; ++number) {
    history.push_back(trial_record(number, configuration(number, 2, false),
                                   trial::Failed{trial::FailureReason::kCrash, 1, "one\nNaN in loss\n"}));
    progress.trial_ended(history.back(), history);
  }
  history.push_back(trial_record(3, configuration(3, 4, false), trial::OutOfMemory{}));
  progress.trial_ended(history.back(), history);
  const std::string text = err_.str();
  EXPECT_EQ(text.find("NaN in loss"), text.rfind("NaN in loss")) << text;
  EXPECT_NE(text.find("       NaN in loss\n"), std::string::npos) << text;
  EXPECT_NE(text.find("choosing the next trial | 4/30 done | 3 failed (crash), 1 oom | 0:00"), std::string::npos)
      << text;
}

TEST(StatusLine, TellsTheTimeSinceTheBeginningAsAClockDoes) {
  EXPECT_EQ(cli::elapsed_text(0.0), "0:00");
  EXPECT_EQ(cli::elapsed_text(86.9), "1:26");
  EXPECT_EQ(cli::elapsed_text(7406.0), "2:03:26");
}

TEST(StatusLine, LeavesOutWholePartsNotTheirEnds) {
  const std::vector<std::string> parts = {"trial 7 (12 s)", "7 of 24 done", "", "best 1: 280.7 samples/s 7.86x",
                                          "1 oom"};
  EXPECT_EQ(cli::status_line(parts, 80), "trial 7 (12 s) | 7 of 24 done | best 1: 280.7 samples/s 7.86x | 1 oom");
  EXPECT_EQ(cli::status_line(parts, 40), "trial 7 (12 s) | 7 of 24 done | 1 oom");
  EXPECT_EQ(cli::status_line(parts, 10), "trial 7...");
}

// The fixture's trials take 2.75 s, including the suggestions; the budget has 30 of them.
TEST(SecondsLeft, ArePacedByTheTrialsOfTuneAloneAsTheBudgetIs) {
  session::Session session = bench_session();
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")};
  EXPECT_DOUBLE_EQ(cli::seconds_left(session, history, 1).value(), 29 * 2.75);
  journal::Trial by_hand = trial_record(1, configuration(3, 2, false), measured_samples(125.0));
  by_hand.proposal.asker = journal::Asker::kHand;
  by_hand.wall_s = 86400.0;  // reported a day later
  history.push_back(by_hand);
  EXPECT_DOUBLE_EQ(run::seconds_spent(history), 2.75 + 0.25) << "its suggestion was ours";
  EXPECT_DOUBLE_EQ(cli::seconds_left(session, history, 1).value(), 28 * 3.0);
  session.budget.hours = 10.0 / 3600.0;
  EXPECT_LE(std::abs(cli::seconds_left(session, history, 1).value() - 7.0), 1e-9);
  EXPECT_FALSE(cli::seconds_left(session, {by_hand}, 1));
}

TEST_F(ProgressTest, SaysTheTitlesOnceWithTheEmulatedNetworkWhenPiped) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  const cli::Console piped = console(false, 80);
  cli::Log log(piped, cli::Verbosity::kNormal, std::nullopt);
  cli::Progress progress(session, clock_, log, [&] { return best_; });
  const search::History history = all_outcomes();
  best_ = recommendation();
  progress.trial_ended(history[0], history);
  progress.trial_ended(history[5], history);
  EXPECT_EQ(err_.str(),
            "trial  throughput (emulated)    gain     memory  changes from the best (*)\n"
            "    0     100 ±2.9 samples/s   1.00x  120.6 KiB  baseline\n"
            "    5*    125 ±2.9 samples/s   1.25x  120.6 KiB  the best\n");
}

}  // namespace krigtune::progress_test
