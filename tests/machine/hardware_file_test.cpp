// Measured rates beside expected ones, and as a file that sessions name. The measurements come from models with known
// rates.
#include "machine/hardware_file.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/json.h"
#include "cost/machine.h"
#include "machine/compared_rates.h"
#include "trial/temporary_directory.h"

namespace krigtune::hardware_file_test {

using workload::CopyKind;
using workload::ExchangeKind;
using workload::RankScope;

workload::ClusterSpec cluster_of(const std::string& more) {
  return workload::read_cluster(parse_json("{" + more + "}", "c.json"), "c.json", "");
}
workload::ClusterSpec two_nodes() {
  return cluster_of(R"("nodes": 2, "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-ndr-400")");
}

/// Returns the measurements of a machine that is as the cluster says, for all sizes of krigtune-bench-cuda.
workload::MeasuredRates rates_of(const workload::ClusterSpec& cluster) {
  workload::MeasuredRates rates;
  rates.device = "cuda";
  rates.processor = "NVIDIA H100 80GB HBM3";
  rates.memory_bytes = cluster.device->memory.count;
  for (std::int64_t rank = 0; rank < cluster.ranks(); ++rank) rates.nodes.push_back(rank / cluster.gpus_per_node);
  for (std::int64_t node = 0; node < cluster.nodes; ++node) rates.hosts.push_back("node" + std::to_string(node));
  const auto times = [](double seconds) { return workload::RankTimes{seconds, seconds, 0}; };
  for (const auto precision : {workload::Precision::kFp32, workload::Precision::kBf16, workload::Precision::kFp16}) {
    workload::Workload workload;
    workload.precision = precision;
    const cost::Machine machine = cost::make_machine(workload, cluster);
    for (const std::int64_t side : {1024, 2048, 4096, 8192}) {
      workload::MeasuredProduct one{precision, side, side, side, {}};
      one.times = times(cost::kernel_time_s(machine, workload::OpClass::kProduct, one.flops(), 0.0));
      rates.products.push_back(one);
    }
  }
  const cost::Machine machine = cost::make_machine({}, cluster);
  constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;
  const auto copy_s = [&](workload::OpClass of) { return cost::kernel_time_s(machine, of, 0.0, 2.0 * kGibibyte); };
  rates.copies = {{CopyKind::kMemory, kGibibyte, times(copy_s(workload::OpClass::kMemory))},
                  {CopyKind::kToDevice, kGibibyte, times(copy_s(workload::OpClass::kCopy))},
                  {CopyKind::kToHost, kGibibyte, times(copy_s(workload::OpClass::kCopy))}};
  const auto add = [&](ExchangeKind kind, schedule::OpKind of, RankScope scope, plan::GroupSpan span) {
    for (std::int64_t bytes = 1024; bytes <= kGibibyte; bytes *= 4) {
      workload::MeasuredCollective one{kind, scope, span.ranks, span.nodes, bytes, 1.0};
      one.seconds = cost::collective_time_s(machine, of, span, std::llround(one.wire_bytes()));
      rates.collectives.push_back(one);
    }
  };
  for (const auto& [scope, span] : {std::pair(RankScope::kNode, plan::GroupSpan{8, 1, 8}),
                                    std::pair(RankScope::kAcross, plan::GroupSpan{2, 2, 1})}) {
    add(ExchangeKind::kAllReduce, schedule::OpKind::kAllReduce, scope, span);
    add(ExchangeKind::kAllGather, schedule::OpKind::kAllGather, scope, span);
    add(ExchangeKind::kReduceScatter, schedule::OpKind::kReduceScatter, scope, span);
  }
  return rates;
}

// This is the same cluster with a network of 11 GB/s and 40 us, NVLink at half its rate, and slower products, memory
// and copies to the host than stated.
constexpr const char* kSlow =
    R"("nodes": 2, "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-ndr-400", "hardware": {
  "gpus": {"h100-80gb": {"gemm_fraction": 0.4, "gemm_half_flops": 2e10, "memory_fraction": 0.5, "host_bytes_per_s": 2e10}},
  "links": {"ib-ndr-400": {"latency_us": 40, "reached": 0.22}, "nvlink4": {"reached": 0.4}}})";

TEST(ComparedRates, AreEqualWhereTheMachineIsAsExpected) {
  const auto compared = machine::compare_rates(rates_of(two_nodes()), two_nodes());
  // Products in three precisions, three copies, three collectives in two scopes, large and small.
  EXPECT_EQ(compared.size(), 3U + 3U + 3U * 2U * 2U);
  for (const machine::ComparedRate& rate : compared) {
    EXPECT_NEAR(rate.measured / rate.expected, 1.0, 1e-6) << rate.what;
    EXPECT_FALSE(rate.is_slow) << rate.what;
  }
}

