// krigtune doctor --measure, and sessions that use the file it writes. A stand-in replaces the measuring program here
// and prints what a test needs; tests/e2e/measure_rates.sh uses the real one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/cli_fixtures.h"
#include "core/json.h"
#include "machine/hardware_file.h"
#include "workload/measured_machine.h"
#include "workload/measured_rates.h"

namespace krigtune::doctor_measure_test {

using workload::ExchangeKind;
using workload::RankScope;

/// Two nodes of two H100s whose network reaches 11 GB/s, and whose products reach the stated rate.
workload::MeasuredRates slow_network() {
  workload::MeasuredRates rates;
  rates.device = "cuda";
  rates.processor = "NVIDIA H100 80GB HBM3";
  rates.memory_bytes = 84'929'347'584;
  rates.started_by = "srun";
  rates.hosts = {"a", "b"};
  rates.nodes = {0, 0, 1, 1};
  rates.products = {{workload::Precision::kBf16, 8192, 8192, 8192, {1.8e-3, 1.9e-3, 1}}};
  rates.collectives = {{ExchangeKind::kAllReduce, RankScope::kAcross, 2, 2, std::int64_t{1} << 24, 1.6e-3},
                       {ExchangeKind::kAllReduce, RankScope::kAcross, 2, 2, std::int64_t{1} << 28, 24.4e-3}};
  return rates;
}

/// Two CPU ranks of this machine.
workload::MeasuredRates cpu_ranks() {
  workload::MeasuredRates rates;
  rates.processor = "a processor";
  rates.memory_bytes = std::int64_t{8} << 30;
  rates.started_by = "alone";
  rates.hosts = {"a"};
  rates.nodes = {0, 0};
  rates.products = {{workload::Precision::kFp32, 512, 512, 512, {5e-3, 9e-3, 1}}};
  rates.copies = {{workload::CopyKind::kMemory, 1 << 26, {8e-3, 8e-3, 0}}};
  rates.collectives = {{ExchangeKind::kAllReduce, RankScope::kNode, 2, 1, 1 << 24, 3e-3}};
  return rates;
}

workload::MeasuredMachine machine_of(workload::Precision precision, double flops_per_s) {
  workload::MeasuredMachine machine;
  machine.key = workload::machine_key(2, precision);
  for (workload::ClassRate& rate : machine.rates) rate = {1e-6, flops_per_s, 0.0, flops_per_s};
  for (workload::ClassRate& rate : machine.exchanges) rate = {1e-5, flops_per_s, 0.0, 1e9};
  return machine;
}

class DoctorMeasure : public testing::Test {
 protected:
  DoctorMeasure() {
    ::setenv("KRIGTUNE_CACHE", (directory_ / "cache").c_str(), 1);
    measures(cpu_ranks());
    for (const auto precision : {workload::Precision::kFp32, workload::Precision::kBf16, workload::Precision::kFp16}) {
      directory_.write(std::string("machine-") + workload::to_string(precision),
                       workload::to_json(machine_of(precision, 2e10)).dump());
    }
    directory_.write_program("krigtune-bench",
                             "here=$(dirname \"$0\")\n"
                             "case $1 in\n"
                             "--measure-rates) echo \"$@\" >\"$here/asked\"; cat \"$here/rates\" ;;\n"
                             "--measure-machine) cat \"$here/machine-$4\" ;;\n"
                             "*) exit 2 ;;\n"
                             "esac\n");
  }
  ~DoctorMeasure() override { ::unsetenv("KRIGTUNE_CACHE"); }

