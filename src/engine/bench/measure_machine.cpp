// Products, attention and what the host computes are fitted by FLOPs, copies and exchanges by bytes, elementwise
// kernels by both: some are bound by their arithmetic (GELU), some by memory (copies). What a small product costs
// beyond the launch of any kernel is its half_flops.
#include "bench/measure_machine.h"

#include <vector>

#include "krigtune/core/statistics.h"

namespace krigtune {
namespace {

double lower_quartile_or_0(const std::vector<double>& values) { return values.empty() ? 0.0 : lower_quartile(values); }

BoundBy bound_by(OpClass of) {
  switch (of) {
    case OpClass::kProduct:
      return BoundBy::kFlops;
    case OpClass::kAttention:
    case OpClass::kMemory:
      return BoundBy::kBoth;
    case OpClass::kOptimizer:
    case OpClass::kCopy:
    case OpClass::kHost:
      return BoundBy::kBytes;
  }
  return BoundBy::kBoth;
}

// The launch of any kernel, and what is beyond it as FLOPs.
void split_launch(ClassRate& rate, double launch_s) {
  if (!(rate.launch_s > launch_s)) return;
  rate.half_flops = (rate.launch_s - launch_s) * rate.flops_per_s;
  rate.launch_s = launch_s;
}

}  // namespace

MeasuredMachine fit_machine(const MachineKey& key, const MachineSamples& samples) {
  MeasuredMachine machine;
  machine.key = key;
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    machine.rates[i] = fit_rate(samples.operations[i], bound_by(static_cast<OpClass>(i)));
  }
  const double launch_s = machine.rates[static_cast<std::size_t>(OpClass::kMemory)].launch_s;
  split_launch(machine.rates[static_cast<std::size_t>(OpClass::kProduct)], launch_s);
  for (std::size_t i = 0; i < machine.exchanges.size(); ++i) {
    machine.exchanges[i] = fit_rate(samples.exchanges[i], BoundBy::kBytes);
  }
  machine.wake_s = lower_quartile_or_0(samples.wakes_s);
  machine.step_overhead_s = lower_quartile_or_0(samples.overheads_s);
  return machine;
}

MeasuredMachine measure_machine(std::int64_t ranks, Precision precision, const Clock& clock) {
  constexpr double kSeconds = 4.0;
  const MachineKey key = machine_key(ranks, precision);
  return fit_machine(key, sample_machine(ranks, key.cores, precision, kSeconds, clock));
}

}  // namespace krigtune
