#pragma once
#include <array>
#include <vector>

#include "core/clock.h"
#include "workload/hardware.h"
#include "workload/measured_machine.h"
#include "workload/rate_fit.h"
#include "workload/workload.h"

namespace krigtune::bench {

/// What short training runs on this machine's ranks have shown.
struct MachineSamples {
  std::array<std::vector<workload::RateSample>, workload::kOpClassCount> operations;  ///< by OpClass
  std::array<std::vector<workload::RateSample>, workload::kExchangeKindCount>
      exchanges;                    ///< by ExchangeKind; bytes: sent by one rank
  std::vector<double> wakes_s;      ///< from the end of what a stream waited for until it went on
  std::vector<double> overheads_s;  ///< of steps: what is not between the first and the last operation
};

/// Trains small models for about `seconds` in all: products, attention and elementwise kernels of several sizes in one
/// precision, optimizers on the device and on the host, copies, buckets of several sizes. Kernels are timed on as many
/// ranks as have a core of their own, collectives on all.
MachineSamples sample_machine(std::int64_t ranks, std::int64_t cores, workload::Precision precision, double seconds,
                              const Clock& clock);

/// What fits the samples.
workload::MeasuredMachine fit_machine(const workload::MachineKey& key, const MachineSamples& samples);

/// This machine for so many CPU ranks, in about five seconds.
workload::MeasuredMachine measure_machine(std::int64_t ranks, workload::Precision precision, const Clock& clock);

}  // namespace krigtune::bench
