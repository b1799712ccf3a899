#pragma once
#include <optional>
#include <string>
#include <vector>

#include "machine/finding.h"
#include "workload/measured_rates.h"
#include "workload/workload.h"

namespace krigtune::machine {

/// A measured rate beside the rate that plan uses for predictions.
struct ComparedRate {
  std::string what;       ///< "all-reduce between nodes"
  std::string at;         ///< the size: "64 MiB", "8192 x 8192 x 8192"
  std::string unit;       ///< "GB/s", "GFLOP/s", "us"
  double measured = 0.0;  ///< in this unit
  double expected = 0.0;  ///< in the same unit
  bool is_time = false;   ///< less is better
  bool is_slow = false;   ///< clearly slower than expected
  Slowness slowness = Slowness::kDevice;
};

/// A rate below this fraction of the expected one is clearly slow: machine models are accurate to 15 %
/// (docs/accuracy.md).
inline constexpr double kSlowRate = 0.8;
/// Small messages that take this many times as long as expected are clearly slow, too.
inline constexpr double kSlowLatency = 2.0;
/// A rank that takes this many times as long as the median rank is slow.
inline constexpr double kSlowRank = 1.15;

/// Compares products of each precision and copies at their largest size, and collectives at their largest and smallest
/// size, with the rates that plan expects from `cluster`. Rates that the cluster does not determine are left out: for
/// "gpu": "local" this is everything except products in the precision of ClusterSpec::measured, and collectives over an
/// emulated network.
std::vector<ComparedRate> compare_rates(const workload::MeasuredRates& rates, const workload::ClusterSpec& cluster);

/// A rank that was clearly slower than the others at products.
struct SlowRank {
  std::int64_t rank = 0;
  std::string host;
  double times = 1.0;  ///< times as long as the median rank
};
std::optional<SlowRank> slow_rank(const workload::MeasuredRates& rates);

/// Returns a sentence with a recommendation: "all-reduce between nodes reaches 11 GB/s of 42 GB/s expected, at 64 MiB:
/// look at ...".
std::string sentence_of(const ComparedRate& rate, const workload::MeasuredRates& rates);
std::string sentence_of(const SlowRank& rank);

}  // namespace krigtune::machine
