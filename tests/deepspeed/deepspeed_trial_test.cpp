#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "core/files.h"
#include "core/json.h"
#include "deepspeed/job/deepspeed_runner.h"
#include "deepspeed/job/ds_trial.h"
#include "krigtune/rng.h"
#include "trial/temporary_directory.h"

namespace krigtune::deepspeed_trial_test {

const std::filesystem::path kRecorded = KRIGTUNE_TEST_DIR "/deepspeed/deepspeed_outputs/trial_ok";

// The recorded trial at the place where a runner would have it.
class DeepSpeedTrial : public ::testing::Test {
 protected:
  DeepSpeedTrial() {
    std::filesystem::create_directories(files_.times("step").parent_path());
    for (const char* part : {"forward", "backward", "step"}) {
      const std::filesystem::path name = files_.times(part).filename();
      std::filesystem::copy_file(kRecorded / "csv" / "trial" / name, files_.times(part));
    }
  }
  void append(const std::string& part, const std::string& text) const {
    std::ofstream(files_.times(part), std::ios::app) << text;
  }

  TemporaryDirectory dir_;
  deepspeed::DsTrialFiles files_{dir_.path()};
};

TEST_F(DeepSpeedTrial, TheCsvFilesAreReadRowByRow) {
  const std::vector<deepspeed::DsStepTime> times = deepspeed::read_step_times(files_);
  ASSERT_EQ(times.size(), 10U);
  EXPECT_EQ(times[0].samples, 32.0);
  EXPECT_EQ(times[9].samples, 320.0);
  EXPECT_LE(std::abs(times[0].forward_s - 0.0678315), 1e-6);
  EXPECT_LE(std::abs(times[9].backward_s - 0.3106796), 1e-6);
  EXPECT_LE(std::abs(times[9].optimizer_s - 0.00747990), 1e-7);
}

// DeepSpeed prints the same times with two digits.
TEST_F(DeepSpeedTrial, TheLinesOfTheOutputSayTheSame) {
  const std::vector<deepspeed::DsStepTime> times = deepspeed::read_step_times(files_);
  const std::vector<deepspeed::DsStepTime> said =
      deepspeed::step_times_in(read_text(KRIGTUNE_TEST_DIR "/deepspeed/deepspeed_outputs/success.txt"));
  ASSERT_EQ(said.size(), times.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    EXPECT_LE(std::abs(said[i].forward_s - times[i].forward_s), 0.0051e-3) << i;
    EXPECT_LE(std::abs(said[i].backward_s - times[i].backward_s), 0.0051e-3) << i;
    EXPECT_LE(std::abs(said[i].optimizer_s - times[i].optimizer_s), 0.0051e-3) << i;
  }
  EXPECT_EQ(deepspeed::step_times_in("time (ms) | fwd: 1.5 | bwd: x | step: 2\ntime (ms) | optimizer: 1\n").size(), 0U);
}

// Files that are being written, were cut off, or contain something else.
TEST_F(DeepSpeedTrial, OnlyWholeRowsThatAllFilesHaveCount) {
  append("forward", "352,50.5\r\n384,50.5\n");
  append("backward", "352,200\n384,20");  // torn: it may be 200
  append("step", "352,5\n384,5\n");
  std::vector<deepspeed::DsStepTime> times = deepspeed::read_step_times(files_);
  ASSERT_EQ(times.size(), 11U);
  EXPECT_LE(std::abs(times[10].total_s() - 0.2555), 1e-12);
  append("backward", "0\nstep,elapsed_time_ms_backward\n");
  EXPECT_EQ(deepspeed::read_step_times(files_).size(), 12U);
  append("forward", "416,nan\n448,1\n");
  append("backward", "416,1\n448,1\n");
  append("step", "416,1\n448,1\n");
  EXPECT_EQ(deepspeed::read_step_times(files_).size(), 12U);
  std::filesystem::remove(files_.times("step"));
  EXPECT_TRUE(deepspeed::read_step_times(files_).empty());
}

TEST_F(DeepSpeedTrial, RowsOfDifferentStepsAreNotAdded) {
  append("forward", "352,50\n");
  append("backward", "384,50\n");
  append("step", "352,50\n");
  EXPECT_EQ(deepspeed::read_step_times(files_).size(), 10U);
}

// Computed by hand: the five steps after the warm-up of five take 284.658, 294.218, 306.964, 300.517 and 376.425 ms.
TEST_F(DeepSpeedTrial, TheEstimateIsTheMedianBehindTheWarmUp) {
  const auto found = deepspeed::estimate(deepspeed::read_step_times(files_), 5, 1);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->steps, 5);
  EXPECT_LE(std::abs(found->step_time_s - 0.3005166), 1e-6);
  // The deviations are 15.859, 6.299, 6.447, 0, 75.909 ms; their median is 6.447; b_5 = 1.206.
  EXPECT_LE(std::abs(found->step_time_sem_s - std::sqrt(M_PI / 10.0) * 1.4826 * 1.206 * 0.006447), 2e-6);
  EXPECT_EQ(found->samples_per_step, 32.0);
  EXPECT_FALSE(deepspeed::estimate(deepspeed::read_step_times(files_), 10, 1));
  EXPECT_EQ(deepspeed::estimate(deepspeed::read_step_times(files_), 9, 1)->step_time_sem_s,
            0.0);  // unknown for a single step
}

