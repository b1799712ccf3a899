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
  if (device.id.starts_with("a100") || device.id.starts_with("a800")) return 5e9;
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

// Dense figures and links of data sheets, read off a second time and not from the table.
TEST(Device, HasTheFiguresOfItsDataSheet) {
  struct Sheet {
    const char* id;
    double bf16_tflops, memory_gb_per_s, link_gb_per_s;
  };
  constexpr Sheet kSheets[] = {{"h20-96gb", 148.0, 4000.0, 450.0},
                               {"h800-80gb", 1979.0 / 2.0, 3350.0, 200.0},
                               {"a800-80gb", 624.0 / 2.0, 2039.0, 200.0},
                               {"h200-141gb", 1979.0 / 2.0, 4800.0, 450.0},
                               {"b200-180gb", 36e3 / 8 / 2, 8000.0, 900.0},
                               {"b300-288gb", 36e3 / 8 / 2, 8000.0, 900.0},
                               {"gb200-186gb", 360e3 / 72 / 2, 8000.0, 900.0},
                               {"gb300-288gb", 360e3 / 72 / 2, 8000.0, 900.0},
                               {"mi300x-192gb", 1307.4, 5300.0, 7 * 64.0},
                               {"mi325x-256gb", 1307.4, 6000.0, 7 * 64.0},
                               {"mi355x-288gb", 2516.6, 8000.0, 7 * 76.8},
                               {"rtx5090-32gb", 209.5, 1792.0, 63.0},
                               {"rtx6000ada-48gb", 1457.0 / 4, 960.0, 31.5},
                               {"rtxpro6000-96gb", 4030.0 / 8, 1792.0, 63.0},
                               {"a6000-48gb", 309.7 / 2, 768.0, 31.5},
                               {"l40s-48gb", 733.0 / 2, 864.0, 31.5}};
  const workload::Hardware known{{}, workload::known_links()};
  for (const Sheet& sheet : kSheets) {
    const workload::DeviceSpec device = workload::device_of(sheet.id, "");
    EXPECT_LE(std::abs(device.bf16_flops_per_s / (sheet.bf16_tflops * 1e12) - 1.0), 0.02) << sheet.id;
    EXPECT_DOUBLE_EQ(device.memory_bytes_per_s, sheet.memory_gb_per_s * 1e9) << sheet.id;
    EXPECT_DOUBLE_EQ(known.link(device.interconnect, "").bytes_per_s, sheet.link_gb_per_s * 1e9) << sheet.id;
  }
  EXPECT_EQ(workload::device_of("t4-16gb", "").bf16_flops_per_s, 0.0);  // before Ampere
}

TEST(Device, IsFoundByTheNamesThatDriversAndPeopleWrite) {
  const std::pair<const char*, const char*> kNames[] = {
      {"NVIDIA H200", "h200-141gb"},
      {"NVIDIA GeForce RTX 5090", "rtx5090-32gb"},
      {"nvidia_geforce_rtx_5090", "rtx5090-32gb"},
      {"AMD Instinct MI300X", "mi300x-192gb"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx6000ada-48gb"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtxpro6000-96gb"},
      {"NVIDIA RTX A6000", "a6000-48gb"},
      {"Tesla T4", "t4-16gb"},
      {"NVIDIA-A100-SXM4-80GB", "a100-80gb"},
      {"Tesla V100-SXM2-32GB", "v100-32gb"},
      {"gb200", "gb200-186gb"},
      {"H100", "h100-80gb"},
      {"H20", "h20-96gb"},
      {"MI355X", "mi355x-288gb"}};
  for (const auto& [name, id] : kNames) {
    EXPECT_EQ(cluster(Json{{"gpus_per_node", 8}, {"gpu", name}}.dump()).gpu, id) << name;
  }
  for (const std::string& id : workload::device_names()) EXPECT_EQ(workload::device_id_named(id), id);
  EXPECT_EQ(workload::device_id_named("A100"), "");  // of 40 or of 80 GB
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpus_per_node": 8, "gpu": "RTX5090-32"})"); }),
            "s.json: /cluster/gpu: the GPU 'rtx5090-32' is not known; did you mean 'rtx5090-32gb'?");
}

