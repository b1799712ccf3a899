#include "trial/trial_files.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "no_more_files.h"
#include "trial/temporary_directory.h"

namespace krigtune::trial_files_test {

// A file that could not be read used to count as an empty result, which turned a measured trial into a failed one.
TEST(TrialFiles, ThatTheMachineCannotReadAreNotTakenForEmpty) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer for undefined behaviour opens a pipe when it checks types, and no file can be opened";
#endif
  const TemporaryDirectory directory;
  const std::filesystem::path result = directory.write("result.json", "{\"speed\": 1}");
  {
    const NoMoreFiles limit;
    EXPECT_THROW(trial::read_tail(result, 100), EnvironmentError);
    EXPECT_THROW(trial::read_head(result, 100), EnvironmentError);
  }
  EXPECT_EQ(trial::read_tail(result, 100), "{\"speed\": 1}");
  EXPECT_EQ(trial::read_tail(directory / "none", 100), "");
  EXPECT_EQ(trial::read_head(directory.path(), 100), "");
}

}  // namespace krigtune::trial_files_test
