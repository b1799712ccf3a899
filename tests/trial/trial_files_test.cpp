#include "trial/trial_files.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "no_more_files.h"
#include "trial/temporary_directory.h"

namespace krigtune::trial_files_test {

// What was taken for an empty result made a failed trial of one that had been measured.
TEST(TrialFiles, ThatTheMachineCannotReadAreNotTakenForEmpty) {
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
