// Several writers of one journal, and writers that die.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>

#include "core/error.h"
#include "core/files.h"
#include "journal/example_trials.h"
#include "journal/lock.h"
#include "journal/place_in_memory.h"
#include "trial/temporary_directory.h"

namespace krigtune::shared_test {

class SharedJournal : public ::testing::Test {
 protected:
  journal::Journal open() const { return {file_, space_, "throughput", true}; }

  TemporaryDirectory dir_{place_in_memory()};
  std::filesystem::path file_ = dir_ / "journal.log";
  space::Space space_ = example_space();
};

// Begins and ends `count` trials while others do the same. The value of each trial identifies its writer.
void take_turns(const std::filesystem::path& file, int writer, int count) {
  journal::Journal journal(file, example_space(), "throughput", true);
  for (int i = 0; i < count; ++i) {
    std::optional<int> number;
    while (!number) number = journal.begin(example_proposal(writer, 1), i, journal.trials().size());
    const trial::Measured outcome{{{"throughput", 1000.0 * writer + i}}, 0.0, std::nullopt};
    if (!journal.end(*number, outcome, 1.0, i + 1)) throw std::logic_error("somebody else ended it");
  }
}

TEST_F(SharedJournal, WritersAtOnceGetEveryNumberOnceAndLoseNothing) {
  constexpr int kWriters = 3;
  constexpr int kTrials = 200;
  std::array<pid_t, kWriters> children{};
  for (int writer = 0; writer < kWriters; ++writer) {
    children[static_cast<std::size_t>(writer)] = ::fork();
    if (children[static_cast<std::size_t>(writer)] != 0) continue;
    try {
      take_turns(file_, writer, kTrials);
      ::_exit(0);
    } catch (const std::exception&) {
      ::_exit(1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::vector<journal::Trial> trials = journal::read_journal(file_);
  ASSERT_EQ(trials.size(), static_cast<std::size_t>(kWriters * kTrials));
  std::array<double, kWriters> next{0.0, 1000.0, 2000.0};  // each writer's trials, in the order in which it began them
  for (std::size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].number, static_cast<int>(i));
    const auto writer = static_cast<std::size_t>(trials[i].proposal.configuration.integer("zero_stage", -1));
    ASSERT_TRUE(trials[i].outcome.has_value());
    EXPECT_EQ(std::get<trial::Measured>(*trials[i].outcome).metrics.at("throughput"), next.at(writer));
    next.at(writer) += 1.0;
  }
  EXPECT_EQ(next, (std::array<double, kWriters>{200.0, 1200.0, 2200.0}));
}

TEST_F(SharedJournal, TheFirstEndOfATrialStands) {
  journal::Journal journal = open();
  journal::Journal other = open();
  begin_next(journal, example_proposal(1, 4), 1);
  other.refresh();
  EXPECT_TRUE(other.end(0, trial::Measured{{{"throughput", 3.0}}, 0.0, std::nullopt}, 1, 2));
  const std::string before = read_text(file_);
  EXPECT_FALSE(journal.end(0, trial::Failed{}, 0, 3));
  EXPECT_EQ(read_text(file_), before);
  EXPECT_EQ(std::get<trial::Measured>(*journal.trials().at(0).outcome).metrics.at("throughput"), 3.0);
}

TEST_F(SharedJournal, AProposalOfYesterdayIsNotBegun) {
  journal::Journal journal = open();
  journal::Journal other = open();
  begin_next(other, example_proposal(1, 4), 1);
  const std::string before = read_text(file_);
  EXPECT_EQ(journal.begin(example_proposal(2, 4), 2, 0), std::nullopt);
  EXPECT_EQ(read_text(file_), before);
  ASSERT_EQ(journal.trials().size(), 1U);
  EXPECT_EQ(journal.trials()[0].proposal.configuration, example_proposal(1, 4).configuration);
  EXPECT_EQ(journal.begin(example_proposal(2, 4), 2, 1), 1);
}

TEST_F(SharedJournal, ATrialThatAnotherProcessBeganCanBeEnded) {
  journal::Journal journal = open();
  {
    journal::Journal other = open();
    begin_next(other, example_proposal(1, 4), 1);
  }
  EXPECT_TRUE(journal.end(0, trial::Bounded{2.0}, 1, 2));
  EXPECT_EQ(std::get<trial::Bounded>(*journal::read_journal(file_).at(0).outcome).at_best, 2.0);
}

TEST_F(SharedJournal, RefreshReadsWhatOthersAppended) {
  journal::Journal journal = open();
  journal::Journal other = open();
  write_trials(other, example_trials());
  EXPECT_TRUE(journal.trials().empty());
  journal.refresh();
  ASSERT_EQ(journal.trials().size(), other.trials().size());
  for (std::size_t i = 0; i < other.trials().size(); ++i) {
    EXPECT_EQ(full_text(journal.trials()[i]), full_text(other.trials()[i]));
  }
}

TEST_F(SharedJournal, AKilledWriterIsInNobodysWay) {
  const pid_t child = ::fork();
  if (child == 0) {
    journal::Journal journal = open();
    begin_next(journal, example_proposal(1, 4), 1);
    // It dies while it appends, and leaves a torn line and both locks.
    const journal::ScopedByteLock turn(::open(file_.c_str(), O_RDWR), journal::LockedByte::kAppend);
    std::filesystem::create_symlink(journal::SymlinkLock::target_of(file_), file_.string() + ".lock");
    std::ofstream(file_, std::ios::app) << "{\"op_code\":4,\"work" << std::flush;
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  journal::Journal journal = open();
  EXPECT_EQ(journal.trials().size(), 1U);
  EXPECT_EQ(begin_next(journal, example_proposal(1, 8), 2), 1);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(file_.string() + ".lock")));
}

TEST_F(SharedJournal, AKilledWriterIsInTheWayOfNoneThatIsAtWork) {
  journal::Journal journal = open();
  begin_next(journal, example_proposal(1, 4), 1);
  std::filesystem::create_symlink(journal::SymlinkLock::target_of(file_), file_.string() + ".lock");
  EXPECT_EQ(begin_next(journal, example_proposal(1, 8), 2), 1);
}

TEST_F(SharedJournal, AFullDiskLeavesWholeLines) {
  {
    journal::Journal journal = open();
    begin_next(journal, example_proposal(1, 4), 1);
  }
  const std::string before = read_text(file_);
  for (const std::size_t room : {1U, 700U, 900U}) {
    SCOPED_TRACE(room);
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{before.size() + room, before.size() + room};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      journal::Journal journal = open();
      try {
        begin_next(journal, example_proposal(2, 8), 2);
      } catch (const EnvironmentError&) {
        ::_exit(7);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 7);
    const std::string after = read_text(file_);
    EXPECT_EQ(after.substr(0, before.size()), before);
    EXPECT_EQ(after.back(), '\n');
    EXPECT_EQ(journal::read_journal(file_).size(), room < 700U ? 1U : 2U);
    dir_.write("journal.log", before);
  }
}

TEST_F(SharedJournal, AppendingReadsNothingTwice) {
  // Twenty thousand appends to a journal that grows to 200 000 lines. If each read all earlier lines, the test would
  // far exceed its time limit.
  journal::Journal journal = open();
  for (int i = 0; i < 10'000; ++i) {
    begin_next(journal, example_proposal(i % 4, 1 << (i % 4)), i);
    journal.end(i, trial::Measured{{{"throughput", 1.0 + i}}, 0.0, std::nullopt}, 1.0, i + 1);
  }
  EXPECT_EQ(journal::read_journal(file_).size(), 10'000U);
}

TEST_F(SharedJournal, NoLockIsLeftBehind) {
  journal::Journal journal = open();
  write_trials(journal, example_trials());
  const auto files = std::filesystem::directory_iterator(dir_.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
}

}  // namespace krigtune::shared_test
