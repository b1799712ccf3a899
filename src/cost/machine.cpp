// Rates of a device: peak * fraction for products, with the saturating efficiency F / (F + F_half) that fits measured
// products of three GPUs within 5 to 11 % (experiments/data/README.md); bytes over the memory's rate for the rest.
#include "krigtune/cost/machine.h"

#include <algorithm>

#include "krigtune/core/error.h"
#include "krigtune/cost/framework.h"
#include "local_machine.h"

namespace krigtune {
namespace {

double peak_flops_per_s(const DeviceSpec& device, Precision precision) {
  switch (precision) {
    case Precision::kFp32:
      return device.fp32_flops_per_s;
    case Precision::kFp16:
      return device.fp16_flops_per_s;
    case Precision::kBf16:
      return device.bf16_flops_per_s;
  }
  return 0.0;
}

}  // namespace

Machine make_machine(const Workload& workload, const ClusterSpec& cluster, const TimeCalibration& calibration) {
  if (cluster.measured) return make_local_machine(cluster, calibration);
  if (!cluster.device || !cluster.network) {
    throw UserError("the machine's speed is not known", "name \"gpu\", or measure this one");
  }
  const DeviceSpec& device = *cluster.device;
  const double peak = peak_flops_per_s(device, workload.precision);
  if (!(peak > 0.0)) throw UserError("the GPU " + device.id + " does not compute in this precision", "use another");
  const FrameworkTraits& traits = traits_of(workload.framework);
  Machine machine;
  const auto rate = [&machine](OpClass of) -> ClassRate& { return machine.rates[static_cast<std::size_t>(of)]; };
  const double memory_rate = device.memory_bytes_per_s * device.memory_fraction;
  for (const OpClass of : {OpClass::kProduct, OpClass::kAttention}) {
    rate(of) = {device.launch_s, peak * device.gemm_fraction / calibration.products, device.gemm_half_flops,
                memory_rate / calibration.memory};
  }
  for (const OpClass of : {OpClass::kMemory, OpClass::kOptimizer}) {
    rate(of) = {device.launch_s, device.fp32_flops_per_s / calibration.memory, 0.0, memory_rate / calibration.memory};
  }
  rate(OpClass::kCopy).bytes_per_s = device.host_bytes_per_s / calibration.host;
  machine.network.nodes = cluster.network;
  machine.ranks_per_node = cluster.gpus_per_node;
  machine.overlap_slowdown = traits.overlap_slowdown;
  machine.issue_s = traits.issue_s * calibration.issue;
  machine.step_overhead_s = traits.step_overhead_s + calibration.step_s;
  return machine;
}

double kernel_time_s(const Machine& machine, OpClass of, double flops, double bytes) {
  return machine.rate(of).seconds(flops, bytes);
}

double collective_time_s(const Machine& machine, OpKind kind, const GroupSpan& span, std::int64_t wire_bytes) {
  const double seconds = collective_time_s(machine.network, kind, span, wire_bytes);
  return seconds > 0.0 ? seconds + machine.collective_overhead_s : 0.0;
}

double operation_time_s(const Machine& machine, const StepPlan& plan, const Operation& operation) {
  if (is_collective(operation.kind)) {
    const GroupSpan span = group_span(plan, operation.group, 0, machine.ranks_per_node);
    return collective_time_s(machine, operation.kind, span, operation.wire_bytes);
  }
  const auto bytes = static_cast<double>(operation.bytes_read + operation.bytes_written);
  return kernel_time_s(machine, class_of(operation), operation.flops, bytes);
}

}  // namespace krigtune
