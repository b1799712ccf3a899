#include "report/labels.h"

#include <gtest/gtest.h>

#include <limits>

namespace krigtune::labels_test {

TEST(PercentText, HasTwoDigitsAndNoExponent) {
  EXPECT_EQ(report::percent_text(0.0021), "0.21 %");
  EXPECT_EQ(report::percent_text(0.127), "13 %");
  EXPECT_EQ(report::percent_text(0.994), "99 %");
  EXPECT_EQ(report::percent_text(0.999), "100 %");
  EXPECT_EQ(report::percent_text(1.118), "112 %");
}

TEST(GainText, IsShortHoweverLargeTheGain) {
  EXPECT_EQ(report::gain_text(1.0), "1.00x");
  EXPECT_EQ(report::gain_text(0.314159), "0.31x");
  EXPECT_EQ(report::gain_text(9.994), "9.99x");
  EXPECT_EQ(report::gain_text(9.996), "10.0x");
  EXPECT_EQ(report::gain_text(49.58), "49.6x");
  EXPECT_EQ(report::gain_text(270.23), "270x");
  EXPECT_EQ(report::gain_text(99'999.0), "99999x");
  EXPECT_EQ(report::gain_text(1.26e308), "1.26e+308x");
  EXPECT_EQ(report::gain_text(std::numeric_limits<double>::infinity()), "over 1e308x");
}

}  // namespace krigtune::labels_test
