// A journal that is cut after any byte, as after a power failure or with a full disk.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/files.h"
#include "journal/example_trials.h"
#include "journal/place_in_memory.h"
#include "trial/temporary_directory.h"

namespace krigtune::cut_test {

// Counts the whole lines with that operation in the text itself.
std::size_t count_operations(const std::string& text, int operation) {
  const std::string needle = "{\"op_code\":" + std::to_string(operation) + ",";
  std::size_t count = 0;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    if (text.compare(begin, needle.size(), needle) == 0) ++count;
    begin = end + 1;
  }
  return count;
}

// Few and short trials, so that every byte can be tried: one with each ending, one that runs, two parameters.
space::Space small_space() {
  const space::Space whole = example_space();
  return {{whole.parameters()[0], whole.parameters()[1]}, whole.facts()};
}

std::vector<ExampleTrial> few_trials() {
  std::vector<ExampleTrial> trials;
  for (const std::size_t i : {0U, 2U, 5U, 6U, 7U, 8U}) trials.push_back(example_trials()[i]);
  for (ExampleTrial& trial : trials) {
    trial.proposal.configuration = {{"zero_stage", std::int64_t{2}}, {"micro_batch", std::int64_t{4}}};
  }
  trials.back().proposal.configuration = {{"zero_stage", std::int64_t{1}}};
  return trials;
}

// The trials in `cut` are a prefix of those in `whole`, of which the last ones may not have ended yet.
void expect_prefix(const std::vector<journal::Trial>& cut, const std::vector<journal::Trial>& whole,
                   const std::string& text) {
  ASSERT_EQ(cut.size(), count_operations(text, 4));
  std::size_t ended = 0;
  for (std::size_t i = 0; i < cut.size(); ++i) {
    ASSERT_EQ(full_text(cut[i].proposal), full_text(whole[i].proposal));
    ASSERT_EQ(cut[i].started_at, whole[i].started_at);
    if (!cut[i].outcome) continue;
    ++ended;
    ASSERT_EQ(full_text(cut[i]), full_text(whole[i]));
  }
  ASSERT_EQ(ended, count_operations(text, 6));
}

TEST(CutJournal, IsAPrefixAfterEveryByteAndCanBeContinued) {
  const TemporaryDirectory dir(place_in_memory());
  const space::Space space = small_space();
  const std::filesystem::path file = dir / "journal.log";
  {
    journal::Journal journal(file, space, "throughput", true);
    write_trials(journal, few_trials());
  }
  const std::string text = read_text(file);
  const std::vector<journal::Trial> whole = journal::read_journal(file);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    SCOPED_TRACE(size);
    dir.write("journal.log", text.substr(0, size));
    const std::vector<journal::Trial> cut = journal::read_journal(file);
    ASSERT_NO_FATAL_FAILURE(expect_prefix(cut, whole, text.substr(0, size)));
    {
      journal::Journal journal(file, space, "throughput", true);
      const int number = begin_next(journal, example_proposal(3, 8), kExampleStartUs);
      ASSERT_EQ(number, static_cast<int>(cut.size()));
      journal.end(number, trial::Bounded{1.5}, 1.0, kExampleStartUs + 1);
    }
    const std::vector<journal::Trial> continued = journal::read_journal(file);
    ASSERT_EQ(continued.size(), cut.size() + 1);
    for (std::size_t i = 0; i < cut.size(); ++i) ASSERT_EQ(full_text(continued[i]), full_text(cut[i]));
    ASSERT_EQ(full_text(continued.back().proposal), full_text(example_proposal(3, 8)));
    ASSERT_EQ(full_text(continued.back().outcome), full_text(trial::Outcome(trial::Bounded{1.5})));
  }
}

TEST(CutJournal, IsContinuedByTwoWhoHadItOpenWhenAThirdDiedInItsAppend) {
  const TemporaryDirectory dir(place_in_memory());
  const space::Space space = small_space();
  const std::filesystem::path file = dir / "journal.log";
  std::size_t created = 0;
  {
    journal::Journal journal(file, space, "throughput", true);
    created = read_text(file).size();
    write_trials(journal, few_trials());
  }
  const std::string text = read_text(file);
  for (std::size_t size = created; size <= text.size(); ++size) {
    SCOPED_TRACE(size);
    dir.write("journal.log", text.substr(0, created));
    journal::Journal first(file, space, "throughput", true);
    journal::Journal second(file, space, "throughput", true);
    dir.write("journal.log", text.substr(0, size));  // the same file, as a third writer left it
    const std::vector<journal::Trial> cut = journal::read_journal(file);
    const auto next = static_cast<int>(cut.size());
    ASSERT_EQ(second.begin(example_proposal(3, 8), 1, cut.size()), next);
    ASSERT_EQ(first.begin(example_proposal(1, 8), 1, cut.size()), std::nullopt);
    ASSERT_EQ(begin_next(first, example_proposal(1, 8), 1), next + 1);
    ASSERT_TRUE(second.end(next + 1, trial::Bounded{1.5}, 1.0, 2));
    first.refresh();
    const std::vector<journal::Trial> continued = journal::read_journal(file);
    ASSERT_EQ(continued.size(), cut.size() + 2);
    for (std::size_t i = 0; i < continued.size(); ++i) {
      ASSERT_EQ(full_text(first.trials()[i]), full_text(continued[i]));
      if (i >= cut.size()) continue;
      ASSERT_EQ(full_text(continued[i]), full_text(cut[i]));
    }
    ASSERT_EQ(full_text(continued.back().outcome), full_text(trial::Outcome(trial::Bounded{1.5})));
  }
}

}  // namespace krigtune::cut_test
