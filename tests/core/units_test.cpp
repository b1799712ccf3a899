#include "core/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace krigtune::units_test {

TEST(Bytes, ConvertFromAndToGib) {
  EXPECT_EQ(from_gib(1.0), (Bytes{1'073'741'824}));
  EXPECT_EQ(from_gib(0.1), (Bytes{107'374'182}));  // rounded
  EXPECT_DOUBLE_EQ(to_gib(Bytes{3'221'225'472}), 3.0);
}

TEST(Bytes, AddAndCompare) {
  Bytes sum = Bytes{3} + Bytes{4} - Bytes{2};
  sum += Bytes{1};
  EXPECT_EQ(sum, (Bytes{6}));
  EXPECT_LT(sum, (Bytes{7}));
}

TEST(Bytes, AreWrittenInBinaryUnits) {
  EXPECT_EQ(to_string(Bytes{0}), "0 B");
  EXPECT_EQ(to_string(Bytes{812}), "812 B");
  EXPECT_EQ(to_string(Bytes{1536}), "1.50 KiB");
  EXPECT_EQ(to_string(Bytes{24'536'678}), "23.4 MiB");
  EXPECT_EQ(to_string(Bytes{1'342'177'280}), "1.25 GiB");
  EXPECT_EQ(to_string(Bytes{-2048}), "-2.00 KiB");
  EXPECT_EQ(to_string(Bytes{std::int64_t{5000} << 40U}), "5000.0 TiB");
}

TEST(Duration, IsWrittenInTheUnitOfItsSize) {
  EXPECT_EQ(duration_text(0.00085), "850 us");
  EXPECT_EQ(duration_text(0.0123), "12.3 ms");
  EXPECT_EQ(duration_text(0.0999), "99.9 ms");
  EXPECT_EQ(duration_text(0.865), "865 ms");
  EXPECT_EQ(duration_text(1.25), "1.25 s");
  EXPECT_EQ(duration_text(9.996), "10.0 s");
  EXPECT_EQ(duration_text(36.0), "36.0 s");
  EXPECT_EQ(duration_text(200.0), "3 min 20 s");
  EXPECT_EQ(duration_text(7500.0), "2 h 05 min");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "unknown");
}

}  // namespace krigtune::units_test
