// CPU ranks. What they compute, copy and reduce takes time of cores that all their threads share, so a collective has
// two parts: what the emulated network takes, while its thread sleeps, and the core time of moving the data through
// this machine's memory. It ends when both have passed.
#include "local_machine.h"

#include "krigtune/core/error.h"

namespace krigtune {
namespace {

ClassRate slower(ClassRate rate, double factor) {
  rate.launch_s *= factor;
  rate.flops_per_s /= factor;
  rate.bytes_per_s /= factor;
  return rate;
}

double factor_of(OpClass of, const TimeCalibration& calibration) {
  switch (of) {
    case OpClass::kProduct:
    case OpClass::kAttention:
      return calibration.products;
    case OpClass::kMemory:
    case OpClass::kOptimizer:
      return calibration.memory;
    case OpClass::kCopy:
    case OpClass::kHost:
      return calibration.host;
  }
  return 1.0;
}

}  // namespace

Machine make_local_machine(const ClusterSpec& cluster, const TimeCalibration& calibration) {
  const MeasuredMachine& measured = *cluster.measured;
  if (measured.key.ranks != cluster.ranks()) {
    throw UserError("this machine was measured for another number of ranks", "measure it anew");
  }
  Machine machine;
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    machine.rates[i] = slower(measured.rates[i], factor_of(static_cast<OpClass>(i), calibration));
  }
  for (std::size_t i = 0; i < machine.exchanges.size(); ++i) {
    machine.exchanges[i] = slower(measured.exchanges[i], calibration.collectives);
  }
  machine.one_link = true;
  machine.sleeping_network = true;
  if (cluster.emulated_network) {
    machine.network = *cluster.emulated_network;
  } else {
    machine.network.bytes_per_s = std::numeric_limits<double>::infinity();
  }
  machine.ranks_per_node = machine.network.nodes ? machine.network.nodes->ranks_per_node : cluster.ranks();
  machine.cores = measured.cores_per_rank();
  machine.wake_s = measured.wake_s;
  machine.overlap_slowdown = measured.overlap_slowdown;
  machine.step_overhead_s = measured.step_overhead_s + calibration.step_s;
  return machine;
}

}  // namespace krigtune
