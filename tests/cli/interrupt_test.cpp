#include "programs/krigtune/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace krigtune::interrupt_test {

// If the flag never becomes true, CTest's time limit ends the wait.
void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(Interrupt, StopsAfterTheTrialFirstAndEndsItTheSecondTime) {
  std::atomic<int> told{0};
  cli::Interrupt interrupt([&] { ++told; });
  EXPECT_FALSE(interrupt.stop());
  ::kill(::getpid(), SIGINT);
  wait_for(interrupt.stop());
  EXPECT_FALSE(interrupt.abort());
  ::kill(::getpid(), SIGINT);
  wait_for(interrupt.abort());
  EXPECT_EQ(told, 1);
}

TEST(Interrupt, EndsTheTrialAtOnceWhenTerminated) {
  cli::Interrupt interrupt([] {});
  ::kill(::getpid(), SIGTERM);
  wait_for(interrupt.abort());
  EXPECT_TRUE(interrupt.stop());
}

// nohup and a shell's "&" start programs with ignored signals.
TEST(Interrupt, LeavesIgnoredSignalsIgnored) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  {
    cli::Interrupt interrupt([] {});
    ::kill(::getpid(), SIGHUP);
    ::kill(::getpid(), SIGINT);
    wait_for(interrupt.stop());
    EXPECT_FALSE(interrupt.abort()) << "SIGHUP was heard";
  }
  std::signal(SIGHUP, before);
}

TEST(Interrupt, LeavesTheSignalMaskAsItWas) {
  sigset_t before{};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  {
    cli::Interrupt interrupt([] {});
  }
  sigset_t after{};
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EQ(::sigismember(&before, signal), ::sigismember(&after, signal));
}

}  // namespace krigtune::interrupt_test
