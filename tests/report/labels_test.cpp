#include "report/labels.h"

#include <gtest/gtest.h>

namespace krigtune::labels_test {

TEST(PercentText, HasTwoDigitsAndNoExponent) {
  EXPECT_EQ(report::percent_text(0.0021), "0.21 %");
  EXPECT_EQ(report::percent_text(0.127), "13 %");
  EXPECT_EQ(report::percent_text(0.994), "99 %");
  EXPECT_EQ(report::percent_text(0.999), "100 %");
  EXPECT_EQ(report::percent_text(1.118), "112 %");
}

}  // namespace krigtune::labels_test
