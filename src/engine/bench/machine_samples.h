#pragma once
#include <array>
#include <vector>

#include "bench/rate_fit.h"
#include "krigtune/core/clock.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// What short training runs on this machine's ranks have shown.
struct MachineSamples {
  std::array<std::vector<RateSample>, kOpClassCount> operations;      ///< by OpClass
  std::array<std::vector<RateSample>, kExchangeKindCount> exchanges;  ///< by ExchangeKind; bytes: sent by one rank
  std::vector<double> wakes_s;      ///< from the end of what a stream waited for until it went on
  std::vector<double> overheads_s;  ///< of steps: what is not between the first and the last operation
};

/// Trains small models for about `seconds` in all: products, attention and elementwise kernels of several sizes in one
/// precision, optimizers on the device and on the host, copies, buckets of several sizes. Kernels are timed on as many
/// ranks as have a core of their own, collectives on all.
MachineSamples sample_machine(std::int64_t ranks, std::int64_t cores, Precision precision, double seconds,
                              const Clock& clock);

}  // namespace krigtune
