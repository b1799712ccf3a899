// Reads a journal that grows: each call reads what was appended, and returns what a reader of the whole file would.
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "core/files.h"
#include "journal/example_trials.h"
#include "journal/place_in_memory.h"
#include "trial/temporary_directory.h"

namespace krigtune::reader_test {

class GrowingJournal : public testing::Test {
 protected:
  journal::Journal open() const { return {file_, example_space(), "throughput", true}; }
  void add(journal::Journal& journal, int number, bool ends = true) const {
    ASSERT_EQ(journal.begin(example_proposal(number, 1), number, journal.trials().size()), number);
    if (ends) journal.end(number, trial::Measured{{{"throughput", 10.0 + number}}, 0.0, std::nullopt}, 1.0, number + 1);
  }
  void write(const std::string& text) const { std::ofstream(file_, std::ios::binary) << text; }
  void expect_as_whole(const std::vector<journal::Trial>& got) const {
    const std::vector<journal::Trial> want = journal::read_journal(file_);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].proposal.configuration, want[i].proposal.configuration) << i;
      EXPECT_EQ(got[i].outcome.has_value(), want[i].outcome.has_value()) << i;
    }
  }

  TemporaryDirectory dir_{place_in_memory()};
  std::filesystem::path file_ = dir_ / "journal.log";
};

TEST_F(GrowingJournal, IsReadFromWhereItWasLeft) {
  journal::JournalReader reader(file_);
  EXPECT_TRUE(reader.look().empty());  // the file does not exist
  journal::Journal journal = open();
  EXPECT_TRUE(reader.look().empty());
  for (int number = 0; number < 4; ++number) {
    add(journal, number, number != 2);
    expect_as_whole(reader.look());
  }
  journal.end(2, trial::OutOfMemory{}, 1.0, 9);
  expect_as_whole(reader.look());
  EXPECT_TRUE(reader.look()[2].outcome);
}

TEST_F(GrowingJournal, CutAnywhereAndCompletedIsReadAsAWhole) {
  {
    journal::Journal journal = open();
    for (int number = 0; number < 2; ++number) add(journal, number);
  }
  const std::string text = read_text(file_);
  for (std::size_t cut = 0; cut <= text.size(); cut += 7) {
    write(text.substr(0, cut));
    journal::JournalReader reader(file_);
    (void)reader.look();
    std::ofstream(file_, std::ios::binary | std::ios::app) << text.substr(cut);
    expect_as_whole(reader.look());
    EXPECT_EQ(reader.look().size(), 2U) << cut;
  }
}

TEST_F(GrowingJournal, ThatShrinksOrIsReplacedIsReadAnew) {
  {
    journal::Journal journal = open();
    for (int number = 0; number < 3; ++number) add(journal, number);
  }
  const std::string text = read_text(file_);
  journal::JournalReader reader(file_);
  EXPECT_EQ(reader.look().size(), 3U);
  write(text.substr(0, text.find("\"op_code\":4") - 1));  // only the study
  EXPECT_TRUE(reader.look().empty());
  write_atomically(file_, text);  // a new file
  EXPECT_EQ(reader.look().size(), 3U);
  std::filesystem::remove(file_);
  EXPECT_TRUE(reader.look().empty());
}

TEST_F(GrowingJournal, PassesABadLineOverAndComplainsOfItOnce) {
  {
    journal::Journal journal = open();
    add(journal, 0);
  }
  journal::JournalReader reader(file_);
  EXPECT_EQ(reader.look().size(), 1U);
  std::ofstream(file_, std::ios::binary | std::ios::app) << "nothing of ours\n";
  EXPECT_EQ(reader.look().size(), 1U);
  {
    journal::Journal journal = open();
    add(journal, 1);
  }
  EXPECT_EQ(reader.look().size(), 2U);
  ASSERT_EQ(reader.complaints().size(), 1U);
  EXPECT_NE(reader.complaints()[0].find("not a JSON object"), std::string::npos);
}

// Lines of parameters with an unchanged distribution are not parsed. The next writer must still continue correctly.
TEST_F(GrowingJournal, KeepsTheDistributionsThatOthersHaveChanged) {
  {
    journal::Journal journal = open();
    for (int number = 0; number < 3; ++number) add(journal, number);
  }
  const std::string before = read_text(file_);
  {
    journal::Journal journal = open();
    add(journal, 3);
  }
  const std::string after = read_text(file_).substr(before.size());
  const auto distribution_in = [](const std::string& text) {
    const std::size_t at = text.rfind("\"distribution\":");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(distribution_in(after), distribution_in(before));
}

}  // namespace krigtune::reader_test
