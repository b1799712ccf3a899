// The session's blocks "cluster" and "memory".
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "user_error.h"
#include "workload/hardware_tables.h"
#include "workload/workload.h"

namespace krigtune::cluster_test {

workload::ClusterSpec cluster(const std::string& json) {
  return workload::read_cluster(parse_json(json, "s.json"), "s.json", "/cluster");
}
workload::MemorySpec memory(const std::string& json) {
  return workload::read_memory(parse_json(json, "s.json"), "s.json", "/memory");
}

TEST(Cluster, LocalIsTwoRanksOnOneNode) {
  const workload::ClusterSpec local = cluster("\"local\"");
  EXPECT_EQ(local.nodes, 1);
  EXPECT_EQ(local.ranks(), 2);
  EXPECT_EQ(local.gpu, "local");
  EXPECT_FALSE(local.emulated_network);
  EXPECT_EQ(cluster(R"({"gpus_per_node": 4})").ranks(), 4);
}

// What collectives reach of the line rate: "nvlink4" of 450 GB/s was emulated as if they reached all of it.
TEST(Network, HasTheRateThatCollectivesReach) {
  const std::tuple<const char*, double, double> kLines[] = {
      {"eth-10", 0.9 * 1.25e9, 30e-6},    {"eth-25", 0.85 * 3.125e9, 30e-6}, {"eth-100", 0.85 * 12.5e9, 12e-6},
      {"ib-edr-100", 0.9 * 12.5e9, 5e-6}, {"ib-hdr-200", 0.9 * 25e9, 5e-6},  {"nvlink4", 0.8 * 450e9, 10e-6}};
  for (const auto& [id, bytes_per_s, latency_s] : kLines) {
    const auto network = cluster(std::string(R"({"emulate_network": ")") + id + "\"}").emulated_network;
    ASSERT_TRUE(network) << id;
    EXPECT_EQ(network->name, id);
    EXPECT_DOUBLE_EQ(network->bytes_per_s, bytes_per_s) << id;
    EXPECT_DOUBLE_EQ(network->latency_s, latency_s) << id;
  }
  EXPECT_EQ(cluster(R"({"emulate_network": "IB-HDR-200"})").emulated_network->name, "ib-hdr-200");
}

TEST(Network, HasTheFiguresOfTheTable) {
  const CsvTable table = parse_csv(read_text(KRIGTUNE_ROOT "/experiments/data/interconnects.csv"), "interconnects.csv");
  const std::vector<std::string> ids = workload::network_names();
  ASSERT_EQ(ids.size(), table.rows.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {  // in the table's order
    const auto number = [&](const char* column) {
      return std::stod(table.rows[i][static_cast<std::size_t>(table.column(column))]);
    };
    const Json flat = {{"emulate_network", ids[i]}};
    const Json both = {{"emulate_network", {{"intra", ids[i]}, {"inter", ids[i]}}}};
    const workload::EmulatedNetwork line = cluster(flat.dump()).emulated_network.value();
    const workload::NetworkLevel level = cluster(both.dump()).emulated_network.value().nodes.value().inter;
    EXPECT_DOUBLE_EQ(workload::known_links()[i].bytes_per_s, number("GBps_per_dir_per_gpu") * 1e9) << ids[i];
    EXPECT_DOUBLE_EQ(line.bytes_per_s, level.bytes_per_s) << ids[i];
    EXPECT_DOUBLE_EQ(line.latency_s, number("launch_latency_us_plan") * 1e-6) << ids[i];
    EXPECT_LE(std::abs(level.bytes_per_s - number("plan_GBps") * 1e9), 0.06e9) << ids[i];  // rounded in the table
  }
}

TEST(Network, MayHaveNodes) {
  const workload::ClusterSpec two =
      cluster(R"({"nodes": 2, "gpus_per_node": 4, "emulate_network": {"intra": "NVLink4", "inter": "ib-hdr-200"}})");
  const workload::EmulatedNetwork network = two.emulated_network.value();
  EXPECT_EQ(two.ranks(), 8);
  EXPECT_EQ(network.name, "nvlink4 + ib-hdr-200");
  EXPECT_EQ(network.nodes->ranks_per_node, 4);
  EXPECT_EQ(network.nodes->intra.hop, workload::Hop::kNvlink);
  EXPECT_EQ(network.bytes_per_s, network.nodes->inter.bytes_per_s);
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
        R"({"nodes":1,"gpus_per_node":8,"gpu":"v100-32gb","interconnect":"nvlink2"})",
        R"({"nodes":4,"gpus_per_node":8,"gpu":"mi300x-192gb","interconnect":"xgmi-mi300x","network":"ib-ndr-400"})",
        R"({"nodes":2,"gpus_per_node":2,"gpu":"local","emulate_network":{"intra":"nvlink4","inter":"eth-25"}})",
        R"({"nodes":1,"gpus_per_node":4,"gpu":"local","emulate_network":"eth-25"})",
        R"({"nodes":1,"gpus_per_node":3,"gpu":"local","emulate_network":{"latency_us":30.7,"bytes_per_s":3000000000}})",
        R"({"nodes":1,"gpus_per_node":3,"gpu":"local","emulate_network":{"latency_us":0,"bytes_per_s":0.1}})"}) {
    EXPECT_EQ(workload::to_json(cluster(json)).dump(), json);
  }
  for (double latency_us = 0.1; latency_us < 1000.0; latency_us *= 1.1) {
    Json json = {{"emulate_network", {{"latency_us", latency_us}, {"bytes_per_s", 1e9}}}};
    const double once = cluster(json.dump()).emulated_network->latency_s;
    EXPECT_DOUBLE_EQ(cluster(workload::to_json(cluster(json.dump())).dump()).emulated_network->latency_s, once)
        << latency_us;
  }
}

