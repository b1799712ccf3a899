// The rates of a device. Matrix products run at peak * fraction, with the saturating efficiency F / (F + F_half), which
// fits measured products of three GPUs within 5 to 11 % (experiments/data/README.md). All other kernels take their
// bytes over the memory's rate, with a multiple of the bytes if the framework does not fuse its kernels.
//
// The time of a collective is that of NCCL's model of a ring (plan/collective_time.h) plus a program's overhead.
#include "cost/machine.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "cost/framework.h"
#include "plan/op_traits.h"

namespace krigtune::cost {
namespace {

// The median of measured minus modelled times of all-reduces of 1 to 16 MiB is 14 to 62 microseconds, for 2 to 8 ranks
// of A100, H200 and B200. For larger ones the bandwidth decides (experiments/data/README.md: nccl-tests).
constexpr double kCollectiveOverheadS = 30e-6;

// Eager attention writes the scores, its softmax reads and writes them, and the product with the values reads them,
// while the plan counts them once. Its products also compute what the causal mask hides.
constexpr double kEagerAttentionPasses = 4.0;
constexpr double kCausalHalf = 0.5;

// cuDNN's attention computes 553 TFLOP/s forward and 422 backward at 4096 tokens and 638 and 523 at 16384 on an H100,
// 1324 and 1083, and 1698 and 1298, on a B200 (arXiv:2603.07685; heads of DeepSeek-V3). With five products in the
// backward pass for two in the forward pass these are 0.458, 0.558, 0.508 and 0.619 of the peak: on both devices a
// fraction times s / (s + 1286) for sequences of s tokens.
constexpr double kVendorHalfTokens = 1286.0;

// The same kernels in fp8 take 1/1.44 of the time, forward and backward together: the geometric mean of 1.08 to 1.84 on
// a GB200 and a GB300, for 4096 to 16384 tokens with the heads of Llama 3.1 and of DeepSeek-V3 (cudnn-frontend 1.21.1,
// benchmark/sdpa_benchmark_training/results, causal).
constexpr double kFp8Attention = 1.44;

// Kernels of scans compute 143 TFLOP/s beside the time that their bytes take: the median of 17 published times (72 to
// 187 TFLOP/s, the fewest for the fewest heads): Mamba-2 forward on an H100 (vllm-project/vllm#27299, three lengths), a
// gated delta rule forward on an H800 (PaddlePaddle/flash-attention#133) and, forward and backward, this and a scan
// with a scalar decay on a GB200 (README of fla-org/flash-linear-attention). They are written in Triton for the tensor
// cores' older instructions, so Blackwell is not faster. Devices before Hopper are taken to be slower as
// FlashAttention-2 is.
constexpr double kScanFlopsPerS = 143e12;
constexpr double kScanBesideAttention = 0.432;  // of FlashAttention-2's rate on an H100

// What the experts' inputs pass through if no kernel makes them in 8 bits: they are written and read in 16 bits, and
// written twice, by rows and by columns, of which one is counted.
constexpr double kQuantisedBytes = 5.0;

// What a product of m x k and k x n writes is not written beside what it computes: F / F's rate (1 + k0 / k) fits the
// five products of 4096 rows in fp8 with k from 512 to 16384 that DeepGEMM publishes (README of its first release,
// H800: 590, 990, 1025, 1304, 1358 TFLOP/s) within 3 %, with k0 = 718 and 0.716 of the peak for large k, where other
// products reach 0.64 (DeviceSpec::gemm_fraction). In fp4 a step along k takes half as long. Products in 16 bits, for
// which nothing like this is published, have their own fraction.
constexpr double kInnerHalf = 718.0 / 2.0;  // times the rate in 16 bits
constexpr double kLargeInner = 0.716 / 0.64;

constexpr double kTileRows = 128.0;  // of grouped products (Gale et al. 2022, "MegaBlocks", section 5.1.2)

constexpr double kManyNodes = 64.0;  // FrameworkTraits::pipelined_wait_s

// The rate at which all processors of a node together read and write while they update offloaded parameters: 5 to 10
// parameters per nanosecond at 30 bytes each, from the memory of two sockets at 100 to 200 GB/s.
constexpr double kHostBytesPerS = 200e9;

bool has_vendor_attention(const workload::Workload& workload, const workload::DeviceSpec& device,
                          const FrameworkTraits& traits) {
  return traits.vendor_attention && device.vendor_attention_fraction > 0.0 &&
         workload.model.attention != workload::Attention::kEager;
}

double attention_fraction(const workload::Workload& workload, const workload::DeviceSpec& device,
                          const FrameworkTraits& traits) {
  if (workload.model.attention == workload::Attention::kEager) return kCausalHalf * device.gemm_fraction;
  if (has_vendor_attention(workload, device, traits))
    return device.vendor_attention_fraction * (workload.training.fp8_attention ? kFp8Attention : 1.0);
  return device.attention_fraction * traits.attention_factor;
}

workload::ClassRates device_rates(const workload::Workload& workload, const workload::DeviceSpec& device,
                                  const FrameworkTraits& traits, const TimeCalibration& calibration) {
  const double peak = peak_flops_per_s(device, workload.precision);
  if (!(peak > 0.0)) throw UserError("the GPU " + device.id + " does not compute in this precision", "use another");
  workload::ClassRates rates{};
  const auto rate = [&rates](workload::OpClass of) -> workload::ClassRate& {
    return rates[static_cast<std::size_t>(of)];
  };
  const double memory_rate = device.memory_bytes_per_s * device.memory_fraction;
  rate(workload::OpClass::kProduct) = {device.launch_s, peak * device.gemm_fraction / calibration.products,
                                       device.gemm_half_flops, memory_rate / calibration.memory};
  const bool eager = workload.model.attention == workload::Attention::kEager;
  const double attention_passes = eager ? kEagerAttentionPasses : 1.0;
  rate(workload::OpClass::kAttention) = {device.launch_s,
                                         peak * attention_fraction(workload, device, traits) / calibration.products,
                                         0.0, memory_rate / (attention_passes * calibration.memory)};
  const auto by_bytes = [&](double factor) {
    const double times = factor * calibration.memory;
    return workload::ClassRate{device.launch_s, device.fp32_flops_per_s / times, 0.0, memory_rate / times};
  };
  rate(workload::OpClass::kMemory) = by_bytes(traits.elementwise_factor);
  rate(workload::OpClass::kOptimizer) = by_bytes(traits.optimizer_factor);
  // A copy reads and writes every transferred byte once.
  rate(workload::OpClass::kCopy).bytes_per_s = 2.0 * device.host_bytes_per_s / calibration.host;
  return rates;
}

double scan_rate(const workload::Workload& workload, const workload::DeviceSpec& device) {
  return std::min(kScanFlopsPerS,
                  kScanBesideAttention * device.attention_fraction * peak_flops_per_s(device, workload.precision));
}

// They reach the same share of their peak as those in 16 bits, and as late: gemm_half_flops is a time.
workload::ClassRate narrow_rate(const workload::Workload& workload, const workload::DeviceSpec& device,
                                const Machine& machine) {
  const double peak = product_flops_per_s(device, workload);
  if (!(peak > 0.0)) {
    throw UserError("the GPU " + device.id + " has no matrix products in " + workload::precision_word(workload),
                    "use another, or \"precision\": \"bf16\"");
  }
  workload::ClassRate rate = machine.rate(workload::OpClass::kProduct);
  const double times = peak / peak_flops_per_s(device, workload.precision);
  rate.flops_per_s *= times;
  rate.half_flops *= times;
  return rate;
}

}  // namespace

double peak_flops_per_s(const workload::DeviceSpec& device, workload::Precision precision) {
  switch (precision) {
    case workload::Precision::kFp32:
      return device.fp32_flops_per_s;
    case workload::Precision::kFp16:
      return device.fp16_flops_per_s;
    case workload::Precision::kBf16:
      return device.bf16_flops_per_s;
  }
  return 0.0;
}

double product_flops_per_s(const workload::DeviceSpec& device, const workload::Workload& workload) {
  switch (workload.training.products) {
    case workload::ProductFormat::kAsModel:
      return peak_flops_per_s(device, workload.precision);
    case workload::ProductFormat::kFp8Delayed:
    case workload::ProductFormat::kFp8Tensorwise:
    case workload::ProductFormat::kFp8Blockwise:
    case workload::ProductFormat::kMxFp8:
      return device.fp8_flops_per_s;
    case workload::ProductFormat::kNvFp4:
      return device.fp4_flops_per_s;
  }
  return 0.0;
}

Machine make_machine(const workload::Workload& workload, const workload::ClusterSpec& cluster,
                     const TimeCalibration& calibration) {
  if (cluster.measured) return make_local_machine(cluster, calibration);
  if (!cluster.device || !(cluster.network || cluster.emulated_network)) {
    throw UserError("the machine's speed is not known", "name \"gpu\", or measure this one");
  }
  const FrameworkTraits traits = kernel_traits_of(workload);
  Machine machine;
  machine.rates = device_rates(workload, *cluster.device, traits, calibration);
  machine.rates[static_cast<std::size_t>(workload::OpClass::kHost)].bytes_per_s =
      kHostBytesPerS / static_cast<double>(cluster.gpus_per_node) / calibration.host;
  if (workload.training.has_narrow_products())
    machine.narrow_products = narrow_rate(workload, *cluster.device, machine);
  if (has_vendor_attention(workload, *cluster.device, traits)) machine.attention_half_tokens = kVendorHalfTokens;
  machine.scan_flops_per_s = scan_rate(workload, *cluster.device) / calibration.products;
  machine.separate_experts = traits.separate_experts && !workload.training.fused_experts;
  machine.position_first = traits.position_first;
  machine.loss_factor = traits.loss_factor / traits.elementwise_factor;
  if (cluster.emulated_network) {
    machine.network = *cluster.emulated_network;
  } else {
    machine.network.nodes = cluster.network;
  }
  machine.ranks_per_node = cluster.domain();
  machine.overlap_slowdown = traits.overlap_slowdown;
  machine.collective_overhead_s = kCollectiveOverheadS * calibration.collectives;
  machine.collective_factor = calibration.collectives;
  machine.issue_s = traits.issue_s * calibration.issue;
  machine.internode_issue_s = traits.internode_issue_s * calibration.issue;
  machine.pipelined_issue_s = traits.pipelined_issue_s * calibration.issue;
  machine.send_wait_s = traits.pipelined_wait_s * std::pow(static_cast<double>(cluster.nodes) / kManyNodes, 2);
  machine.step_overhead_s = traits.step_overhead_s + calibration.step_s;
  return machine;
}

double issue_time_s(const Machine& machine, const plan::Operation& operation, std::int64_t tensor_ranks,
                    std::int64_t pipeline_ranks) {
  if (operation.stream == schedule::Stream::kHost) return 0.0;
  const bool tensor =
      plan::is_collective(operation.kind) && operation.group == schedule::Group::kTensor && tensor_ranks > 1;
  if (!tensor) return machine.issue_s;
  const std::int64_t further_nodes = (tensor_ranks - 1) / machine.ranks_per_node;
  const double pipelined_s = pipeline_ranks > 1 ? machine.pipelined_issue_s * static_cast<double>(tensor_ranks) : 0.0;
  return machine.issue_s + machine.internode_issue_s * static_cast<double>(further_nodes) + pipelined_s;
}

double kernel_time_s(const Machine& machine, workload::OpClass of, double flops, double bytes) {
  return machine.rate(of).seconds(flops, bytes);
}

plan::GroupSpan group_span(std::int64_t ranks, std::int64_t apart, std::int64_t ranks_per_node) {
  plan::StepPlan groups;
  groups.ranks = ranks;
  groups.tensor_ranks = apart;
  return plan::group_span(groups, schedule::Group::kData, 0, ranks_per_node);
}

double link_time_s(const Machine& machine, schedule::OpKind kind, const plan::GroupSpan& span,
                   std::int64_t wire_bytes) {
  const double seconds = plan::collective_time_s(machine.network, kind, span, wire_bytes);
  return seconds > 0.0 ? machine.collective_factor * seconds + machine.collective_overhead_s : 0.0;
}

double collective_time_s(const Machine& machine, schedule::OpKind kind, const plan::GroupSpan& span,
                         std::int64_t wire_bytes) {
  return std::max(link_time_s(machine, kind, span, wire_bytes), exchange_time_s(machine, kind, wire_bytes));
}

double exchange_time_s(const Machine& machine, schedule::OpKind kind, std::int64_t wire_bytes) {
  if (wire_bytes == 0 || !machine.sleeping_network) return 0.0;
  const workload::ClassRate& exchange = machine.exchanges[static_cast<std::size_t>(plan::exchange_of(kind))];
  return exchange.seconds(0.0, static_cast<double>(wire_bytes));
}

namespace {

// The sum over k that each element of a group's products takes.
double inner_of_group(const plan::Operation& operation) {
  const plan::Shape& shape = operation.shape;
  switch (operation.kind) {
    case schedule::OpKind::kGroupedBackwardWeight:
      return static_cast<double>(shape.rows) / static_cast<double>(shape.groups);
    case schedule::OpKind::kGroupedBackwardInput:
      return static_cast<double>(shape.outer);
    default:
      return static_cast<double>(shape.inner);
  }
}

// What the products of a group take in addition, or less, if they read fewer than 16 bits.
double by_inner(const Machine& machine, const plan::Operation& operation, const workload::ClassRate& rate) {
  const double whole_rate = machine.rate(workload::OpClass::kProduct).flops_per_s;
  if (!std::isfinite(whole_rate) || !(rate.flops_per_s > whole_rate)) return 1.0;
  return (1.0 + kInnerHalf * rate.flops_per_s / whole_rate / inner_of_group(operation)) / kLargeInner;
}

// Those of a group share the device as one large product does, and each fills its last tile by half; or they are
// products of their own, one after the other, as Transformer Engine's GroupedLinear calls them
// (NVIDIA/TransformerEngine#853; its streams let them overlap, which is left out).
double product_time_s(const Machine& machine, const plan::Operation& operation, const workload::ClassRate& rate,
                      double bytes) {
  if (operation.shape.groups == 1) return rate.seconds(operation.flops, bytes);
  const auto groups = static_cast<double>(operation.shape.groups);
  const double rows = static_cast<double>(operation.shape.rows) / groups;
  const double flops = operation.flops * (1.0 + 0.5 * kTileRows / rows) * by_inner(machine, operation, rate);
  if (!machine.separate_experts) return rate.seconds(flops, bytes);
  return rate.launch_s + groups * (rate.seconds(flops / groups, bytes / groups) - rate.launch_s);
}

double attention_time_s(const Machine& machine, const plan::Operation& operation, double bytes) {
  const double later =
      machine.attention_half_tokens / static_cast<double>(std::max<std::int64_t>(1, operation.shape.seq));
  return kernel_time_s(machine, workload::OpClass::kAttention, operation.flops * (1.0 + later), bytes);
}

// Of what a scan reads and writes, if rows are ordered by position first: its kernels want them ordered by sequence,
// and both the input and the output, or their gradients, are copied (megatron/core/ssm/mamba_mixer.py).
double copied_bytes(const Machine& machine, const plan::Operation& operation) {
  if (!machine.position_first || operation.shape.batch == 1) return 0.0;
  const plan::Operand& first = operation.operands.front();                   // projected, or the gradient of y
  const bool forward = operation.kind == schedule::OpKind::kMambaForward ||  //
                       operation.kind == schedule::OpKind::kDeltaForward;
  const std::int64_t projected = forward ? first.range.elems : operation.operands[1].range.elems;
  const std::int64_t mixed = operation.shape.rows * operation.shape.inner;
  constexpr std::int64_t kReadAndWritten = 4;  // 16 bits each
  return static_cast<double>(kReadAndWritten * (projected + mixed));
}

// Its products and what moves bytes are different kernels.
double scan_time_s(const Machine& machine, const plan::Operation& operation, double bytes) {
  workload::ClassRate products = machine.rate(workload::OpClass::kAttention);
  if (machine.scan_flops_per_s > 0.0) products.flops_per_s = machine.scan_flops_per_s;
  return products.seconds(operation.flops, 0.0) +
         kernel_time_s(machine, workload::OpClass::kMemory, 0.0, bytes + copied_bytes(machine, operation));
}

// What a product makes of its input in 16 bits first: copies by rows and by columns, of one byte each, of which the
// weight's gradient uses the second. Kernels that make an input in 8 bits have done so (norms, activations).
double narrowing_s(const Machine& machine, const plan::StepPlan& plan, const plan::Operation& operation) {
  using schedule::OpKind;
  const bool reads_first = operation.kind != OpKind::kLinearBackwardWeight &&
                           operation.kind != OpKind::kGroupedBackwardWeight && !operation.operands.empty();
  if (!reads_first) return 0.0;
  const plan::Range& input = operation.operands.front().range;
  const std::int64_t bytes = schedule::size_bytes(plan.buffers[static_cast<std::size_t>(input.buffer)].type);
  if (bytes == 1 && machine.separate_experts && operation.kind == OpKind::kGroupedForward)
    return kernel_time_s(machine, workload::OpClass::kMemory, 0.0, kQuantisedBytes * static_cast<double>(input.elems));
  if (bytes == 1) return 0.0;
  return kernel_time_s(machine, workload::OpClass::kMemory, 0.0, static_cast<double>(input.elems * (bytes + 2)));
}

}  // namespace

double operation_time_s(const Machine& machine, const plan::StepPlan& plan, const plan::Operation& operation) {
  if (plan::is_collective(operation.kind)) {
    const plan::GroupSpan span = plan::group_span(plan, operation.group, 0, machine.ranks_per_node);
    return collective_time_s(machine, operation.kind, span, operation.wire_bytes);
  }
  auto bytes = static_cast<double>(operation.bytes_read + operation.bytes_written);
  if (operation.kind == schedule::OpKind::kCrossEntropy) bytes *= machine.loss_factor;
  const workload::OpClass of = plan::class_of(operation);
  if (plan::traits_of(operation.kind).family == plan::OpFamily::kScan) return scan_time_s(machine, operation, bytes);
  if (of == workload::OpClass::kAttention) return attention_time_s(machine, operation, bytes);
  if (of != workload::OpClass::kProduct) return kernel_time_s(machine, of, operation.flops, bytes);
  const bool narrow = machine.narrow_products && operation.layer >= 0;
  const workload::ClassRate& rate = narrow ? *machine.narrow_products : machine.rate(of);
  return product_time_s(machine, operation, rate, bytes) + (narrow ? narrowing_s(machine, plan, operation) : 0.0);
}

// CPU ranks. Computing, copying and reducing takes time of cores that all threads share. So a collective has two parts:
// the emulated network's time, in which its thread sleeps, and the core time of moving the data through this machine's
// memory. It ends when both are over.
namespace {

workload::ClassRate slower(workload::ClassRate rate, double factor) {
  rate.launch_s *= factor;
  rate.flops_per_s /= factor;
  rate.bytes_per_s /= factor;
  return rate;
}

double factor_of(workload::OpClass of, const TimeCalibration& calibration) {
  switch (of) {
    case workload::OpClass::kProduct:
    case workload::OpClass::kAttention:
      return calibration.products;
    case workload::OpClass::kMemory:
    case workload::OpClass::kOptimizer:
      return calibration.memory;
    case workload::OpClass::kCopy:
    case workload::OpClass::kHost:
      return calibration.host;
  }
  return 1.0;
}

}  // namespace

Machine make_local_machine(const workload::ClusterSpec& cluster, const TimeCalibration& calibration) {
  const workload::MeasuredMachine& measured = *cluster.measured;
  if (measured.key.ranks != cluster.ranks()) {
    throw UserError("this machine was measured for another number of ranks", "measure it again");
  }
  Machine machine;
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    machine.rates[i] = slower(measured.rates[i], factor_of(static_cast<workload::OpClass>(i), calibration));
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

}  // namespace krigtune::cost
