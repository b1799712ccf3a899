// krigtune repair, and what tune prints if a journal was lost.
#include <gtest/gtest.h>

#include "cli/cli_fixtures.h"
#include "core/json.h"
#include "journal/journal.h"

namespace krigtune::repair_test {

class RepairTest : public ::testing::Test {
 protected:
  RepairTest() { EXPECT_EQ(tune().code, 0); }

  Said tune() const { return run_krigtune({"tune", session_.string(), "--out", run_.string(), "--quiet"}); }
  Said repair() const { return run_krigtune({"repair", run_.string()}); }
  Json looked() const { return parse_json(run_krigtune({"repair", run_.string(), "--look", "--json"}).out, "repair"); }
  std::string csv() const {
    return run_krigtune({"results", run_.string(), "--format", "csv", "--columns", "all"}).out;
  }

  TemporaryDirectory directory_;
  std::filesystem::path session_ = replay_session(directory_);
  std::filesystem::path run_ = directory_ / "run";
  std::filesystem::path journal_ = run_ / "journal.log";
};

TEST_F(RepairTest, FindsNothingWrongWithAWholeJournal) {
  const std::string before = read_text(journal_);
  const Said said = repair();
  EXPECT_EQ(said.code, 0);
  EXPECT_NE(said.err.find("nothing is wrong with its journal"), std::string::npos) << said.err;
  EXPECT_EQ(read_text(journal_), before);
}

TEST_F(RepairTest, MakesALostJournalOfTheTableOfTrials) {
  const std::string before = run_krigtune({"results", run_.string(), "--format", "csv"}).out;
  for (const bool is_empty : {false, true}) {
    std::filesystem::remove(journal_);
    if (is_empty) directory_.write("run/journal.log", "");
    const Said refused = tune();
    EXPECT_EQ(refused.code, 2);
    EXPECT_NE(refused.err.find("krigtune repair " + run_.string()), std::string::npos) << refused.err;
    const Said said = repair();
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_NE(said.err.find("8 of them from trials.csv"), std::string::npos) << said.err;
    EXPECT_EQ(run_krigtune({"results", run_.string(), "--format", "csv"}).out, before);
    EXPECT_EQ(tune().code, 0) << "the same command goes on";
  }
}

// Any line except the first, which identifies the journal. The numbers stay, and trials.csv has what was lost.
TEST_F(RepairTest, RestoresWhatADamagedLineHeld) {
  const std::string whole = read_text(journal_);
  const std::vector<journal::Trial> before = journal::read_journal(journal_);
  std::size_t begin = 0;
  for (std::size_t end = whole.find('\n'); end != std::string::npos; end = whole.find('\n', begin)) {
    std::string damaged = whole;
    damaged[end - 1] = '#';
    directory_.write("run/journal.log", damaged);
    begin = end + 1;
    ASSERT_EQ(looked()["repaired"], false);
    ASSERT_EQ(read_text(journal_), damaged);
    ASSERT_EQ(repair().code, 0);
    std::vector<std::string> complaints;
    const std::vector<journal::Trial> after = journal::read_journal(journal_, &complaints);
    EXPECT_TRUE(complaints.empty());
    ASSERT_EQ(after.size(), before.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(after[i].proposal.configuration.text(), before[i].proposal.configuration.text());
      EXPECT_EQ(after[i].outcome.value().index(), before[i].outcome.value().index());
    }
  }
}

TEST_F(RepairTest, ClosesTrialsOfATuneThatIsGone) {
  std::string text = read_text(journal_);
  const std::size_t last =
      text.rfind('\n', text.size() - 2) + 1;  // the beginning of the last line, which ends the last trial
  text.resize(last);
  directory_.write("run/journal.log", text);
  EXPECT_NE(repair().err.find("trial 7 was begun by a tune that is gone"), std::string::npos);
  const std::vector<journal::Trial> after = journal::read_journal(journal_);
  EXPECT_EQ(std::get<trial::Failed>(after.at(7).outcome.value()).reason, trial::FailureReason::kInterrupted);
  EXPECT_TRUE(std::filesystem::exists(journal_.string() + ".damaged1"));
}

}  // namespace krigtune::repair_test
