#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "programs/bench/measure.h"
#include "programs/manual/manual.h"
#include "space/configuration.h"
#include "workload/hardware.h"
#include "workload/workload.h"

namespace krigtune::bench {

enum class DeviceChoice { kAuto, kCpu, kCuda };

/// The command line of krigtune-bench.
struct BenchOptions {
  std::filesystem::path config;
  bool json = false;
  MeasureOptions measure;
  std::optional<double> memory_limit_gib;
  DeviceChoice device = DeviceChoice::kAuto;
  std::uint64_t seed = 1;
  std::filesystem::path heartbeat;              ///< empty: none
  double hang_s = 60.0;                         ///< a hang is this long without a step, or before the first one
  std::filesystem::path trace;                  ///< empty: none
  bool graph = false;                           ///< on GPUs: replay captured steps
  bool compare_null = false;                    ///< measure a few steps without communication, too
  std::optional<std::int64_t> measure_machine;  ///< for how many ranks
  workload::Precision precision = workload::Precision::kFp32;  ///< of that measurement
  bool measure_rates = false;                                  ///< of products, copies and collectives
  bool check = false;                                          ///< check the plan and train nothing
  bool probe = false;
  bool help = false;
  bool version = false;
};

/// `arguments` does not contain the program's name. Throws UserError.
BenchOptions parse_options(const std::vector<std::string>& arguments);

std::string help_text();

manual::Page manual_page();

/// What to train and how, from the file given with --config.
struct TrainingJob {
  workload::Workload workload;
  workload::ClusterSpec cluster;
  workload::MemorySpec memory;
  space::Configuration configuration;
};

/// Throws UserError with the JSON pointer.
TrainingJob load_job(const std::filesystem::path& path);
/// Throws UserError if the job's workload has a part that is predicted only, so that no step of it can be executed.
void check_trained(const TrainingJob& job);

/// Returns the machines that the options are about. For --measure-rates, the file given with --config needs only its
/// "cluster". Without a file it is this machine: its GPUs, otherwise two CPU ranks.
workload::ClusterSpec cluster_of(const BenchOptions& options);

}  // namespace krigtune::bench