TEST(Cluster, RefusesWhatIsNotSupportedInOneClearLine) {
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu": "a100-80"})"); }),
            "s.json: /cluster/gpu: the GPU 'a100-80' is not known; did you mean 'a100-80gb'?");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu": "lokal"})"); }),
            "s.json: /cluster/gpu: the GPU 'lokal' is not known; did you mean 'local'?");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu": "l4-24gb"})"); }),
            "s.json: /cluster/gpus_per_node: is missing; write how many GPUs a node has");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu": "l4-24gb", "gpus_per_node": 8, "nodes": 2})"); }),
            "s.json: /cluster/network: is missing, and there are 2 nodes; write for example \"ib-ndr-400\"");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu": "l4-24gb", "gpus_per_node": 8, "interconnect": "pcie44"})"); }),
            "s.json: /cluster/interconnect: the network 'pcie44' is not known; did you mean 'pcie4'?");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu": "l4-24gb", "gpus_per_node": 8, "emulate_network": "eth-25"})"); }),
            "s.json: /cluster/emulate_network: emulates a network between CPU ranks; name the real one as \"network\", "
            "or write \"gpu\": \"local\"");
  EXPECT_EQ(user_error_of([] { cluster(R"({"nodes": 0})"); }),
            "s.json: /cluster/nodes: 0 is out of range; write an integer from 1 to 1e6");
  EXPECT_EQ(user_error_of([] { cluster(R"({"emulate_network": {"intra": "nvlink4"}})"); }),
            "s.json: /cluster/emulate_network/inter: is missing; add it");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpus_per_node": 0})"); }),
            "s.json: /cluster/gpus_per_node: 0 is out of range; write an integer from 1 to 1e6");
  EXPECT_EQ(user_error_of([] { cluster(R"({"network": "ib-hdr-200"})"); }),
            "s.json: /cluster/network: is not supported with gpu \"local\"; \"emulate_network\" emulates a network");
  EXPECT_EQ(user_error_of([] { cluster(R"({"emulate_network": "eth-26"})"); }),
            "s.json: /cluster/emulate_network: the network 'eth-26' is not known; did you mean 'eth-25'?");
  EXPECT_EQ(user_error_of([] { cluster(R"({"emulate_network": {"latency_us": 30}})"); }),
            "s.json: /cluster/emulate_network/bytes_per_s: is missing; add it");
  EXPECT_EQ(user_error_of([] { cluster(R"({"emulate_network": {"latency_us": -1, "bytes_per_s": 1}})"); }),
            "s.json: /cluster/emulate_network/latency_us: -1 is out of range; write a number of 0 or more");
  EXPECT_EQ(user_error_of([] { cluster("\"cloud\""); }),
            "s.json: /cluster: the cluster \"cloud\" is not known; write \"local\" or an object like "
            "{\"gpus_per_node\": 2}");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpu_per_node": 2})"); }),
            "s.json: /cluster/gpu_per_node: unknown key; did you mean 'gpus_per_node'?");
}

TEST(Memory, ReadsItsBlockAndWritesItBack) {
  EXPECT_EQ(memory("{}").limit_gib, std::nullopt);
  EXPECT_DOUBLE_EQ(memory("{}").reserve_fraction, 0.05);
  for (
      const char* json :
      {R"({"limit_gib":null,"host_limit_gib":null,"reserve_fraction":0.05,"model":"krigtune"})",
       R"({"limit_gib":0.125,"host_limit_gib":2,"reserve_fraction":0,"model":"deepspeed-autotuner","peak_factor":1.5})"}) {
    EXPECT_EQ(workload::to_json(memory(json)).dump(), json);
  }
}

TEST(Memory, RefusesWhatIsNoLimit) {
  EXPECT_EQ(user_error_of([] { memory(R"({"model": "guess"})"); }),
            "s.json: /memory/model: unknown value 'guess'; known: krigtune, deepspeed-autotuner");
  EXPECT_THROW(memory(R"({"host_limit_gib": 0})"), UserError);
  EXPECT_THROW(memory(R"({"limit_gib": 0})"), UserError);
  EXPECT_THROW(memory(R"({"limit_gib": 1e300})"), UserError);
  EXPECT_THROW(memory(R"({"reserve_fraction": 1})"), UserError);
  EXPECT_THROW(memory(R"({"reserve_fraction": -0.1})"), UserError);
  EXPECT_THROW(memory(R"({"peak_factor": 0})"), UserError);
  EXPECT_THROW(memory(R"({"peak_factor": 11})"), UserError);
}

TEST(MemoryLimit, IsTheStatedOnePerRank) {
  EXPECT_EQ(workload::memory_limit_per_rank(memory(R"({"limit_gib": 1.5})"), cluster(R"({"gpus_per_node": 4})")),
            (Bytes{1'610'612'736}));
}

TEST(MemoryLimit, IsElseTheMachinesMemoryOverItsRanks) {
  const double machine = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  for (const int ranks : {1, 2, 4}) {
    const workload::ClusterSpec local = cluster("{\"gpus_per_node\": " + std::to_string(ranks) + "}");
    const double share = static_cast<double>(workload::memory_limit_per_rank({}, local).count);
    EXPECT_NEAR(share * ranks / machine, 1.0, 0.01);
  }
}

}  // namespace krigtune::cluster_test
