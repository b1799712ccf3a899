#pragma once
#include <gtest/gtest.h>

#include "trial/outcome.h"

namespace krigtune {

/// Returns the failure, which must have that reason; an empty one if the outcome is not a failure.
inline trial::Failed expect_failed(const trial::Outcome& outcome, trial::FailureReason reason) {
  const auto* failed = std::get_if<trial::Failed>(&outcome);
  EXPECT_TRUE(failed != nullptr && failed->reason == reason)
      << trial::status_text(outcome) << " " << trial::reason_text(outcome);
  return failed == nullptr ? trial::Failed{} : *failed;
}

}  // namespace krigtune
