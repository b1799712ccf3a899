#include "journal/lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <memory>

#include "core/error.h"
#include "core/files.h"
#include "no_more_files.h"
#include "trial/temporary_directory.h"

namespace krigtune::lock_test {

namespace fs = std::filesystem;

bool link_is_there(const fs::path& link) { return fs::is_symlink(fs::symlink_status(link)); }

class Lock : public ::testing::Test {
 protected:
  TemporaryDirectory dir_;
  fs::path journal_ = dir_.write("journal.log", "");
  fs::path link_ = dir_ / "journal.log.lock";
};

// Sleeping moves the clock, and something happens meanwhile.
class BusyClock final : public Clock {
 public:
  explicit BusyClock(std::function<void(double)> meanwhile) : meanwhile_(std::move(meanwhile)) {}
  double now_s() const override { return now_s_; }
  std::int64_t unix_us() const override { return 0; }
  void sleep_until_s(double deadline_s) const override {
    now_s_ = deadline_s;
    meanwhile_(now_s_);
  }

 private:
  mutable double now_s_ = 0.0;
  std::function<void(double)> meanwhile_;
};

TEST_F(Lock, IsALinkToTheJournalWhileItIsHeld) {
  const ManualClock clock;
  {
    const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsAwaited);
    EXPECT_TRUE(fs::equivalent(link_, journal_));
  }
  EXPECT_FALSE(link_is_there(link_));
  EXPECT_EQ(clock.now_s(), 0.0);
}

// With a name that leaves no room for the suffix of its new name, the link cannot be renamed.
TEST_F(Lock, IsRemovedInPlaceIfItCannotBeRenamed) {
  constexpr std::size_t kAlmostTheLongestName = 248;  // NAME_MAX is 255
  const fs::path journal = dir_.write(std::string(kAlmostTheLongestName, 'j'), "");
  const fs::path link = journal.string() + ".lock";
  const ManualClock clock;
  {
    const journal::SymlinkLock lock(journal, clock, journal::OwnLink::kIsAwaited);
    EXPECT_TRUE(link_is_there(link));
  }
  EXPECT_FALSE(link_is_there(link));
}

TEST_F(Lock, WaitsUntilTheOtherLetsGo) {
  fs::create_symlink(journal_, link_);
  const BusyClock clock([&](double now_s) {
    if (now_s > 7.0) fs::remove(link_);
  });
  const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsAwaited);
  EXPECT_GT(clock.now_s(), 7.0);
  EXPECT_LT(clock.now_s(), 8.1);  // the pauses grow to one second
}

TEST_F(Lock, AnAbandonedLockIsTakenAfterThirtySeconds) {
  fs::create_symlink(journal_, link_);
  const ManualClock clock;
  const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsAwaited);
  EXPECT_GT(clock.now_s(), 30.0);
  EXPECT_LT(clock.now_s(), 33.0);
}

TEST_F(Lock, ALockThatGoesFromHandToHandIsNotAbandoned) {
  const auto pass_on = [&] {
    fs::remove(link_);
    fs::create_symlink(journal_, link_);
  };
  pass_on();
  double next_s = 10.0;  // each one has it for ten seconds, well below thirty
  const BusyClock clock([&](double now_s) {
    if (now_s < next_s) return;
    next_s += 10.0;
    now_s < 100.0 ? pass_on() : static_cast<void>(fs::remove(link_));
  });
  const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsAwaited);
  EXPECT_GE(clock.now_s(), 100.0);
}

TEST_F(Lock, ALeftoverOfOurOwnIsRemovedAtOnce) {
  fs::create_symlink(journal::SymlinkLock::target_of(journal_), link_);
  EXPECT_TRUE(fs::equivalent(link_, journal_));
  const ManualClock clock;
  { const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsLeftover); }
  EXPECT_EQ(clock.now_s(), 0.0);
  EXPECT_FALSE(link_is_there(link_));
}

TEST_F(Lock, OfALivingKrigtuneIsAwaited) {
  fs::create_symlink(journal::SymlinkLock::target_of(journal_), link_);
  const ManualClock clock;
  const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsAwaited);
  EXPECT_GT(clock.now_s(), 30.0);
}

TEST_F(Lock, NobodyElsesIsTakenForALeftover) {
  // Links of Optuna with its absolute and its relative path, and of a krigtune on another machine.
  const std::string ours = journal::SymlinkLock::target_of(journal_);
  std::string other_machine = ours;
  other_machine.replace(0, 2, ours[2] == '/' ? "./" : ".//");
  for (const std::string& target : {journal_.string(), std::string("journal.log"), "./" + other_machine}) {
    fs::create_symlink(target, link_);
    const ManualClock clock;
    const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsLeftover);
    EXPECT_GT(clock.now_s(), 30.0) << target;
  }
}

TEST_F(Lock, ADirectoryThatRefusesIsSaid) {
  EXPECT_THROW(journal::SymlinkLock("/proc/krigtune/journal.log", ManualClock(), journal::OwnLink::kIsAwaited),
               EnvironmentError);
}

TEST_F(Lock, OneAtATimeAmongProcesses) {
  constexpr int kProcesses = 4;
  constexpr int kTurns = 50;
  const fs::path counter = dir_.write("counter", "0");
  std::array<pid_t, kProcesses> children{};
  for (pid_t& child : children) {
    child = ::fork();
    if (child != 0) continue;
    const SystemClock clock;
    for (int turn = 0; turn < kTurns; ++turn) {
      const journal::SymlinkLock lock(journal_, clock, journal::OwnLink::kIsAwaited);
      const int count = std::stoi(read_text(counter));
      std::ofstream(counter) << count + 1;
    }
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(read_text(counter), std::to_string(kProcesses * kTurns));
}

// The user's input is not wrong.
TEST_F(Lock, OfAJournalThatTheMachineCannotOpenIsAFailureOfTheMachine) {
  const NoMoreFiles limit;
  EXPECT_THROW(journal::TunerClaim{journal_}, EnvironmentError);
}

}  // namespace krigtune::lock_test