  void measures(const workload::MeasuredRates& rates) { directory_.write("rates", workload::to_json(rates).dump()); }
  Said doctor(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"doctor", "--measure"});
    return run(arguments);
  }
  Said run(const std::vector<std::string>& arguments) {
    const SystemClock clock;
    return run_krigtune(arguments, directory_ / "krigtune", clock);
  }
  std::string session(const std::string& name, const std::string& cluster) {
    const bool on_gpus = cluster.find("h100") != std::string::npos;
    const std::string model = on_gpus ? R"({"preset": "gpt2-1.5b"})"
                                      : R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 256, "seq_len": 32})";
    return directory_
        .write(name, R"({"workload": {"model": )" + model + R"(, "precision": ")" + (on_gpus ? "bf16" : "fp32") +
                         R"(", "train_batch_size": 8},
                     "cluster": )" +
                         cluster + R"(, "space": {"zero_stage": [0, 1], "micro_batch": [1, 2]},
                     "baseline": {"zero_stage": 0, "micro_batch": 1}})")
        .string();
  }
  double best_step_s(const std::string& file) {
    const Said said = run({"plan", file, "--json"});
    EXPECT_EQ(said.code, 0) << said.err;
    const Json best = Json::parse(said.out)["best"];
    return best.empty() ? -1.0 : best[0]["predicted_step_time_s"].get<double>();
  }

  TemporaryDirectory directory_;
};

TEST_F(DoctorMeasure, SaysWhatIsSlowerThanPlanExpects) {
  measures(slow_network());
  const std::string file =
      session("job.json", R"({"nodes": 2, "gpus_per_node": 2, "gpu": "h100-80gb", "network": "ib-ndr-400"})");
  const Said said = doctor({"--session", file});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_NE(said.out.find("# all-reduce between nodes, 2 ranks"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("compared with what plan expects of the table's h100-80gb, nvlink4, ib-ndr-400"),
            std::string::npos);
  EXPECT_NE(said.out.find("WARN  all-reduce between nodes: 11 GB/s of 44.4 expected, at 256.0 MiB; look at which"),
            std::string::npos)
      << said.out;
  EXPECT_EQ(said.out.find("WARN  products"), std::string::npos) << said.out;
}

TEST_F(DoctorMeasure, WritesHardwareThatPlanUses) {
  measures(slow_network());
  const std::string cluster = R"("nodes": 2, "gpus_per_node": 2, "gpu": "h100-80gb", "network": "ib-ndr-400")";
  const std::string stated = session("job.json", "{" + cluster + "}");
  const std::string measured = session("measured.json", "{" + cluster + R"(, "hardware": "hw.json"})");
  const Said said = doctor({"--session", stated, "--out", (directory_ / "hw.json").string()});
  EXPECT_EQ(said.code, 0) << said.err;
  const Json link = load_json(directory_ / "hw.json")["links"]["ib-ndr-400"];
  EXPECT_NEAR(link["bytes_per_s"].get<double>() * link["reached"].get<double>() / 11e9, 1.0, 0.05);
  EXPECT_NE(said.out.find("ib-ndr-400: collectives reach 1"), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("a session uses it with"), std::string::npos) << said.out;
  EXPECT_GT(best_step_s(measured), 1.02 * best_step_s(stated));
}

TEST_F(DoctorMeasure, WritesCpuRanksThatPlanUses) {
  const std::string here = session("here.json", R"({"gpus_per_node": 2})");
  const std::string with = session("with.json", R"({"gpus_per_node": 2, "hardware": "hw.json"})");
  EXPECT_EQ(doctor({"--out", (directory_ / "hw.json").string(), "-q"}).code, 0);
  const Json hardware = load_json(directory_ / "hw.json");
  EXPECT_EQ(hardware["local"].size(), 3U);  // precisions
  EXPECT_TRUE(hardware["gpus"].contains("cpu-rank"));
  // A measurement in the file is used, although the machine may have changed since.
  directory_.write("machine-fp32", workload::to_json(machine_of(workload::Precision::kFp32, 1e9)).dump());
  std::filesystem::remove_all(directory_ / "cache");
  const double of_the_file = best_step_s(with);
  const double of_now = best_step_s(here);
  ASSERT_GT(of_the_file, 0.0);
  EXPECT_GT(of_now, 5.0 * of_the_file);
  // What the file does not contain is measured, with a message.
  const std::string other = session("other.json", R"({"gpus_per_node": 4, "hardware": "hw.json"})");
  EXPECT_NE(run({"plan", other}).err.find("\"hardware\" was not measured for 4 CPU ranks in fp32"), std::string::npos);
}

TEST_F(DoctorMeasure, ComparesWithAnEarlierMeasurement) {
  EXPECT_NE(doctor({}).out.find("not compared: these ranks were not measured before"), std::string::npos);
  EXPECT_EQ(doctor({"--out", (directory_ / "hw.json").string()}).code, 0);
  const Said again = doctor({});
  EXPECT_NE(again.out.find("expects of this machine as it was measured earlier"), std::string::npos) << again.out;
  // 268 MFLOP in 5 ms are 53.7 GFLOP/s, and the machine was measured at 20; rank 1 takes 9 ms.
  EXPECT_NE(again.out.find("products in fp32"), std::string::npos);
  EXPECT_NE(again.out.find("WARN  rank 1 on a takes 1.80 times as long"), std::string::npos) << again.out;
}

TEST_F(DoctorMeasure, PrintsOneDocument) {
  const Said said = doctor({"--json"});
  EXPECT_EQ(said.code, 0) << said.err;
  const Json json = Json::parse(said.out);
  EXPECT_EQ(json["command"], "doctor");
  EXPECT_EQ(json["rates"]["products"].size(), 1U);
  EXPECT_TRUE(json["hardware"]["gpus"].contains("cpu-rank"));
  EXPECT_EQ(json["warnings"].size(), 1U);
  EXPECT_TRUE(json["file"].is_null());
}

TEST_F(DoctorMeasure, IsSilentInProcessesThatAreNotTheFirst) {
  directory_.write("rates", "");
  const Said said = doctor({"-q", "--out", (directory_ / "hw.json").string()});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.out + said.err, "");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "hw.json"));
}

