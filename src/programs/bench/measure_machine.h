#pragma once
#include <array>
#include <vector>

#include "core/clock.h"
#include "workload/hardware.h"
#include "workload/measured_machine.h"
#include "workload/rate_fit.h"
#include "workload/workload.h"

namespace krigtune::bench {

/// The results of short training runs on this machine's ranks.
struct MachineSamples {
  std::array<std::vector<workload::RateSample>, workload::kOpClassCount> operations;  ///< by OpClass
  std::array<std::vector<workload::RateSample>, workload::kExchangeKindCount>
      exchanges;                    ///< by ExchangeKind; bytes are those that one rank sends
  std::vector<double> wakes_s;      ///< time from the end of what a stream waited for until the stream continued
  std::vector<double> overheads_s;  ///< step time outside the first to the last operation
};

/// Trains small models for about `seconds` in all, with matrix products, attention and elementwise kernels of several
/// sizes in one precision, optimizers on the device and on the host, copies, and buckets of several sizes. Kernels are
/// timed on as many ranks as have a core of their own, collectives on all ranks.
MachineSamples sample_machine(std::int64_t ranks, std::int64_t cores, workload::Precision precision, double seconds,
                              const Clock& clock);

/// Fits a machine's rates to the samples.
workload::MeasuredMachine fit_machine(const workload::MachineKey& key, const MachineSamples& samples);

/// Measures this machine for so many CPU ranks, in about five seconds.
workload::MeasuredMachine measure_machine(std::int64_t ranks, workload::Precision precision, const Clock& clock);

}  // namespace krigtune::bench
