// Journals that earlier versions wrote from example_trials() are read correctly.
#include <gtest/gtest.h>

#include "core/files.h"
#include "journal/example_trials.h"
#include "trial/temporary_directory.h"

namespace krigtune::golden_test {

constexpr const char* kOldJournal = KRIGTUNE_TEST_DIR "/golden/journal_0_1.log";
constexpr int kTrials = 8;

TEST(OldJournals, Of0_1LoadsExactly) {
  std::vector<ExampleTrial> meant = example_trials();
  meant.resize(kTrials);
  const std::vector<journal::Trial> read = journal::read_journal(kOldJournal);
  ASSERT_EQ(read.size(), meant.size());
  for (std::size_t i = 0; i < meant.size(); ++i) {
    EXPECT_EQ(full_text(read[i].proposal), full_text(meant[i].proposal));
    EXPECT_EQ(full_text(read[i].outcome), full_text(meant[i].outcome));
    EXPECT_EQ(read[i].proposal.asker, journal::Asker::kTune);
    EXPECT_FALSE(read[i].proposal.trials_without_gain.has_value());
    EXPECT_FALSE(read[i].waiting);
  }
  EXPECT_EQ(read.front().started_at, "2026-08-23T10:00:00.123456");  // written where the local time was UTC
}

TEST(OldJournals, Of0_1IsContinued) {
  const TemporaryDirectory dir;
  const std::filesystem::path file = dir.write("journal.log", read_text(kOldJournal));
  journal::Journal journal(file, example_space(), "throughput", true);
  ASSERT_EQ(journal.trials().size(), std::size_t{kTrials});
  EXPECT_TRUE(journal.end(kTrials - 1, trial::Bounded{1.0}, 1.0, kExampleStartUs));
  EXPECT_EQ(begin_next(journal, example_proposal(3, 8), kExampleStartUs), kTrials);
  EXPECT_EQ(read_text(file).substr(0, read_text(kOldJournal).size()), read_text(kOldJournal));
}

}  // namespace krigtune::golden_test