TEST_F(DoctorMeasure, HandsTheSessionsCpuRanksOn) {
  const std::string file = session("job.json", R"({"gpus_per_node": 2, "emulate_network": "eth-10"})");
  const Said said = doctor({"--session", file});
  EXPECT_NE(said.out.find("the emulated network eth-10"), std::string::npos) << said.out;
  EXPECT_NE(read_text(directory_ / "asked").find("--config"), std::string::npos);
}

TEST_F(DoctorMeasure, RefusesInOneLine) {
  const auto refusal = [&](const std::vector<std::string>& arguments, int code) {
    const Said said = run(arguments);
    EXPECT_EQ(said.code, code) << said.err;
    EXPECT_EQ(lines_in(said.err), 1U) << said.err;
    return said.err;
  };
  EXPECT_NE(refusal({"doctor", "--out", "x.json"}, 2).find("--out without --measure"), std::string::npos);
  EXPECT_NE(refusal({"doctor", "--measure", "--out", "/nowhere/x.json"}, 2)
                .find("--out: '/nowhere/x.json' cannot be written"),
            std::string::npos);
  EXPECT_NE(refusal({"doctor", "--measure", "--session", "absent.json"}, 2).find("absent.json"), std::string::npos);
  const std::string gpus = session("gpus.json", R"({"gpus_per_node": 2, "gpu": "l4-24gb"})");
  EXPECT_NE(refusal({"doctor", "-q", "--measure", "--session", gpus}, 3).find("only CPU ranks could be measured"),
            std::string::npos);
  directory_.write("rates", "{}");
  EXPECT_NE(refusal({"doctor", "-q", "--measure"}, 2).find("krigtune-bench --measure-rates"), std::string::npos);
  directory_.write_program("krigtune-bench", "echo 'krigtune-bench: rank 0: rank 1 is gone' >&2; exit 13\n");
  EXPECT_NE(refusal({"doctor", "-q", "--measure"}, 3).find("rank 1 is gone"), std::string::npos);
}

}  // namespace krigtune::doctor_measure_test
