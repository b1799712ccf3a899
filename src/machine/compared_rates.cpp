#include "machine/compared_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "cost/machine.h"
#include "schedule/exchange.h"

namespace krigtune::machine {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMicrosecondsPerS = 1e6;

// Empty if plan would not predict times.
std::optional<cost::Machine> expected_machine(const workload::ClusterSpec& cluster, workload::Precision precision) {
  if (cluster.device) {
    if (!(cost::peak_flops_per_s(*cluster.device, precision) > 0.0)) return std::nullopt;
    workload::Workload workload;
    workload.precision = precision;
    return cost::make_machine(workload, cluster);
  }
  if (cluster.measured) return cost::make_local_machine(cluster, {});
  return std::nullopt;
}

// For CPU ranks only an emulated network can be compared. The rates of MeasuredMachine cannot: their copies and
// exchanges are those of a training step, which stay in the caches and do not include waiting for all ranks.
std::optional<cost::Machine> expected_network(const workload::ClusterSpec& cluster) {
  if (cluster.device) return expected_machine(cluster, workload::Precision::kFp32);
  if (!cluster.emulated_network) return std::nullopt;
  cost::Machine machine;
  machine.network = *cluster.emulated_network;
  return machine;
}

std::string size_text(std::int64_t bytes) {
  const Bytes size{bytes};
  return to_string(size);
}

const char* name_of(workload::ExchangeKind kind) {
  switch (kind) {
    case workload::ExchangeKind::kAllReduce:
      return "all-reduce";
    case workload::ExchangeKind::kReduceScatter:
      return "reduce-scatter";
    case workload::ExchangeKind::kAllGather:
      return "all-gather";
  }
  return "";
}

class Comparison {
 public:
  Comparison(const workload::MeasuredRates& rates, const workload::ClusterSpec& cluster)
      : rates_(rates), cluster_(cluster) {}

  std::vector<ComparedRate> run() {
    for (const auto precision : {workload::Precision::kFp32, workload::Precision::kBf16, workload::Precision::kFp16}) {
      add_product(precision);
    }
    // The memory rate does not depend on the precision; all devices of the table support fp32.
    if (cluster_.device) {
      const auto machine = expected_machine(cluster_, workload::Precision::kFp32);
      for (const auto kind :
           {workload::CopyKind::kMemory, workload::CopyKind::kToDevice, workload::CopyKind::kToHost}) {
        add_copy(*machine, kind);
      }
    }
    if (const auto machine = expected_network(cluster_)) {
      for (const auto scope : {workload::RankScope::kNode, workload::RankScope::kAcross, workload::RankScope::kAll}) {
        for (const auto kind : {workload::ExchangeKind::kAllReduce, workload::ExchangeKind::kAllGather,
                                workload::ExchangeKind::kReduceScatter}) {
          add_collective(*machine, scope, kind);
        }
      }
    }
    return std::move(compared_);
  }

 private:
  void add_rate(ComparedRate rate) {
    rate.is_slow = rate.measured < kSlowRate * rate.expected;
    compared_.push_back(std::move(rate));
  }

  void add_product(workload::Precision precision) {
    const workload::MeasuredProduct* largest = nullptr;
    for (const workload::MeasuredProduct& one : rates_.products) {
      if (one.precision == precision && (largest == nullptr || one.flops() > largest->flops())) largest = &one;
    }
    // A measured machine was measured in only one precision.
    if (cluster_.measured && cluster_.measured->key.precision != precision) return;
    const auto machine = expected_machine(cluster_, precision);
    if (largest == nullptr || !machine) return;
    const double expected_s = cost::kernel_time_s(*machine, workload::OpClass::kProduct, largest->flops(), 0.0);
    if (!(expected_s > 0.0)) return;
    add_rate({fmt::format("products in {}", workload::to_string(precision)),
              fmt::format("{} x {} x {}", largest->rows, largest->cols, largest->depth), "GFLOP/s",
              largest->flops() / largest->times.median_s / kGiga, largest->flops() / expected_s / kGiga, false, false,
              Slowness::kDevice});
  }

  // Counts the bytes read and written, like the models.
  void add_copy(const cost::Machine& machine, workload::CopyKind kind) {
    const workload::MeasuredCopy* largest = nullptr;
    for (const workload::MeasuredCopy& one : rates_.copies) {
      if (one.kind == kind && (largest == nullptr || one.bytes > largest->bytes)) largest = &one;
    }
    if (largest == nullptr) return;
    const workload::OpClass of =
        kind == workload::CopyKind::kMemory ? workload::OpClass::kMemory : workload::OpClass::kCopy;
    const double moved = 2.0 * static_cast<double>(largest->bytes);
    const double expected_s = cost::kernel_time_s(machine, of, 0.0, moved);
    if (!(expected_s > 0.0)) return;
    const double bytes = kind == workload::CopyKind::kMemory ? moved : static_cast<double>(largest->bytes);
    add_rate({kind == workload::CopyKind::kMemory ? "memory copies (read and written)"
                                                  : fmt::format("copies {}", workload::to_string(kind)),
              size_text(largest->bytes), "GB/s", bytes / largest->times.median_s / kGiga, bytes / expected_s / kGiga,
              false, false, kind == workload::CopyKind::kMemory ? Slowness::kDevice : Slowness::kHost});
  }

