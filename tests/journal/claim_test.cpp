#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>

#include "journal/example_trials.h"
#include "journal/lock.h"
#include "trial/temporary_directory.h"
#include "user_error.h"

namespace krigtune::claim_test {

class Claim : public ::testing::Test {
 protected:
  // Starts a process that has the claim until it is killed.
  pid_t claimant() const {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return -1;
    const pid_t child = ::fork();
    if (child == 0) {
      const journal::TunerClaim claim(file_);
      ::_exit(::write(ends[1], "x", 1) == 1 && ::pause() == 0 ? 0 : 1);
    }
    char byte = 0;
    const bool claimed = ::read(ends[0], &byte, 1) == 1;
    for (const int end : ends) ::close(end);
    return claimed ? child : -1;
  }

  TemporaryDirectory dir_;
  std::filesystem::path file_ = dir_ / "journal.log";
};

void kill_and_wait(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(Claim, ASecondTunerIsRefusedWhileTheFirstLives) {
  {
    const journal::TunerClaim first(file_);
    EXPECT_NE(user_error_of([&] {
                const journal::TunerClaim second(file_);
              }).find("another krigtune tune is running on '" + dir_.path().string() + "'"),
              std::string::npos);
    EXPECT_TRUE(journal::TunerClaim::is_held(file_));
  }
  EXPECT_FALSE(journal::TunerClaim::is_held(file_));
  EXPECT_EQ(user_error_of([&] { const journal::TunerClaim again(file_); }), "no error");
}

TEST_F(Claim, EndsWithItsProcess) {
  const pid_t child = claimant();
  ASSERT_GT(child, 0);
  EXPECT_TRUE(journal::TunerClaim::is_held(file_));
  EXPECT_NE(user_error_of([&] { const journal::TunerClaim second(file_); }), "no error");
  kill_and_wait(child);
  EXPECT_FALSE(journal::TunerClaim::is_held(file_));
  EXPECT_EQ(user_error_of([&] { const journal::TunerClaim second(file_); }), "no error");
}

TEST_F(Claim, ProgramsThatItsProcessStartedDoNotKeepIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const journal::TunerClaim claim(file_);
    const pid_t program = ::fork();
    if (program == 0) {
      ::dup2(ends[1], STDOUT_FILENO);  // it prints something once it runs
      ::execl("/bin/sh", "sh", "-c", "echo x; exec sleep 1000", nullptr);
      ::_exit(1);
    }
    ::_exit(::write(ends[1], &program, sizeof program) == sizeof program && ::pause() == 0 ? 0 : 1);
  }
  // The number and the word may come in any order.
  std::string said;
  std::array<char, 16> part{};
  while (said.size() < sizeof(pid_t) + 2) {
    const ssize_t got = ::read(ends[0], part.data(), part.size());
    ASSERT_GT(got, 0);
    said.append(part.data(), static_cast<std::size_t>(got));
  }
  kill_and_wait(child);
  EXPECT_FALSE(journal::TunerClaim::is_held(file_));
  const bool word_first = said.substr(0, 2) == "x\n";
  pid_t program = 0;
  said.copy(reinterpret_cast<char*>(&program), sizeof program, word_first ? 2 : 0);
  ::kill(program, SIGKILL);
  for (const int end : ends) ::close(end);
}

TEST_F(Claim, ForkedChildrenDoNotKeepItBeyondItsScope) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::optional<journal::TunerClaim> claim(std::in_place, file_);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[1]);
    char byte = 0;
    ::_exit(::read(ends[0], &byte, 1) == 0 ? 0 : 1);  // until the other end is closed, with a copy of the descriptor
  }
  claim.reset();
  EXPECT_FALSE(journal::TunerClaim::is_held(file_));
  for (const int end : ends) ::close(end);
  ::waitpid(child, nullptr, 0);
}

TEST_F(Claim, OthersAppendBesideIt) {
  const journal::TunerClaim claim(file_);
  journal::Journal tuner(file_, example_space(), "throughput", true);
  journal::Journal other(file_, example_space(), "throughput", true);
  begin_next(other, example_proposal(1, 4), 1);
  EXPECT_EQ(tuner.begin(example_proposal(1, 8), 2, 1), 1);
  EXPECT_TRUE(journal::TunerClaim::is_held(file_));
}

TEST_F(Claim, IsNotHeldWhereThereIsNoJournal) { EXPECT_FALSE(journal::TunerClaim::is_held(file_)); }

TEST_F(Claim, AFileThatCannotBeOpenedIsNamed) {
  EXPECT_NE(
      user_error_of([&] { const journal::TunerClaim claim(dir_ / "none" / "journal.log"); }).find("none/journal.log"),
      std::string::npos);
}

}  // namespace krigtune::claim_test
