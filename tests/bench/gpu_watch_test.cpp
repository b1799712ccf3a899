// The state of a GPU during measured steps: readings, their summary, and the way into the reports. NVML is a fake.
#include "programs/bench/gpu_watch.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <sstream>

#include "core/json.h"
#include "programs/bench/gpu_watch.h"
#include "programs/bench/run.h"
#include "trial/temporary_directory.h"

namespace krigtune::gpu_watch_test {

using Words = std::vector<std::string>;
constexpr const char* kAddress = "0000:65:00.0";

bench::GpuUse use_without(const char* lacking) {
  setenv("FAKE_NVML_LACKS", lacking, 1);
  const auto sensor = bench::open_nvml(kAddress, FAKE_NVML);
  const bench::GpuUse use = sensor ? bench::summarize(sensor->name(), {sensor->read()}) : bench::GpuUse{};
  unsetenv("FAKE_NVML_LACKS");
  EXPECT_NE(sensor, nullptr) << lacking;
  return use;
}

TEST(GpuUse, SummarizesWhatCouldBeRead) {
  std::vector<bench::GpuSample> samples(4);
  samples[0] = {1980.0, 600.0, 60.0, 0x1};
  samples[1] = {1755.0, 700.0, 66.0, 0x44};
  samples[2] = {1650.0, std::nullopt, 64.0, 0x0};
  samples[3] = {1905.0, 500.0, std::nullopt, 0x4 | 1ULL << 40};
  const bench::GpuUse use = bench::summarize("H100", samples);
  EXPECT_EQ(use.name, "H100");
  EXPECT_EQ(use.sm_clock_mhz_median, 1830.0);  // between 1755 and 1905
  EXPECT_EQ(use.sm_clock_mhz_min, 1650.0);
  EXPECT_EQ(use.power_w_mean, 600.0);
  EXPECT_EQ(use.temperature_c_max, 66.0);
  EXPECT_EQ(use.throttle_reasons, (Words{"gpu_idle", "sw_power_cap", "hw_thermal_slowdown", "bit 40"}));
  samples.pop_back();
  EXPECT_EQ(bench::summarize("", samples).sm_clock_mhz_median, 1755.0);
}

TEST(GpuUse, IsEmptyWhereNothingCouldBeRead) {
  const bench::GpuUse use = bench::summarize("", {bench::GpuSample{}});
  EXPECT_FALSE(use.sm_clock_mhz_median || use.sm_clock_mhz_min || use.power_w_mean || use.temperature_c_max);
  EXPECT_FALSE(use.throttle_reasons.has_value());
  EXPECT_EQ(bench::summarize("", {{.throttle_reasons = 0}}).throttle_reasons, Words{}) << "known to be none";
}

TEST(Nvml, ReadsTheGpuAtThatAddress) {
  const bench::GpuUse use = use_without("");
  EXPECT_EQ(use.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(use.sm_clock_mhz_median, 1755.0);
  EXPECT_EQ(use.power_w_mean, 612.5);
  EXPECT_EQ(use.temperature_c_max, 64.0);
  EXPECT_EQ(use.throttle_reasons, (Words{"sw_power_cap", "hw_thermal_slowdown"}));
}

TEST(Nvml, LeavesEmptyWhatTheGpuDoesNotTell) {
  EXPECT_EQ(use_without("name").name, "");
  EXPECT_FALSE(use_without("clock").sm_clock_mhz_median.has_value());
  EXPECT_FALSE(use_without("power").power_w_mean.has_value());
  EXPECT_FALSE(use_without("temperature").temperature_c_max.has_value());
  EXPECT_FALSE(use_without("reasons").throttle_reasons.has_value());
  EXPECT_EQ(use_without("reasons").power_w_mean, 612.5);
}

TEST(Nvml, IsNotThereWithoutItsLibraryOrItsGpu) {
  EXPECT_EQ(bench::open_nvml(kAddress, "libno-such-library.so.1"), nullptr);
  EXPECT_EQ(bench::open_nvml("0000:66:00.0", FAKE_NVML), nullptr);
  setenv("FAKE_NVML_LACKS", "init", 1);
  EXPECT_EQ(bench::open_nvml(kAddress, FAKE_NVML), nullptr);
  unsetenv("FAKE_NVML_LACKS");
}

/// Its clock rate is the number of the reading.
class CountingSensor final : public bench::GpuSensor {
 public:
  struct Count {
    void wait_for(int readings) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return made >= readings; });
    }
    std::mutex mutex;
    std::condition_variable changed;
    int made = 0;
  };
  explicit CountingSensor(Count& count) : count_(count) {}
  std::string name() const override { return "counting"; }
  bench::GpuSample read() override {
    const std::lock_guard lock(count_.mutex);
    count_.changed.notify_all();
    return {.sm_clock_mhz = ++count_.made};
  }

 private:
  Count& count_;
};