TEST(Device, IsKnownByItsDriversNameIfAllOfItIsThere) {
  EXPECT_EQ(workload::device_id_of("NVIDIA H20", from_gib(95.0)), "h20-96gb");
  EXPECT_EQ(workload::device_id_of("NVIDIA GB200", Bytes{189'471LL << 20}), "gb200-186gb");
  EXPECT_EQ(workload::device_id_of("NVIDIA B300 SXM6 AC", Bytes{275'040LL << 20}), "b300-288gb");
  EXPECT_EQ(workload::device_id_of("NVIDIA GeForce RTX 5090", Bytes{32'607LL << 20}), "rtx5090-32gb");
  EXPECT_EQ(workload::device_id_of("NVIDIA H200", from_gib(16.0)), std::nullopt);  // a part (MIG)
  EXPECT_EQ(workload::device_id_of("H100", from_gib(79.1)), std::nullopt);         // no driver says only that
}

// A rack of 18 nodes of four GPUs each, all joined by NVLink.
TEST(Cluster, OfANvl72IsOneDomain) {
  const workload::ClusterSpec rack = cluster(R"({"nodes": 18, "gpus_per_node": 4, "gpu": "GB200"})");
  EXPECT_EQ(rack.network->ranks_per_node, 72);
  EXPECT_EQ(rack.network->intra.name, "nvlink5");
  const workload::ClusterSpec racks =
      cluster(R"({"nodes": 36, "gpus_per_node": 4, "gpu": "GB300", "network": "ib-xdr-800"})");
  EXPECT_EQ(racks.network->ranks_per_node, 72);
  EXPECT_EQ(racks.network->inter.name, "ib-xdr-800");
  // Half a rack, and other links within a node.
  EXPECT_EQ(cluster(R"({"nodes": 9, "gpus_per_node": 4, "gpu": "GB200", "gpus_per_domain": 36})").ranks(), 36);
  const workload::ClusterSpec apart =
      cluster(R"({"nodes": 2, "gpus_per_node": 4, "gpu": "GB200", "interconnect": "pcie5", "network": "ib-ndr-400"})");
  EXPECT_EQ(apart.network->ranks_per_node, 4);
  EXPECT_EQ(cluster(R"({"gpus_per_node": 8, "gpu": "b200-180gb"})").network->ranks_per_node, 8);
  for (const auto& spec : {rack, racks, apart}) {
    const workload::ClusterSpec again = cluster(workload::to_json(spec).dump());
    EXPECT_EQ(again.network->ranks_per_node, spec.network->ranks_per_node);
  }
  const auto stated =
      cluster(R"({"nodes": 4, "gpus_per_node": 4, "gpu": "GB200", "gpus_per_domain": 8, "network": "ib-ndr-400"})");
  EXPECT_EQ(cluster(workload::to_json(stated).dump()).network->ranks_per_node, 8);
  EXPECT_EQ(user_error_of([] { cluster(R"({"nodes": 36, "gpus_per_node": 4, "gpu": "GB200"})"); }),
            "s.json: /cluster/network: is missing, and there are 36 nodes; write for example \"ib-ndr-400\"");
  EXPECT_EQ(user_error_of([] { cluster(R"({"gpus_per_node": 4, "gpu": "GB200", "gpus_per_domain": 6})"); }),
            "s.json: /cluster/gpus_per_domain: 6 GPUs are not whole nodes of 4; write a multiple of "
            "\"gpus_per_node\"");
}

TEST(Cluster, MayHaveNodesOfAnySize) {
  for (const int size : {1, 2, 3, 4, 6, 10, 16}) {
    const Json json = {{"nodes", 2}, {"gpus_per_node", size}, {"gpu", "L40S"}, {"network", "eth-100"}};
    EXPECT_EQ(cluster(json.dump()).network->ranks_per_node, size);
  }
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