TEST(ComparedRates, NameWhatIsSlowerAndWhatToLookAt) {
  const workload::MeasuredRates rates = rates_of(cluster_of(kSlow));
  std::vector<std::string> sentences;
  std::map<machine::Slowness, int> slow;
  for (const machine::ComparedRate& rate : machine::compare_rates(rates, two_nodes())) {
    if (!rate.is_slow) continue;
    ++slow[rate.slowness];
    sentences.push_back(machine::sentence_of(rate, rates));
  }
  EXPECT_GE(slow[machine::Slowness::kDevice], 4);   // products and memory
  EXPECT_EQ(slow[machine::Slowness::kHost], 2);     // there and back
  EXPECT_GE(slow[machine::Slowness::kNode], 3);     // bandwidth
  EXPECT_GE(slow[machine::Slowness::kNetwork], 4);  // bandwidth and latency
  const std::string all = testing::PrintToString(sentences);
  // 0.22 and 0.9 of 50 GB/s, minus the start of a collective.
  EXPECT_NE(
      all.find("all-reduce between nodes: 11 GB/s of 44.8 expected, at 1.00 GiB; look at which network NCCL uses"),
      std::string::npos)
      << all;
}

TEST(ComparedRates, AreLeftOutWhereNothingIsKnown) {
  EXPECT_TRUE(machine::compare_rates(rates_of(two_nodes()), {}).empty());
  // If a machine was measured in fp32, products in other precisions are not compared.
  workload::ClusterSpec local;
  local.gpus_per_node = 16;
  local.measured.emplace();
  local.measured->key.ranks = 16;
  local.measured->rates[static_cast<std::size_t>(workload::OpClass::kProduct)].flops_per_s = 1e12;
  const auto compared = machine::compare_rates(rates_of(two_nodes()), local);
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_EQ(compared[0].what, "products in fp32");
  EXPECT_NEAR(compared[0].expected, 1000.0, 1e-9);
}

TEST(SlowRank, IsNamedWithItsMachine) {
  workload::MeasuredRates rates = rates_of(two_nodes());
  EXPECT_FALSE(machine::slow_rank(rates));
  for (workload::MeasuredProduct& one : rates.products) one.times = {one.times.median_s, 1.4 * one.times.median_s, 11};
  const auto slow = machine::slow_rank(rates);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->rank, 11);
  EXPECT_EQ(slow->host, "node1");
  EXPECT_NEAR(slow->times, 1.4, 1e-9);
}

TEST(HardwareFile, FindsTheNumbersThatTheTimesWereMadeWith) {
  const workload::ClusterSpec truth = cluster_of(kSlow);
  const auto found = machine::fit_hardware(rates_of(truth), two_nodes(), workload::Precision::kBf16);
  EXPECT_EQ(found.device.id, "h100-80gb");
  EXPECT_NEAR(found.device.gemm_fraction, 0.4, 0.01);
  EXPECT_NEAR(found.device.gemm_half_flops / 2e10, 1.0, 0.1);
  EXPECT_EQ(found.device.bf16_flops_per_s,
            truth.device->bf16_flops_per_s);  // as stated, because the measurement does not exceed it
  EXPECT_NEAR(found.device.memory_fraction, 0.5, 0.01);
  EXPECT_NEAR(found.device.host_bytes_per_s / 2e10, 1.0, 0.01);
  EXPECT_EQ(found.device.attention_fraction, truth.device->attention_fraction);  // not measured
  ASSERT_TRUE(found.intra && found.inter);
  EXPECT_EQ(found.intra->link.id, "nvlink4");
  EXPECT_NEAR(found.intra->link.bytes_per_s * found.intra->link.reached / (0.4 * 450e9), 1.0, 0.01);
  EXPECT_EQ(found.inter->link.id, "ib-ndr-400");
  EXPECT_NEAR(found.inter->link.bytes_per_s * found.inter->link.reached / 11e9, 1.0, 0.02);
  EXPECT_NEAR(found.inter->link.latency_s / 40e-6, 1.0, 0.15);
  EXPECT_LE(found.inter->mean_log_error, 0.05);
}

