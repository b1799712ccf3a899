#include "trial/outcome.h"

#include <gtest/gtest.h>

namespace krigtune::outcome_test {

TEST(Outcome, EveryReasonHasAWordAndTheWordLeadsBack) {
  const std::map<trial::FailureReason, std::string> words = {{trial::FailureReason::kTimeout, "timeout"},
                                                             {trial::FailureReason::kHang, "hang"},
                                                             {trial::FailureReason::kCrash, "crash"},
                                                             {trial::FailureReason::kInvalid, "invalid"},
                                                             {trial::FailureReason::kInterrupted, "interrupted"},
                                                             {trial::FailureReason::kBadResult, "bad_result"},
                                                             {trial::FailureReason::kEnvironment, "environment"},
                                                             {trial::FailureReason::kNotApplied, "not_applied"}};
  for (const auto& [reason, word] : words) {
    EXPECT_EQ(trial::to_string(reason), word);
    EXPECT_EQ(trial::failure_reason_from(word), reason);
  }
  EXPECT_EQ(trial::failure_reason_from("segfault"), trial::FailureReason::kCrash);
}

TEST(Outcome, StatusAndReasonAreTheWordsOfTheTables) {
  EXPECT_STREQ(trial::status_text(trial::Measured{}), "ok");
  EXPECT_STREQ(trial::status_text(trial::OutOfMemory{}), "oom");
  EXPECT_STREQ(trial::status_text(trial::Failed{}), "failed");
  EXPECT_STREQ(trial::status_text(trial::Bounded{}), "bounded");
  EXPECT_EQ(trial::reason_text(trial::Measured{}), "");
  EXPECT_EQ(trial::reason_text(trial::OutOfMemory{}), "");
  EXPECT_EQ(trial::reason_text(trial::OutOfMemory{std::nullopt, true}), "predicted");
  EXPECT_EQ(trial::reason_text(trial::Failed{trial::FailureReason::kHang, 12, ""}), "hang");
}

}  // namespace krigtune::outcome_test
