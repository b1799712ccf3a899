#include "trial/outcome.h"

#include <gtest/gtest.h>

namespace krigtune::outcome_test {

TEST(Outcome, EveryReasonHasAWordAndTheWordLeadsBack) {
  const std::map<FailureReason, std::string> words = {{FailureReason::kTimeout, "timeout"},
                                                      {FailureReason::kHang, "hang"},
                                                      {FailureReason::kCrash, "crash"},
                                                      {FailureReason::kInvalid, "invalid"},
                                                      {FailureReason::kInterrupted, "interrupted"},
                                                      {FailureReason::kBadResult, "bad_result"},
                                                      {FailureReason::kEnvironment, "environment"}};
  for (const auto& [reason, word] : words) {
    EXPECT_EQ(to_string(reason), word);
    EXPECT_EQ(failure_reason_from(word), reason);
  }
  EXPECT_EQ(failure_reason_from("segfault"), FailureReason::kCrash);
}

TEST(Outcome, StatusAndReasonAreTheWordsOfTheTables) {
  EXPECT_STREQ(status_text(Measured{}), "ok");
  EXPECT_STREQ(status_text(OutOfMemory{}), "oom");
  EXPECT_STREQ(status_text(Failed{}), "failed");
  EXPECT_STREQ(status_text(Bounded{}), "bounded");
  EXPECT_EQ(reason_text(Measured{}), "");
  EXPECT_EQ(reason_text(OutOfMemory{}), "");
  EXPECT_EQ(reason_text(OutOfMemory{std::nullopt, true}), "predicted");
  EXPECT_EQ(reason_text(Failed{FailureReason::kHang, 12, ""}), "hang");
}

}  // namespace krigtune::outcome_test
