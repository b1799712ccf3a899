// The machine: tables of GPUs and links, the user's own hardware, a measured machine.
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

namespace krigtune::hardware_test {

workload::ClusterSpec cluster(const std::string& json) {
  return workload::read_cluster(parse_json(json, "s.json"), "s.json", "/cluster");
}

// The product that reaches half the rate: 22 us at the full rate, or fitted to measured products.
double half_flops(const workload::DeviceSpec& device) {
  if (device.id.starts_with("a100")) return 5e9;
  if (device.id.starts_with("v100") && !device.id.ends_with("pcie")) return 2e9;
  return 22e-6 * device.gemm_fraction * device.fp16_flops_per_s;
}

TEST(Device, HasTheFiguresOfTheTable) {
  const CsvTable table = parse_csv(read_text(KRIGTUNE_ROOT "/experiments/data/gpus.csv"), "gpus.csv");
  const CsvTable links = parse_csv(read_text(KRIGTUNE_ROOT "/experiments/data/interconnects.csv"), "interconnects.csv");
  const std::vector<std::string> ids = workload::device_names();
  ASSERT_EQ(ids.size(), table.rows.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {  // in the table's order
    const auto cell = [&](const char* column) { return table.rows[i][static_cast<std::size_t>(table.column(column))]; };
    const auto number = [&](const char* column) { return cell(column).empty() ? 0.0 : std::stod(cell(column)); };
    const workload::DeviceSpec device = workload::device_of(ids[i], "");
    EXPECT_EQ(device.memory, from_gib(number("memory_visible_GiB"))) << ids[i];
    EXPECT_DOUBLE_EQ(device.fp32_flops_per_s, number("fp32_TF") * 1e12) << ids[i];
    EXPECT_DOUBLE_EQ(device.fp16_flops_per_s, number("fp16_dense_TF") * 1e12) << ids[i];
    EXPECT_DOUBLE_EQ(device.bf16_flops_per_s, number("bf16_dense_TF") * 1e12) << ids[i];
    EXPECT_DOUBLE_EQ(device.memory_bytes_per_s, number("hbm_GBps") * 1e9) << ids[i];
    EXPECT_DOUBLE_EQ(device.gemm_fraction, number("gemm_frac_plan")) << ids[i];
    EXPECT_DOUBLE_EQ(device.memory_fraction, number("hbm_frac_plan")) << ids[i];
    EXPECT_DOUBLE_EQ(device.host_bytes_per_s, number("pcie_host_GBps_plan") * 1e9) << ids[i];
    EXPECT_LE(std::abs(device.gemm_half_flops / half_flops(device) - 1.0), 0.06) << ids[i];
    // Its usual link has the rate of its NVLink or xGMI; without these, it is the PCIe generation of the card.
    const double link_gb_per_s =
        number(cell("nvlink_GBps_per_dir").empty() ? "pcie_GBps_per_dir" : "nvlink_GBps_per_dir");
    const workload::Hardware known{{}, workload::known_links()};
    EXPECT_DOUBLE_EQ(known.link(device.interconnect, "").bytes_per_s, link_gb_per_s * 1e9) << ids[i];
  }
}

TEST(Device, IsFoundByItsIdWhateverTheCaseAndElseTheNearestIsNamed) {
  EXPECT_EQ(workload::device_of("H100-80GB", "x").id, "h100-80gb");
  EXPECT_EQ(user_error_of([] { workload::device_of("h100-80g", "s.json: /gpu"); }),
            "s.json: /gpu: the GPU 'h100-80g' is not known; did you mean 'h100-80gb'?");
}

TEST(Cluster, OfKnownGpusHasTheirLinks) {
  const workload::ClusterSpec two =
      cluster(R"({"nodes": 2, "gpus_per_node": 8, "gpu": "A100-80GB", "network": "ib-hdr-200"})");
  EXPECT_EQ(two.device->id, "a100-80gb");
  EXPECT_EQ(two.network->intra.name, "nvlink3");
  EXPECT_DOUBLE_EQ(two.network->intra.bytes_per_s, 0.78 * 300e9);
  EXPECT_EQ(two.network->inter.name, "ib-hdr-200");
  EXPECT_EQ(two.network->ranks_per_node, 8);
  EXPECT_FALSE(two.emulated_network);
  EXPECT_EQ(workload::memory_limit_per_rank({}, two), from_gib(79.2));
  const workload::ClusterSpec one = cluster(R"({"gpus_per_node": 4, "gpu": "a100-80gb", "interconnect": "pcie4"})");
  EXPECT_EQ(one.network->intra.name, "pcie4");
  EXPECT_EQ(one.network->intra.hop, workload::Hop::kPci);
}

constexpr const char* kOwn = R"({
  "links": {"My-Net": {"like": "eth-100", "bytes_per_s": 5e10}, "eth-25": {"reached": 0.5}},
  "gpus": {"my-gpu": {"like": "H100-80gb", "memory_gib": 94.5, "interconnect": "my-net", "launch_us": 7},
           "h100-80gb": {"gemm_fraction": 0.6},
           "other": {"memory_gib": 16, "fp32_flops_per_s": 1e13, "memory_bytes_per_s": 4e11, "host_bytes_per_s": 1e10}}})";

