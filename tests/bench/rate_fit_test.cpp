// Rates fitted to synthetic times.
#include "workload/rate_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "krigtune/rng.h"
#include "programs/bench/measure_machine.h"

namespace krigtune::rate_fit_test {

double relative_error(double value, double truth) { return std::abs(value / truth - 1.0); }

std::vector<workload::RateSample> samples_of(const workload::ClassRate& truth, double noise, int disturbed) {
  std::vector<workload::RateSample> samples;
  Rng rng(7, 0);
  for (int i = 0; i < 60; ++i) {
    const double flops = 1e4 * std::pow(1.25, i);  // 1e4 to 5e9
    const double bytes = i % 2 == 0 ? flops / 50.0 : flops * 4.0;
    double seconds = truth.seconds(flops, bytes) * std::exp(noise * rng.normal());
    if (i % 10 < disturbed) seconds *= 5.0;
    samples.push_back({flops, bytes, seconds});
  }
  return samples;
}

void expect_found(double noise, int disturbed, double tolerance) {
  const workload::ClassRate truth{3e-6, 2e11, 0.0, 3e10};
  const workload::ClassRate fitted = workload::fit_rate(samples_of(truth, noise, disturbed), workload::BoundBy::kBoth);
  EXPECT_LE(relative_error(fitted.launch_s, truth.launch_s), tolerance);
  EXPECT_LE(relative_error(fitted.flops_per_s, truth.flops_per_s), tolerance);
  EXPECT_LE(relative_error(fitted.bytes_per_s, truth.bytes_per_s), tolerance);
}

TEST(RateFit, FindsTheRatesThatTheTimesWereMadeWith) { expect_found(0.0, 0, 0.02); }

TEST(RateFit, IsNotMovedByAFifthOfDisturbedTimes) { expect_found(0.03, 2, 0.1); }

TEST(RateFit, LeavesFreeWhatItDoesNotFit) {
  const workload::ClassRate truth{1e-6, 1e11, 0.0, 1e300};
  const workload::ClassRate fitted = workload::fit_rate(samples_of(truth, 0.0, 0), workload::BoundBy::kFlops);
  EXPECT_LE(relative_error(fitted.flops_per_s, 1e11), 0.02);
  EXPECT_TRUE(std::isinf(fitted.bytes_per_s));
  EXPECT_EQ(workload::fit_rate({}, workload::BoundBy::kBoth), workload::ClassRate());
  const workload::RateSample nothing[] = {{0.0, 0.0, 1e-6}, {1.0, 1.0, 0.0}};
  EXPECT_EQ(workload::fit_rate(nothing, workload::BoundBy::kBoth), workload::ClassRate());
}

// The cost of a small product beyond a kernel's launch becomes additional FLOPs.
TEST(FitMachine, SplitsTheCostOfSmallProducts) {
  bench::MachineSamples samples;
  const workload::ClassRate product{1e-6, 1e11, 4e5, 1e300};
  const workload::ClassRate memory{1e-6, 1e300, 0.0, 2e10};
  samples.operations[static_cast<std::size_t>(workload::OpClass::kProduct)] = samples_of(product, 0.0, 0);
  samples.operations[static_cast<std::size_t>(workload::OpClass::kMemory)] = samples_of(memory, 0.0, 0);
  samples.wakes_s = {7e-6, 9e-6, 5e-6, 1e-6};
  const workload::MeasuredMachine machine = bench::fit_machine({}, samples);
  const workload::ClassRate& fitted = machine.rates[static_cast<std::size_t>(workload::OpClass::kProduct)];
  EXPECT_LE(relative_error(fitted.launch_s, 1e-6), 0.05);
  EXPECT_LE(relative_error(fitted.half_flops, 4e5), 0.05);
  EXPECT_EQ(machine.wake_s, 5e-6);  // the lower quartile
  EXPECT_EQ(machine.rates[static_cast<std::size_t>(workload::OpClass::kCopy)], workload::ClassRate());
}

}  // namespace krigtune::rate_fit_test
