#pragma once
#include <gtest/gtest.h>

#include "trial/outcome.h"

namespace krigtune {

/// The failure, which must be of that reason; an empty one where it is none.
inline Failed expect_failed(const Outcome& outcome, FailureReason reason) {
  const auto* failed = std::get_if<Failed>(&outcome);
  EXPECT_TRUE(failed != nullptr && failed->reason == reason) << status_text(outcome) << " " << reason_text(outcome);
  return failed == nullptr ? Failed{} : *failed;
}

}  // namespace krigtune
