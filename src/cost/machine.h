#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "cost/calibration.h"
#include "plan/collective_time.h"
#include "plan/op_traits.h"
#include "plan/step_plan.h"

namespace krigtune::cost {

/// How long the operations of one rank take, and how concurrent operations affect each other.
struct Machine {
  workload::ClassRates rates{};
  /// Of the blocks' matrix products if they read fewer bits than the model's type has.
  std::optional<workload::ClassRate> narrow_products = {};
  double attention_half_tokens = 0.0;  ///< a sequence of this length reaches half of attention's rate
  double scan_flops_per_s = 0.0;       ///< of the products in kernels of scans; 0: attention's
  /// Each expert's product is a kernel of its own, which reads what another kernel has quantised.
  bool separate_experts = false;
  /// Rows of activations are ordered by position first, so that a scan of several sequences needs copies.
  bool position_first = false;
  double loss_factor = 1.0;           ///< on the bytes of the loss and its gradient, which belong to kMemory
  workload::EmulatedNetwork network;  ///< network of the collectives
  std::int64_t ranks_per_node = 1;
  double collective_overhead_s = 0.0;  ///< that a program sees for each collective in addition to the network's time
  double collective_factor = 1.0;      ///< on the network's time
  double overlap_slowdown = 1.0;       ///< factor on the time of kernels while a collective runs
  double issue_s = 0.0;                ///< of the thread that issues kernels; no kernel starts before it was issued
  double internode_issue_s = 0.0;      ///< in addition, for each further node of a tensor group's collective
  double pipelined_issue_s = 0.0;      ///< in addition, for each rank of that group if there are pipeline stages
  double send_wait_s = 0.0;      ///< additional time of a send between pipeline stages, beyond its collective_time_s
  double step_overhead_s = 0.0;  ///< data, logging, synchronisation: once per step
  // CPU ranks:
  std::array<workload::ClassRate, workload::kExchangeKindCount>
      exchanges{};        ///< core time of a collective, by the bytes that a rank sends
  bool one_link = false;  ///< emulated: one collective at a time, regardless of its group
  /// A collective occupies cores only during its exchange, not during the network's time.
  bool sleeping_network = false;
  /// Cores of one rank, shared by everything that computes at the same time.
  double cores = std::numeric_limits<double>::infinity();
  double wake_s = 0.0;  ///< until a stream that waited for another continues

  const workload::ClassRate& rate(workload::OpClass of) const { return rates[static_cast<std::size_t>(of)]; }
};

/// Returns the peak FLOPs per second of a device in this precision; 0: not supported.
double peak_flops_per_s(const workload::DeviceSpec& device, workload::Precision precision);

/// Returns that of the blocks' matrix products, which may read fewer bits; 0: not supported.
double product_flops_per_s(const workload::DeviceSpec& device, const workload::Workload& workload);

/// Makes a machine from the cluster's device and links, `gpu: local` as it was measured. Throws UserError if the device
/// is unknown.
Machine make_machine(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                     const TimeCalibration& calibration = {});

/// Returns how the nodes share a group of ranks, one in every `apart` ranks of the job from the first on.
/// Tensor-parallel ranks are neighbours (1 apart), the data ranks are as far apart as there are tensor ranks.
plan::GroupSpan group_span(std::int64_t ranks, std::int64_t apart, std::int64_t ranks_per_node);

/// Returns the seconds of one kernel, copy or host operation.
double kernel_time_s(const Machine& machine, workload::OpClass of, double flops, double bytes);
/// Returns the seconds of a collective of which each rank sends `wire_bytes`, as a program sees it; 0 if there is
/// nothing to send.
double collective_time_s(const Machine& machine, schedule::OpKind kind, const plan::GroupSpan& span,
                         std::int64_t wire_bytes);
/// Returns the part of a collective's time that it spends on the link.
double link_time_s(const Machine& machine, schedule::OpKind kind, const plan::GroupSpan& span, std::int64_t wire_bytes);
/// Returns the core seconds of moving the data through a CPU rank's memory.
double exchange_time_s(const Machine& machine, schedule::OpKind kind, std::int64_t wire_bytes);
/// Returns the seconds of the issuing thread for one operation, in a job with these numbers of tensor-parallel ranks
/// and pipeline stages.
double issue_time_s(const Machine& machine, const plan::Operation& operation, std::int64_t tensor_ranks,
                    std::int64_t pipeline_ranks);
/// Returns the seconds of one operation that runs alone and waits for nothing.
double operation_time_s(const Machine& machine, const plan::StepPlan& plan, const plan::Operation& operation);

/// Makes the machine of `"gpu": "local"` as it was measured; requires ClusterSpec::measured.
Machine make_local_machine(const workload::ClusterSpec& cluster, const TimeCalibration& calibration);

}  // namespace krigtune::cost