// DeepSpeed counts each rank of a tensor-parallel group, so 64 of its 128 samples are duplicates.
TEST(DeepSpeedEstimate, CountsTensorParallelRanksOnce) {
  const std::vector<deepspeed::DsStepTime> times = {{128, 0.1, 0.2, 0.1}, {256, 0.1, 0.2, 0.1}, {384, 0.1, 0.2, 0.1}};
  EXPECT_EQ(deepspeed::estimate(times, 1, 2)->samples_per_step, 64.0);
  EXPECT_EQ(deepspeed::estimate({{0, 1, 1, 1}, {0, 1, 1, 1}}, 0, 1)->samples_per_step, std::nullopt);
  EXPECT_EQ(deepspeed::tensor_parallel_of(Json::parse(R"({"tensor_parallel": {"autotp_size": 4}})")), 4);
  EXPECT_EQ(deepspeed::tensor_parallel_of(Json::parse(R"({"tensor_parallel": {"autotp_size": 0}})")), 1);
  EXPECT_EQ(deepspeed::tensor_parallel_of(Json::parse(R"({"zero_optimization": {"stage": 1}})")), 1);
}

// Slow and simple: finds the median by counting smaller values, and the error by repetition.
TEST(DeepSpeedEstimate, HasTheStandardErrorThatRepetitionShows) {
  constexpr int kRepetitions = 4000;
  for (const int n : {5, 6, 10, 15, 40}) {
    Rng rng(7, static_cast<std::uint64_t>(n));
    double sum = 0.0, squares = 0.0, stated = 0.0;
    for (int i = 0; i < kRepetitions; ++i) {
      std::vector<deepspeed::DsStepTime> times(3, {0.0, 9.0, 9.0, 9.0});  // the warm-up
      std::vector<double> totals;
      for (int k = 0; k < n; ++k) {
        totals.push_back(1.0 + 0.05 * rng.normal());
        times.push_back({0.0, 0.25 * totals.back(), 0.5 * totals.back(), 0.25 * totals.back()});
      }
      double low = -1.0,
             high = 1e9;  // the largest value with at most half below it, and the smallest with at most half above it
      for (const double total : totals) {
        const auto below = std::count_if(totals.begin(), totals.end(), [&](double other) { return other < total; });
        if (2 * below <= n) low = std::max(low, total);
        if (2 * (n - below - 1) <= n) high = std::min(high, total);
      }
      const auto found = deepspeed::estimate(times, 3, 1);
      ASSERT_LE(std::abs(found->step_time_s - 0.5 * (low + high)), 1e-12) << n;
      sum += found->step_time_s;
      squares += found->step_time_s * found->step_time_s;
      stated += found->step_time_sem_s;
    }
    const double mean = sum / kRepetitions;
    const double real = std::sqrt(squares / kRepetitions - mean * mean);
    EXPECT_LE(std::abs(stated / kRepetitions / real - 1.0), 0.13) << n << ": " << stated / kRepetitions << " " << real;
  }
}

TEST(DeepSpeedEstimate, OneStepThatMetSomethingDoesNotMoveIt) {
  std::vector<deepspeed::DsStepTime> times;
  for (const double ms : {100, 101, 99, 102, 98, 100, 103, 97, 100}) times.push_back({0.0, ms, 0.0, 0.0});
  const auto calm = deepspeed::estimate(times, 0, 1);
  times.back().forward_s = 5000.0;
  const auto disturbed = deepspeed::estimate(times, 0, 1);
  EXPECT_LE(std::abs(disturbed->step_time_s - calm->step_time_s), 1.0);
  EXPECT_LE(disturbed->step_time_sem_s, 3.0 * calm->step_time_sem_s);
}

