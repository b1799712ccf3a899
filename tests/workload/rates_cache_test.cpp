// Rates of GPUs that are kept from one measurement to the next command.
#include "workload/rates_cache.h"

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json.h"
#include "trial/temporary_directory.h"

namespace krigtune::rates_cache_test {

workload::MeasuredRates rates_of_a_gpu() {
  workload::MeasuredRates rates;
  rates.device = "cuda";
  rates.processor = "NVIDIA H100 80GB HBM3";
  rates.memory_bytes = 84'929'347'584;
  rates.taken_bytes = 1'234'567'890;
  rates.hosts = {"a"};
  rates.nodes = {0};
  rates.products = {{workload::Precision::kBf16, 8192, 4096, 2048, {1e-3, 1e-3, 0}}};
  return rates;
}

TEST(RatesCache, KeepsRatesForTheSameGpusAndDriver) {
  const TemporaryDirectory directory;
  const std::filesystem::path cache = directory / "cache";  // it is made
  const workload::GpuKey key{"NVIDIA H100 80GB HBM3", "580.82.07", 1};
  EXPECT_FALSE(workload::kept_rates(cache, key));
  workload::keep_rates(cache, key, {rates_of_a_gpu(), "2026-11-25T20:00:00"});
  const auto kept = workload::kept_rates(cache, key);
  ASSERT_TRUE(kept);
  EXPECT_EQ(workload::to_json(kept->rates), workload::to_json(rates_of_a_gpu()));
  EXPECT_EQ(kept->rates.taken_bytes, 1'234'567'890);
  EXPECT_EQ(kept->measured_at, "2026-11-25T20:00:00");
  EXPECT_FALSE(workload::kept_rates(cache, {key.name, "580.95.05", 1}));
  EXPECT_FALSE(workload::kept_rates(cache, {"NVIDIA H200", key.driver, 1}));
  EXPECT_FALSE(workload::kept_rates(cache, {key.name, key.driver, 2}));
  EXPECT_FALSE(workload::kept_rates("", key));
}

TEST(RatesCache, TakesHalfAFileForNone) {
  const TemporaryDirectory directory;
  const workload::GpuKey key{"a GPU", "1.2", 1};
  workload::keep_rates(directory / "cache", key, {rates_of_a_gpu(), ""});
  for (const auto& entry : std::filesystem::directory_iterator(directory / "cache")) {
    const std::string text = read_text(entry.path());
    for (const std::string& broken : {text.substr(0, text.size() / 2), std::string("[]"), std::string()}) {
      write_atomically(entry.path(), broken);
      EXPECT_FALSE(workload::kept_rates(directory / "cache", key)) << broken;
    }
  }
}

TEST(DriverVersion, IsThatOfTheKernelModule) {
  const TemporaryDirectory root;
  EXPECT_EQ(workload::driver_version(12040, root / ""), "CUDA 12.4");
  std::filesystem::create_directories(root / "proc/driver/nvidia");
  const auto version = [&](const std::string& line) {
    write_atomically(root / "proc/driver/nvidia/version", line + "\nGCC version:  gcc version 12.2.0\n");
    return workload::driver_version(12040, root / "");
  };
  EXPECT_EQ(version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (dvs)"),
            "580.82.07");
  EXPECT_EQ(version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104  Sat Aug 19 01:15:15 UTC 2023"),
            "535.104");
  EXPECT_EQ(version("something else"), "CUDA 12.4");
}

}  // namespace krigtune::rates_cache_test