std::string with_own(const std::string& keys) {
  return R"({"gpus_per_node": 8, "hardware": )" + std::string(kOwn) + ", " + keys + "}";
}

TEST(Hardware, OfTheUserExtendsAndChangesTheTables) {
  const workload::DeviceSpec known = workload::device_of("h100-80gb", "");
  const workload::ClusterSpec own = cluster(with_own(R"("nodes": 2, "gpu": "MY-GPU", "network": "eth-25")"));
  EXPECT_EQ(own.gpu, "my-gpu");
  EXPECT_EQ(own.device->memory, from_gib(94.5));
  EXPECT_DOUBLE_EQ(own.device->launch_s, 7e-6);
  EXPECT_EQ(own.device->bf16_flops_per_s, known.bf16_flops_per_s);
  EXPECT_EQ(own.device->gemm_fraction, known.gemm_fraction);  // the next entry changes another one
  EXPECT_EQ(own.network->intra.name, "my-net");
  EXPECT_DOUBLE_EQ(own.network->intra.bytes_per_s, 0.85 * 5e10);
  EXPECT_DOUBLE_EQ(own.network->inter.bytes_per_s, 0.5 * 3.125e9);
  EXPECT_EQ(cluster(with_own(R"("gpu": "h100-80gb")")).device->gemm_fraction, 0.6);
  EXPECT_EQ(cluster(with_own(R"("gpu": "other", "interconnect": "pcie3")")).device->gemm_fraction, 0.7);
  EXPECT_EQ(cluster(with_own(R"("emulate_network": "my-net")")).emulated_network->bytes_per_s, 0.85 * 5e10);
}

TEST(Hardware, IsWrittenWhereTheTablesDoNotHaveIt) {
  for (const char* keys : {R"("nodes": 2, "gpu": "my-gpu", "network": "eth-25")", R"("gpu": "h100-80gb")",
                           R"("gpu": "other", "interconnect": "pcie3")", R"("emulate_network": "my-net")",
                           R"("emulate_network": "eth-25")",
                           R"("nodes": 2, "emulate_network": {"intra": "nvlink4", "inter": "eth-25"})"}) {
    const workload::ClusterSpec own = cluster(with_own(keys));
    const Json written = workload::to_json(own);
    const workload::ClusterSpec again = cluster(written.dump());
    EXPECT_EQ(workload::to_json(again), written) << keys;
    EXPECT_EQ(again.device, own.device) << keys;
    EXPECT_EQ(again.network.has_value(), own.network.has_value()) << keys;
    if (own.network) {
      EXPECT_EQ(again.network->inter, own.network->inter) << keys;
    }
    if (own.emulated_network) {
      EXPECT_EQ(again.emulated_network->name, own.emulated_network->name) << keys;
      EXPECT_EQ(again.emulated_network->bytes_per_s, own.emulated_network->bytes_per_s) << keys;
    }
  }
  EXPECT_FALSE(workload::to_json(cluster(with_own(R"("gpu": "l4-24gb")")))
                   .contains("hardware"));  // it uses no hardware of its own
}

TEST(Hardware, MayBeAFileBesideTheSession) {
  const std::filesystem::path directory = std::filesystem::temp_directory_path() / "krigtune-cluster-test";
  std::filesystem::create_directories(directory);
  write_atomically(directory / "my.json", kOwn);
  const auto read = [&](const char* json) {
    return workload::read_cluster(parse_json(json, "s.json"), "s.json", "/cluster", directory);
  };
  EXPECT_EQ(read(R"({"gpus_per_node": 1, "gpu": "my-gpu", "hardware": "my.json"})").device->memory, from_gib(94.5));
  write_atomically(directory / "bad.json", R"({"gpus": {"x": {"like": "h100-80gb", "memory_gb": 1}}})");
  EXPECT_EQ(user_error_of([&] { read(R"({"gpus_per_node": 1, "gpu": "x", "hardware": "bad.json"})"); }),
            (directory / "bad.json").string() + ": /gpus/x/memory_gb: unknown key; did you mean 'memory_gib'?");
  std::filesystem::remove_all(directory);
}

