#pragma once
#include <array>
#include <cstdint>
#include <limits>

#include "cost/calibration.h"
#include "plan/collective_time.h"
#include "plan/op_traits.h"
#include "plan/step_plan.h"

namespace krigtune::cost {

/// What the operations of one rank take on it, and what goes on beside them.
struct Machine {
  workload::ClassRates rates{};
  double loss_factor = 1.0;           ///< on the bytes of the loss and its gradient, which are of kMemory
  workload::EmulatedNetwork network;  ///< of collectives
  std::int64_t ranks_per_node = 1;
  double collective_overhead_s = 0.0;  ///< that a program sees of each collective beyond what the network takes
  double collective_factor = 1.0;      ///< on what the network takes
  double overlap_slowdown = 1.0;       ///< kernels take so many times as long while a collective runs
  double issue_s = 0.0;                ///< of the thread that issues kernels: none starts before it was issued
  double internode_issue_s = 0.0;      ///< more, for a collective of the tensor group and each further node of it
  double pipelined_issue_s = 0.0;      ///< more, for each rank of that group, where there are pipeline stages
  double send_wait_s = 0.0;            ///< of a send between pipeline stages, beyond its collective_time_s
  double step_overhead_s = 0.0;        ///< data, logging, synchronisation: once a step
  // CPU ranks:
  std::array<workload::ClassRate, workload::kExchangeKindCount>
      exchanges{};                ///< core time of a collective, by the bytes that a rank sends
  bool one_link = false;          ///< carries one collective at a time, of whatever group: emulated
  bool sleeping_network = false;  ///< a collective takes cores for its exchange only, none for what the network takes
  double cores = std::numeric_limits<double>::infinity();  ///< of one rank: what computes at a time shares them
  double wake_s = 0.0;                                     ///< until a stream that waited for another goes on

  const workload::ClassRate& rate(workload::OpClass of) const { return rates[static_cast<std::size_t>(of)]; }
};

/// What a device computes at the most in this precision; 0: not supported.
double peak_flops_per_s(const workload::DeviceSpec& device, workload::Precision precision);

/// From the cluster's device and links, `gpu: local` as it was measured. Throws UserError where the device is not
/// known.
Machine make_machine(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                     const TimeCalibration& calibration = {});

/// Of a kernel, a copy or the host's work.
double kernel_time_s(const Machine& machine, workload::OpClass of, double flops, double bytes);
/// Of a collective of which each rank sends `wire_bytes`, as a program sees it. Nothing to send takes no time.
double collective_time_s(const Machine& machine, schedule::OpKind kind, const plan::GroupSpan& span,
                         std::int64_t wire_bytes);
/// Of it: on the link.
double link_time_s(const Machine& machine, schedule::OpKind kind, const plan::GroupSpan& span, std::int64_t wire_bytes);
/// Core time of moving its data through a CPU rank's memory.
double exchange_time_s(const Machine& machine, schedule::OpKind kind, std::int64_t wire_bytes);
/// Of the issuing thread, for one operation of a job with so many tensor-parallel ranks and pipeline stages.
double issue_time_s(const Machine& machine, const plan::Operation& operation, std::int64_t tensor_ranks,
                    std::int64_t pipeline_ranks);
/// Alone, without waiting for anything.
double operation_time_s(const Machine& machine, const plan::StepPlan& plan, const plan::Operation& operation);

/// `"gpu": "local"` as it was measured; needs ClusterSpec::measured.
Machine make_local_machine(const workload::ClusterSpec& cluster, const TimeCalibration& calibration);

}  // namespace krigtune::cost