TEST(GpuWatch, ReadsUntilItEndsAndForgetsOnRequest) {
  CountingSensor::Count count;
  {
    bench::GpuWatch watch(std::make_unique<CountingSensor>(count));
    count.wait_for(2);
    EXPECT_EQ(watch.use_now().sm_clock_mhz_min, 1.0);
    watch.forget();
    EXPECT_GT(watch.use_now().sm_clock_mhz_min, 2.0);
  }
  CountingSensor::Count unread;
  bench::GpuWatch watch(std::make_unique<CountingSensor>(unread));
  EXPECT_EQ(watch.use_now().sm_clock_mhz_min, 1.0) << "however short the time was";
}

class WatchedRun : public testing::Test {
 protected:
  std::string run(const bench::BenchEngine& engine, std::vector<std::string> options) {
    const Json job = {
        {"workload", {{"model", {{"layers", 1}, {"hidden", 16}, {"heads", 1}, {"vocab", 32}, {"seq_len", 8}}}}},
        {"memory", {{"limit_gib", 1}}}};
    const SystemClock clock;
    std::ostringstream out;
    std::ostringstream err;
    options.insert(options.end(),
                   {"--device", "cpu", "--steps", "6", "--config", folder_.write("job.json", job.dump()).string()});
    EXPECT_EQ(bench::run_bench(engine, options, clock, out, err), 0) << err.str();
    return out.str();
  }
  TemporaryDirectory folder_;
};

TEST_F(WatchedRun, ReportsTheGpu) {
  bench::BenchEngine engine = bench::host_engine();
  engine.gpu_sensor = [](engine::Processes* /*processes*/) { return bench::open_nvml(kAddress, FAKE_NVML); };
  const Json expected = {
      {"name", "NVIDIA H100 80GB HBM3"}, {"sm_clock_mhz_median", 1755.0},
      {"sm_clock_mhz_min", 1755.0},      {"power_w_mean", 612.5},
      {"temperature_c_max", 64.0},       {"throttle_reasons", {"sw_power_cap", "hw_thermal_slowdown"}}};
  EXPECT_EQ(Json::parse(run(engine, {"--json"}))["gpu"], expected);
  const std::string line =
      "  GPU of rank 0     NVIDIA H100 80GB HBM3: SM clock 1755 MHz (least 1755), 612 W, 64 C at most, slowed by "
      "sw_power_cap, hw_thermal_slowdown\n";
  EXPECT_NE(run(engine, {}).find(line), std::string::npos);
}

TEST_F(WatchedRun, SaysNothingOfAGpuWhereThereIsNone) {
  bench::BenchEngine engine = bench::host_engine();
  EXPECT_TRUE(Json::parse(run(engine, {"--json"})).at("gpu").is_null());
  engine.gpu_sensor = [](engine::Processes* /*processes*/) { return nullptr; };
  EXPECT_TRUE(Json::parse(run(engine, {"--json"})).at("gpu").is_null());
  EXPECT_EQ(run(engine, {}).find("GPU"), std::string::npos);
}

}  // namespace krigtune::gpu_watch_test