// A session that names the same ids predicts with the measured rates, which is the purpose of the file.
TEST(HardwareFile, IsUsedByClustersThatNameIt) {
  const TemporaryDirectory directory;
  const workload::ClusterSpec truth = cluster_of(kSlow);
  const auto found = machine::fit_hardware(rates_of(truth), two_nodes(), workload::Precision::kBf16);
  directory.write("hw.json", machine::hardware_file(found).dump());
  const auto cluster = workload::read_cluster(
      parse_json(
          R"({"nodes": 2, "gpus_per_node": 8, "gpu": "h100-80gb", "network": "ib-ndr-400", "hardware": "hw.json"})",
          "s.json"),
      "s.json", "", directory.path());
  const plan::GroupSpan across{2, 2, 1};
  const auto seconds = [&](const workload::ClusterSpec& of) {
    return cost::collective_time_s(cost::make_machine({}, of), schedule::OpKind::kAllReduce, across, 100'000'000);
  };
  EXPECT_NEAR(seconds(cluster) / seconds(truth), 1.0, 0.03);
  EXPECT_GE(seconds(cluster), 3.0 * seconds(two_nodes()));
  EXPECT_EQ(machine::cluster_using(found, rates_of(truth), "hw.json").dump(),
            R"({"nodes":2,"gpus_per_node":8,"gpu":"h100-80gb","interconnect":"nvlink4","network":"ib-ndr-400",)"
            R"("hardware":"hw.json"})");
}

// A GPU that is not in the table, and CPU ranks, get complete entries.
TEST(HardwareFile, StandsForMachinesOfNoTable) {
  const TemporaryDirectory directory;
  for (const std::string device : {"cuda", "cpu"}) {
    workload::MeasuredRates rates = rates_of(two_nodes());
    rates.device = device;
    const auto found = machine::fit_hardware(rates, std::nullopt, workload::Precision::kFp32);
    directory.write("hw.json", machine::hardware_file(found).dump());
    Json json = machine::cluster_using(found, rates, "hw.json");
    EXPECT_EQ(json["gpu"], device == "cuda" ? "measured-gpu" : "cpu-rank");
    const auto cluster = workload::read_cluster(json, "s.json", "", directory.path());
    workload::Workload bf16;
    bf16.precision = workload::Precision::kBf16;
    const double flops = 2.0 * std::pow(8192.0, 3);
    const auto product_s = [&](const workload::ClusterSpec& of) {
      return cost::kernel_time_s(cost::make_machine(bf16, of), workload::OpClass::kProduct, flops, 0.0);
    };
    EXPECT_NEAR(product_s(cluster) / product_s(two_nodes()), 1.0, 0.1) << device;
    EXPECT_EQ(cluster.device->memory.count, rates.memory_bytes);
  }
}

TEST(HardwareFile, KeepsAnEmulatedNetworkOutOfIt) {
  workload::MeasuredRates rates = rates_of(two_nodes());
  rates.device = "cpu";
  rates.emulated_network = "eth-25";
  const auto found = machine::fit_hardware(rates, std::nullopt, workload::Precision::kFp32);
  EXPECT_FALSE(found.intra || found.inter);
  EXPECT_FALSE(machine::hardware_file(found).contains("links"));
}

TEST(NetworkId, IsReadFromTheKernel) {
  const TemporaryDirectory root;
  const auto file = [&](const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories((root.path() / path).parent_path());
    root.write(path, text);
  };
  EXPECT_EQ(machine::network_id_of(root.path()), std::nullopt);
  file("sys/class/net/lo/speed", "");
  file("sys/class/net/eth0/speed", "-1\n");
  EXPECT_EQ(machine::network_id_of(root.path()), std::nullopt);
  file("sys/class/net/eth0/speed", "25000\n");
  EXPECT_EQ(machine::network_id_of(root.path()), "eth-25");
  file("sys/class/net/eth0/speed", "1000\n");
  EXPECT_EQ(machine::network_id_of(root.path()), std::nullopt);  // no link in the table is that slow
  file("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  EXPECT_EQ(machine::network_id_of(root.path()), "ib-hdr-200");
  file("sys/class/infiniband/mlx5_1/ports/1/rate", "400 Gb/sec (4X NDR)\n");
  EXPECT_EQ(machine::network_id_of(root.path()), "ib-ndr-400");
}

TEST(UsualCluster, IsThatOfTheTablesGpu) {
  const auto cluster = machine::usual_cluster(rates_of(two_nodes()), "ib-ndr-400");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->gpu, "h100-80gb");
  EXPECT_EQ(cluster->network->inter.name, "ib-ndr-400");
  EXPECT_EQ(cluster->network->intra.name, "nvlink4");
  EXPECT_FALSE(machine::usual_cluster(rates_of(two_nodes()), std::nullopt));
  workload::MeasuredRates unknown = rates_of(two_nodes());
  unknown.processor = "NVIDIA X1";
  EXPECT_FALSE(machine::usual_cluster(unknown, "ib-ndr-400"));
}

}  // namespace krigtune::hardware_file_test
