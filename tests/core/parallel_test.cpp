#include "core/parallel.h"

#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

namespace krigtune {
namespace {

TEST(Parallel, CallsTheWorkOnceForEachThread) {
  std::array<int, 4> calls{};
  run_side_by_side(calls.size(), [&](std::size_t thread) { ++calls[thread]; });
  EXPECT_EQ(calls, (std::array<int, 4>{1, 1, 1, 1}));
}

// An exception that leaves a thread ends the program (std::terminate).
TEST(Parallel, ThrowsTheExceptionOfAThreadToTheCallerAfterAllHaveEnded) {
  std::array<bool, 3> ended{};
  const auto work = [&](std::size_t thread) {
    ended[thread] = true;
    if (thread == 2) throw std::runtime_error("thread 2");
  };
  EXPECT_THROW(run_side_by_side(ended.size(), work), std::runtime_error);
  EXPECT_EQ(ended, (std::array<bool, 3>{true, true, true}));
}

}  // namespace
}  // namespace krigtune
