// The session's blocks "cluster" and "memory".
#include <gtest/gtest.h>
#include <unistd.h>

#include "krigtune/core/error.h"
#include "krigtune/core/json.h"
#include "krigtune/workload/workload.h"
#include "user_error.h"

namespace krigtune {
namespace {

ClusterSpec cluster(const std::string& json) { return read_cluster(parse_json(json, "s.json"), "s.json", "/cluster"); }
MemorySpec memory(const std::string& json) { return read_memory(parse_json(json, "s.json"), "s.json", "/memory"); }

TEST(Cluster, LocalIsTwoRanksOnOneNode) {
  const ClusterSpec local = cluster("\"local\"");
  EXPECT_EQ(local.nodes, 1);
  EXPECT_EQ(local.ranks(), 2);
  EXPECT_EQ(local.gpu, "local");
  EXPECT_FALSE(local.emulated_network);
  EXPECT_EQ(cluster(R"({"gpus_per_node": 4})").ranks(), 4);
}

TEST(Network, HasTheLineRateInBytes) {
  const std::tuple<const char*, double, double> kLines[] = {{"eth-10", 1.25e9, 30e-6},  {"eth-25", 3.125e9, 30e-6},
                                                            {"eth-100", 12.5e9, 12e-6}, {"ib-edr-100", 12.5e9, 5e-6},
                                                            {"ib-hdr-200", 25e9, 5e-6}, {"ib-ndr-400", 50e9, 5e-6}};
  for (const auto& [id, bytes_per_s, latency_s] : kLines) {
    const auto network = cluster(std::string(R"({"emulate_network": ")") + id + "\"}").emulated_network;
    ASSERT_TRUE(network) << id;
    EXPECT_EQ(network->name, id);
    EXPECT_DOUBLE_EQ(network->bytes_per_s, bytes_per_s) << id;
    EXPECT_DOUBLE_EQ(network->latency_s, latency_s) << id;
  }
  EXPECT_EQ(cluster(R"({"emulate_network": "IB-HDR-200"})").emulated_network->name, "ib-hdr-200");
}

TEST(Network, MayBeStated) {
  const auto network = cluster(R"({"emulate_network": {"latency_us": 30, "bytes_per_s": 3e9}})").emulated_network;
  EXPECT_EQ(network->name, "30 us + 3000 MB/s");
  EXPECT_DOUBLE_EQ(network->latency_s, 30e-6);
  EXPECT_DOUBLE_EQ(network->bytes_per_s, 3e9);
}

TEST(Cluster, SurvivesWritingAndReading) {
  for (const char* json :
       {R"({"nodes":1,"gpus_per_node":2,"gpu":"local"})",
        R"({"nodes":1,"gpus_per_node":4,"gpu":"local","emulate_network":"eth-25"})",
        R"({"nodes":1,"gpus_per_node":3,"gpu":"local","emulate_network":{"latency_us":30.7,"bytes_per_s":3000000000}})",
        R"({"nodes":1,"gpus_per_node":3,"gpu":"local","emulate_network":{"latency_us":0,"bytes_per_s":0.1}})"}) {
    EXPECT_EQ(to_json(cluster(json)).dump(), json);
  }
  for (double latency_us = 0.1; latency_us < 1000.0; latency_us *= 1.1) {
    Json json = {{"emulate_network", {{"latency_us", latency_us}, {"bytes_per_s", 1e9}}}};
    const double once = cluster(json.dump()).emulated_network->latency_s;
    EXPECT_DOUBLE_EQ(cluster(to_json(cluster(json.dump())).dump()).emulated_network->latency_s, once) << latency_us;
  }
}

TEST(Cluster, RefusesWhatIsNotSupportedInOneClearLine) {
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu": "a100-80gb"})"); }),
            "s.json: /cluster/gpu: 'a100-80gb' is not supported yet; the only one so far is \"local\"");
  EXPECT_EQ(user_error_of([] { cluster(R"({"nodes": 2})"); }),
            "s.json: /cluster/nodes: 2 nodes are not supported; a local cluster has 1");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpus_per_node": 0})"); }),
            "s.json: /cluster/gpus_per_node: 0 ranks cannot train; write 1 to 1000000");
  EXPECT_EQ(
      user_error_of([] { cluster(R"({"network": "ib-hdr-200"})"); }),
      "s.json: /cluster/network: is not supported yet with gpu \"local\"; \"emulate_network\" imitates a network");
  EXPECT_EQ(user_error_of([] { cluster(R"({"emulate_network": "eth-26"})"); }),
            "s.json: /cluster/emulate_network: the network 'eth-26' is not known; did you mean 'eth-25'?");
  EXPECT_EQ(user_error_of([] { cluster(R"({"emulate_network": {"latency_us": 30}})"); }),
            "s.json: /cluster/emulate_network/bytes_per_s: a bandwidth above 0 is needed; write for example 3e9");
  EXPECT_EQ(user_error_of([] { cluster(R"({"emulate_network": {"latency_us": -1, "bytes_per_s": 1}})"); }),
            "s.json: /cluster/emulate_network/latency_us: a latency of 0 or more is needed; write for example 30");
  EXPECT_EQ(user_error_of([] { cluster("\"cloud\""); }),
            "s.json: /cluster: the cluster \"cloud\" is not known; write \"local\" or an object like "
            "{\"gpus_per_node\": 2}");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu_per_node": 2})"); }),
            "s.json: /cluster/gpu_per_node: unknown key; did you mean 'gpus_per_node'?");
}

TEST(Memory, ReadsItsBlockAndWritesItBack) {
  EXPECT_EQ(memory("{}").limit_gib, std::nullopt);
  EXPECT_DOUBLE_EQ(memory("{}").reserve_fraction, 0.05);
  for (const char* json : {R"({"limit_gib":null,"reserve_fraction":0.05,"model":"krigtune"})",
                           R"({"limit_gib":0.125,"reserve_fraction":0,"model":"krigtune"})"}) {
    EXPECT_EQ(to_json(memory(json)).dump(), json);
  }
}

TEST(Memory, RefusesWhatIsNoLimit) {
  EXPECT_EQ(
      user_error_of([] { memory(R"({"model": "deepspeed-autotuner"})"); }),
      "s.json: /memory/model: the memory model 'deepspeed-autotuner' is not supported yet; the only one so far is "
      "\"krigtune\"");
  EXPECT_THROW(memory(R"({"limit_gib": 0})"), UserError);
  EXPECT_THROW(memory(R"({"limit_gib": 1e300})"), UserError);
  EXPECT_THROW(memory(R"({"reserve_fraction": 1})"), UserError);
  EXPECT_THROW(memory(R"({"reserve_fraction": -0.1})"), UserError);
}

TEST(MemoryLimit, IsTheStatedOnePerRank) {
  EXPECT_EQ(memory_limit_per_rank(memory(R"({"limit_gib": 1.5})"), cluster(R"({"gpus_per_node": 4})")),
            (Bytes{1'610'612'736}));
}

TEST(MemoryLimit, IsElseTheMachinesMemoryOverItsRanks) {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  for (const int ranks : {1, 2, 4}) {
    const ClusterSpec local = cluster("{\"gpus_per_node\": " + std::to_string(ranks) + "}");
    const double share = static_cast<double>(memory_limit_per_rank({}, local).count);
    EXPECT_NEAR(share * ranks / machine, 1.0, 0.01);
  }
}

}  // namespace
}  // namespace krigtune