  void add_collective(const cost::Machine& machine, workload::RankScope scope, workload::ExchangeKind kind) {
    const workload::MeasuredCollective* largest = nullptr;
    const workload::MeasuredCollective* smallest = nullptr;
    for (const workload::MeasuredCollective& one : rates_.collectives) {
      if (one.scope != scope || one.kind != kind) continue;
      if (largest == nullptr || one.bytes > largest->bytes) largest = &one;
      if (smallest == nullptr || one.bytes < smallest->bytes) smallest = &one;
    }
    if (largest == nullptr) return;
    const std::string what = fmt::format("{} {}", name_of(kind), workload::to_string(scope));
    const Slowness slowness = scope == workload::RankScope::kNode ? Slowness::kNode : Slowness::kNetwork;
    const double expected_s = expected_time_s(machine, *largest);
    if (expected_s > 0.0) {
      add_rate({what, size_text(largest->bytes), "GB/s", largest->bus_bytes_per_s() / kGiga,
                largest->wire_bytes() / expected_s / kGiga, false, false, slowness});
    }
    const double least_s = expected_time_s(machine, *smallest);
    if (smallest == largest || !(least_s > 0.0)) return;
    ComparedRate latency{what,
                         size_text(smallest->bytes),
                         "us",
                         kMicrosecondsPerS * smallest->seconds,
                         kMicrosecondsPerS * least_s,
                         true,
                         false,
                         slowness};
    latency.is_slow = latency.measured > kSlowLatency * latency.expected;
    compared_.push_back(std::move(latency));
  }

  double expected_time_s(const cost::Machine& machine, const workload::MeasuredCollective& one) const {
    const std::int64_t on_node = one.scope == workload::RankScope::kAcross ? 1 : rates_.ranks_per_node();
    const plan::GroupSpan span{one.ranks, one.nodes, on_node};
    return cost::collective_time_s(machine, schedule::collective_of(one.kind), span, std::llround(one.wire_bytes()));
  }

  const workload::MeasuredRates& rates_;
  const workload::ClusterSpec& cluster_;
  std::vector<ComparedRate> compared_;
};

std::string look_at(Slowness slowness, bool on_gpus) {
  switch (slowness) {
    case Slowness::kDevice:
    case Slowness::kStraggler:
      return on_gpus
                 ? "its clocks, power and temperature (nvidia-smi -q -d CLOCK,POWER,PERFORMANCE), and other processes "
                   "on it (nvidia-smi)"
                 : "other processes (top), the governor of the cores, and how many cores each rank may use";
    case Slowness::kHost:
      return "the generation and width of PCIe (nvidia-smi -q -d PCIE), and whether the process runs on the cores next "
             "to "
             "its GPU (nvidia-smi topo -m)";
    case Slowness::kNode:
      return on_gpus ? "NVLink (nvidia-smi nvlink --status), P2P (nvidia-smi topo -p2p r), NCCL_P2P_DISABLE and "
                       "NCCL_SHM_DISABLE"
                     : "cores that ranks share, and other processes (top)";
    case Slowness::kNetwork:
      return on_gpus ? "which network NCCL uses (NCCL_DEBUG=INFO prints NET/IB or NET/Socket), NCCL_IB_DISABLE, "
                       "NCCL_SOCKET_IFNAME, GPUDirect (nvidia_peermem), the rate of the port (ibstat)"
                     : "the rate and the MTU of the interface (ip link, ethtool), and other traffic";
  }
  return "";
}

}  // namespace

const char* to_string(Health health) {
  switch (health) {
    case Health::kOk:
      return "OK";
    case Health::kWarn:
      return "WARN";
    case Health::kFail:
      return "FAIL";
    case Health::kSkip:
      return "SKIP";
  }
  return "";
}

std::vector<ComparedRate> compare_rates(const workload::MeasuredRates& rates, const workload::ClusterSpec& cluster) {
  return Comparison(rates, cluster).run();
}

std::optional<SlowRank> slow_rank(const workload::MeasuredRates& rates) {
  const workload::MeasuredProduct* longest = nullptr;
  for (const workload::MeasuredProduct& one : rates.products) {
    if (longest == nullptr || one.times.median_s > longest->times.median_s) longest = &one;
  }
  if (longest == nullptr || longest->times.slowest_s < kSlowRank * longest->times.median_s) return std::nullopt;
  const std::int64_t rank = longest->times.slowest_rank;
  if (rank >= rates.ranks()) return std::nullopt;
  const auto node = static_cast<std::size_t>(rates.nodes[static_cast<std::size_t>(rank)]);
  return SlowRank{rank, rates.hosts[node], longest->times.slowest_s / longest->times.median_s};
}

std::string sentence_of(const ComparedRate& rate, const workload::MeasuredRates& rates) {
  const bool on_gpus = rates.device == "cuda";
  const std::string found =
      rate.is_time
          ? fmt::format("{} takes {:.3g} us where {:.3g} us are expected", rate.what, rate.measured, rate.expected)
          : fmt::format("{}: {:.3g} {} of {:.3g} expected", rate.what, rate.measured, rate.unit, rate.expected);
  return fmt::format("{}, at {}; look at {}", found, rate.at, look_at(rate.slowness, on_gpus));
}

std::string sentence_of(const SlowRank& rank) {
  return fmt::format(
      "rank {} on {} takes {:.2f} times as long for matrix products as the median rank, and all others wait for it; "
      "check its clocks, temperature and other processes",
      rank.rank, rank.host, rank.times);
}

}  // namespace krigtune::machine
