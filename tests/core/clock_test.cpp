#include "core/clock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace krigtune::clock_test {

TEST(ManualClock, MovesOnlyWhenMoved) {
  ManualClock clock;
  EXPECT_EQ(clock.now_s(), 0.0);
  clock.advance_s(1.5);
  EXPECT_EQ(clock.now_s(), 1.5);
  EXPECT_EQ(clock.unix_us(), 1'500'000);
  clock.sleep_until_s(4.0);
  EXPECT_EQ(clock.now_s(), 4.0);
  clock.sleep_until_s(2.0);
  EXPECT_EQ(clock.now_s(), 4.0) << "a deadline that has passed is not a way back";
}

TEST(SystemClock, NeverGoesBackAndNeverWakesEarly) {
  const SystemClock clock;
  const double before = clock.now_s();
  clock.sleep_until_s(before + 1e-4);
  EXPECT_GE(clock.now_s(), before + 1e-4);
  clock.sleep_until_s(before);  // in the past
  EXPECT_GT(clock.unix_us(), 1'577'836'800'000'000) << "after 2020";
}

TEST(LocalIsoTime, IsNaiveLocalTimeWithMicroseconds) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(local_iso_time(0), "1970-01-01T00:00:00.000000");
  EXPECT_EQ(local_iso_time(1'000'000'000'000'042), "2001-09-09T01:46:40.000042");
  EXPECT_EQ(local_iso_time(-1), "1969-12-31T23:59:59.999999");
  setenv("TZ", "XYZ-2", 1);  // two hours east of Greenwich
  tzset();
  EXPECT_EQ(local_iso_time(0), "1970-01-01T02:00:00.000000");
}

TEST(LocalIsoTime, ReadsBackToTheMicrosecond) {
  for (const char* zone : {"UTC", "XYZ-2", "CET-1CEST,M3.5.0,M10.5.0/3"}) {
    setenv("TZ", zone, 1);
    tzset();
    for (const std::int64_t us : {0L, 1'000'000'000'000'042L, 1'787'464'800'999'999L}) {
      EXPECT_EQ(unix_us_of(local_iso_time(us)), us) << zone;
    }
  }
  for (const char* text : {"", "running", "2026-08-23", "10:00:00"}) {
    EXPECT_EQ(unix_us_of(text), std::nullopt) << text;
  }
}

}  // namespace krigtune::clock_test
