#include "programs/krigtune/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "programs/krigtune/session_state.h"
#include "result/report_fixtures.h"

namespace krigtune::progress_test {

class ProgressTest : public testing::Test {
 protected:
  cli::Console console(bool terminal) {
    cli::Console made{out_, err_, clock_, "/nowhere/krigtune"};
    made.err_is_terminal = terminal;
    made.width = 160;
    return made;
  }
  std::ostringstream out_;
  std::ostringstream err_;
  ManualClock clock_;
};

TEST_F(ProgressTest, RewritesOneLineOnATerminalAndEndsItWithALineBreak) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  const cli::Console terminal = console(true);
  {
    cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
    cli::Progress progress(session, clock_, log);
    search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")};
    progress.resumed({});
    progress.trial_begins(history[0], history);
    progress.trial_ended(history[0], history);
    history.push_back(trial_record(1, configuration(3, 2, false), measured_samples(125.0)));
    progress.trial_ended(history[1], history);
    history.push_back(trial_record(2, configuration(3, 4, false), std::nullopt));
    progress.trial_begins(history[2], history);
    clock_.advance_s(3.0);
    progress.waiting(history[2]);
  }
  const std::string text = err_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
  const std::string last = text.substr(text.rfind("\r\033[K"));
  EXPECT_EQ(last,
            "\r\033[Ktrial 3/30  3 s  ETA 1 min 17 s  best 125 samples/s 1.25x (emulated network)  "
            "zero_stage=3 micro_batch=4 reduce_bucket_size=500 overlap_comm=false\n");
}

// The fixture's trials take 2.75 s, suggestions included; the budget is 30 of them.
TEST(SecondsLeft, ArePacedByTheTrialsOfTuneAloneAsTheBudgetIs) {
  session::Session session = bench_session();
  search::History history = {trial_record(0, configuration(2, 2, false), measured_samples(100.0), "baseline")};
  EXPECT_DOUBLE_EQ(cli::seconds_left(session, history, 1).value(), 29 * 2.75);
  journal::Trial by_hand = trial_record(1, configuration(3, 2, false), measured_samples(125.0));
  by_hand.proposal.asker = journal::Asker::kHand;
  by_hand.wall_s = 86400.0;  // told a day later
  history.push_back(by_hand);
  EXPECT_DOUBLE_EQ(run::seconds_spent(history), 2.75 + 0.25) << "its suggestion was ours";
  EXPECT_DOUBLE_EQ(cli::seconds_left(session, history, 1).value(), 28 * 3.0);
  session.budget.hours = 10.0 / 3600.0;
  EXPECT_LE(std::abs(cli::seconds_left(session, history, 1).value() - 7.0), 1e-9);
  EXPECT_FALSE(cli::seconds_left(session, {by_hand}, 1));
}

TEST_F(ProgressTest, LabelsEveryLineOfAnEmulatedNetworkWhenPiped) {
  const session::Session session = bench_session(R"({"gpus_per_node": 2, "emulate_network": "eth-25"})");
  const cli::Console piped = console(false);
  cli::Log log(piped, cli::Verbosity::kNormal, std::nullopt);
  cli::Progress progress(session, clock_, log);
  const search::History history = all_outcomes();
  progress.trial_ended(history[0], history);
  EXPECT_NE(err_.str().find("100 samples/s  1.00x  best 1.25x (emulated network)\n"), std::string::npos) << err_.str();
}

TEST_F(ProgressTest, SaysWhatAFailedTrialSaidAtLast) {
  const session::Session session = bench_session();
  const cli::Console terminal = console(true);
  cli::Log log(terminal, cli::Verbosity::kNormal, std::nullopt);
  cli::Progress progress(session, clock_, log);
  const search::History history = {trial_record(0, configuration(2, 2, false),
                                                trial::Failed{trial::FailureReason::kCrash, 1, "one\nNaN in loss\n"})};
  progress.trial_ended(history[0], history);
  EXPECT_NE(err_.str().find("failed (crash): NaN in loss\n"), std::string::npos) << err_.str();
}

}  // namespace krigtune::progress_test
