#include "core/clock.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

namespace krigtune {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

double seconds_of(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / kNanosecondsPerSecond;
}

}  // namespace

double thread_processor_time_s() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

double SystemClock::now_s() const { return seconds_of(CLOCK_MONOTONIC); }

std::int64_t SystemClock::unix_us() const {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

void SystemClock::sleep_until_s(double deadline_s) const {
  // The kernel's default timer slack of 50 us would be added to every emulated collective.
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  const double whole = std::floor(deadline_s);
  timespec deadline{};
  deadline.tv_sec = static_cast<time_t>(whole);
  deadline.tv_nsec = static_cast<long>((deadline_s - whole) * kNanosecondsPerSecond);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

std::int64_t ManualClock::unix_us() const { return static_cast<std::int64_t>(now_s_ * 1e6); }

void ManualClock::sleep_until_s(double deadline_s) const { now_s_ = std::max(now_s_, deadline_s); }

std::string local_iso_time(std::int64_t unix_us) {
  std::int64_t seconds = unix_us / 1'000'000;
  std::int64_t microseconds = unix_us % 1'000'000;
  if (microseconds < 0) {
    microseconds += 1'000'000;
    --seconds;
  }
  const time_t when = static_cast<time_t>(seconds);
  tm local{};
  localtime_r(&when, &local);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}", local.tm_year + 1900, local.tm_mon + 1, local.tm_mday,
                     local.tm_hour, local.tm_min, local.tm_sec, microseconds);
}

std::optional<std::int64_t> unix_us_of(const std::string& local_iso_time) {
  tm local{};
  int microseconds = 0;
  const int read = std::sscanf(local_iso_time.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d.%6d", &local.tm_year, &local.tm_mon,
                               &local.tm_mday, &local.tm_hour, &local.tm_min, &local.tm_sec, &microseconds);
  if (read < 7) return std::nullopt;
  local.tm_year -= 1900;
  local.tm_mon -= 1;
  local.tm_isdst = -1;
  const time_t seconds = mktime(&local);
  if (seconds == static_cast<time_t>(-1)) return std::nullopt;
  return static_cast<std::int64_t>(seconds) * 1'000'000 + microseconds;
}

}  // namespace krigtune