TEST(DeepSpeedArrivals, GiveTheWallTimeAStepWhateverLooksAreMissed) {
  deepspeed::DsArrivals arrivals(2);
  arrivals.look(0, 0.0);
  arrivals.look(1, 50.0);
  EXPECT_FALSE(arrivals.wall_step_time_s());
  arrivals.look(3, 100.0);
  arrivals.look(3, 100.0);
  EXPECT_FALSE(arrivals.wall_step_time_s());
  arrivals.look(4, 102.0);
  EXPECT_EQ(arrivals.wall_step_time_s(), 2.0);
  arrivals.look(8, 107.5);
  EXPECT_EQ(arrivals.wall_step_time_s(), 1.5);
}

TEST(DeepSpeedMeasurement, IsAddedAndOtherMonitorsAreOff) {
  const Json user = Json::parse(R"({"b": 1, "autotuning": {"enabled": false, "fast": true},
      "wandb": {"enabled": true, "project": "p"}, "steps_per_print": 100, "csv_monitor": {"enabled": false}})");
  const Json trial = deepspeed::with_measurement(user, deepspeed::DsTrialFiles("/run/trials/0001"), {3, 8});
  EXPECT_EQ(trial.dump(),
            Json::parse(R"({"b": 1, "autotuning": {"enabled": true, "start_profile_step": 1, "end_profile_step": 11,
                "metric_path": "/run/trials/0001/metrics.json"}, "wandb": {"enabled": false, "project": "p"},
                "steps_per_print": 1, "csv_monitor": {"enabled": true, "output_path": "/run/trials/0001/monitor",
                "job_name": "trial"}, "log_level": "info"})")
                .dump());
  EXPECT_EQ(deepspeed::with_measurement(Json::parse(R"({"log_level": "error"})"), deepspeed::DsTrialFiles("/t"),
                                        {})["log_level"],
            "error");
  const auto has_level = [](const deepspeed::DsVersion& version) {
    return deepspeed::with_measurement(Json::object(), deepspeed::DsTrialFiles("/t"), {}, version)
        .contains("log_level");
  };
  EXPECT_TRUE(has_level({0, 19, 3}));
  EXPECT_FALSE(has_level({0, 19, 2}));
}

TEST(DeepSpeedMemory, IsTheLargestThatTheEngineSays) {
  EXPECT_FALSE(deepspeed::peak_memory_in("epoch=0/micro_step=1, MemAllocated=3GB\n"));
  EXPECT_EQ(deepspeed::peak_memory_in(
                "x MemAllocated=1.0GB, MaxMemAllocated=1.5GB\nMaxMemAllocated=2.25GB\nMax_MA 2.0 GB  CA 9 GB\n"),
            from_gib(2.25));
  EXPECT_EQ(deepspeed::peak_memory_in("MA 0.5 GB         Max_MA 0.75 GB         CA 1 GB"), from_gib(0.75));
  EXPECT_FALSE(deepspeed::peak_memory_in("MaxMemAllocated=0.0GB"));
}

// nvidia-smi 535 and 550 print MiB without a unit, and words if a GPU does not report its memory.
TEST(DeviceMemory, IsTheNumberOfEachGpu) {
  EXPECT_EQ(deepspeed::used_memory_in("4\n 40536\n"),
            (std::vector<Bytes>{Bytes{4 << 20}, Bytes{std::int64_t{40536} << 20}}));
  EXPECT_EQ(deepspeed::used_memory_in("81079\r\n"), std::vector<Bytes>{Bytes{std::int64_t{81079} << 20}});
  for (const char* text :
       {"", "\n", "No devices were found\n", "[N/A]\n", "4\n[Insufficient Permissions]\n", "40536 MiB\n", "-4\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running.\n"}) {
    EXPECT_TRUE(deepspeed::used_memory_in(text).empty()) << text;
  }
}

// The product is independent of the engine's own times: 5.66 GFLOP, 8 micro-steps of 3 x 236 MFLOP.
TEST(DeepSpeedFlops, FollowFromTheRecordedMetrics) {
  const auto flops = deepspeed::step_flops_in(read_text(kRecorded / "metrics.json"));
  ASSERT_TRUE(flops);
  EXPECT_LE(std::abs(*flops / (16629154299.394497 * 0.3404340744018554) - 1.0), 1e-12);
  for (const char* text : {"", "[]", "{}", R"({"FLOPS_per_gpu": 1})", R"({"FLOPS_per_gpu": 0, "latency": 1})",
                           R"({"FLOPS_per_gpu": "x", "latency": 1})"}) {
    EXPECT_FALSE(deepspeed::step_flops_in(text)) << text;
  }
}

}  // namespace krigtune::deepspeed_trial_test