TEST(Hardware, ThatIsNoneIsRefusedInOneClearLine) {
  const auto refusal = [](const std::string& hardware) {
    const std::string text = R"({"gpus_per_node": 1, "gpu": "x", "hardware": )" + hardware + "}";
    return user_error_of([&] { cluster(text); });
  };
  const std::string at = "s.json: /cluster/hardware";
  EXPECT_EQ(refusal("3"), at + ": the name of a file or an object was expected, not number; write \"my.json\" or "
                               "{\"gpus\": {...}, \"links\": {...}}");
  EXPECT_EQ(refusal(R"({"gpu": {}})"), at + "/gpu: unknown key; did you mean 'gpus'?");
  EXPECT_EQ(refusal(R"({"gpus": {"x": {"like": "h100-80"}}})"),
            at + "/gpus/x/like: the GPU 'h100-80' is not known; did you mean 'h100-80gb'?");
  EXPECT_EQ(refusal(R"({"gpus": {"x": {"memory_gib": 8}}})"),
            at + "/gpus/x/fp32_flops_per_s: is missing; add it, or \"like\": an id that has it");
  EXPECT_EQ(refusal(R"({"gpus": {"x": {"like": "l4-24gb", "gemm_fraction": 1.5}}})"),
            at + "/gpus/x/gemm_fraction: 1.5 is out of range; write a number above 0 and up to 1");
  EXPECT_EQ(refusal(R"({"links": {"y": {"kind": "pcie", "bytes_per_s": 1}}})"),
            at + "/links/y/kind: unknown value 'pcie'; did you mean 'pci'?");
  EXPECT_EQ(refusal(R"({"links": {"y": {"latency_us": 1}}})"),
            at + "/links/y/bytes_per_s: is missing; add it, or \"like\": an id that has it");
  EXPECT_EQ(refusal(R"({"gpus": {"Local": {}}})"), at + "/gpus/Local: is not a name for it; give it another");
}

TEST(MeasuredMachine, SurvivesWritingAndReading) {
  workload::MeasuredMachine machine;
  machine.key = {"node7", "A CPU @ 2 GHz", "avx2", "0.1.0", 8, 4, workload::Precision::kBf16};
  for (std::size_t i = 0; i < machine.rates.size(); ++i) {
    const auto n = static_cast<double>(i + 1);
    machine.rates[i] = {1e-7 / n, 1e11 / n, 1e5 * n, 3e10 / n};
  }
  machine.rates[4].flops_per_s = std::numeric_limits<double>::infinity();  // unbounded, so it is left out
  machine.exchanges[2] = {1e-5 / 3.0, std::numeric_limits<double>::infinity(), 0.0, 1e9 / 7.0};
  machine.wake_s = 1e-5 / 7.0;
  machine.overlap_slowdown = 1.25;
  machine.step_overhead_s = 2e-5;
  const Json written = parse_json(workload::to_json(machine).dump(), "m");
  const workload::MeasuredMachine again = workload::read_measured_machine(written, "m", "");
  EXPECT_EQ(again.key, machine.key);
  EXPECT_EQ(again.rates, machine.rates);
  EXPECT_EQ(again.exchanges, machine.exchanges);
  EXPECT_EQ(again.wake_s, machine.wake_s);
  EXPECT_EQ(again.overlap_slowdown, machine.overlap_slowdown);
  EXPECT_EQ(again.step_overhead_s, machine.step_overhead_s);
  EXPECT_EQ(again.cores_per_rank(), 2.0);
  Json bad = written;
  bad["rates"]["product"]["flops_per_s"] = 0;
  EXPECT_EQ(user_error_of([&] { workload::read_measured_machine(bad, "m", ""); }),
            "m: /rates/product/flops_per_s: is out of range; measure again");
}

// "hardware" brings measurements of CPU ranks for "gpu": "local", and a session keeps them.
TEST(Hardware, HoldsMeasuredCpuRanks) {
  workload::MeasuredMachine machine;
  machine.key.ranks = 4;
  machine.key.precision = workload::Precision::kBf16;
  machine.wake_s = 3e-6;
  const Json json = {
      {"gpus_per_node", 4},
      {"hardware",
       {{"links", {{"slow", {{"like", "eth-10"}, {"reached", 0.5}}}}}, {"local", {workload::to_json(machine)}}}}};
  const workload::ClusterSpec spec = cluster(json.dump());
  ASSERT_TRUE(spec.hardware);
  EXPECT_EQ(spec.hardware->measured(4, workload::Precision::kFp32), nullptr);
  EXPECT_EQ(spec.hardware->measured(2, workload::Precision::kBf16), nullptr);
  const workload::MeasuredMachine* found = spec.hardware->measured(4, workload::Precision::kBf16);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->wake_s, 3e-6);
  // Writing and reading again gives the same.
  const Json written = workload::to_json(spec);
  EXPECT_TRUE(written["hardware"]["links"].contains("slow"));
  EXPECT_EQ(workload::to_json(cluster(written.dump())), written);
  Json bad = json;
  bad["hardware"]["local"] = 1;
  EXPECT_EQ(user_error_of([&] { cluster(bad.dump()); }),
            "s.json: /cluster/hardware/local: a list was expected; write what krigtune doctor --measure wrote");
  bad["hardware"]["local"] = {workload::to_json(machine)};
  bad["hardware"]["local"][0]["wake_s"] = -1;
  EXPECT_EQ(user_error_of([&] { cluster(bad.dump()); }),
            "s.json: /cluster/hardware/local/0/wake_s: is out of range; measure again");
  EXPECT_FALSE(cluster(R"({"gpus_per_node": 4})").hardware);
}

}  // namespace krigtune::hardware_test
