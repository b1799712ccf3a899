// DeepSpeed's algorithm as this project walks it: decision by decision, against a second implementation, and on tables.
#include <gtest/gtest.h>

#include "fixtures.h"

namespace krigtune {
namespace {

TEST(Stagewise, DrawsNothingButWhereItsTunerDoes) {
  Session session = plain_session(R"({"zero_stage": [0, 1]})");
  EXPECT_FALSE(depends_on_seed(StrategyKind::kStagewise, session));
  session.stagewise.tuner = SpaceTuner::kRandom;
  EXPECT_TRUE(depends_on_seed(StrategyKind::kStagewise, session));
  session.stagewise.fast = true;
  EXPECT_FALSE(depends_on_seed(StrategyKind::kStagewise, session));
}

}  // namespace
}  // namespace krigtune
