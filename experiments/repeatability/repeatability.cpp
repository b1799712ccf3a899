// How far apart are two measurements of the same configuration? Runs krigtune-bench repeatedly, each time as a process
// of its own, on a few configurations in random order, and compares the spread between runs with the standard error
// that a run states for itself.
//
//   repeatability run BENCH TABLE.csv [--repeats 20] [--seed 1]     appends a row per run; continues an existing table
//   repeatability summary TABLE.csv                                 prints the table of README.md
//
// For one configuration with relative values v_1 .. v_n (over their mean) and stated standard errors s_i:
//   between^2 = max(0, var(v) - mean(s^2)),   ratio = stddev(v) / sqrt(mean(s^2))
// Pooled numbers are means of the variances over the configurations.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <vector>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "krigtune/rng.h"

namespace {

using namespace krigtune;

// The quickstart's job, with stages, batches, overlap and buckets that have different bottlenecks.
struct Point {
  int zero_stage, micro_batch, reduce_bucket, gather_bucket;
  bool overlap;
};
constexpr std::array kConfigurations = {Point{1, 2, 100'000, 100'000, true}, Point{2, 1, 10'000, 10'000, false},
                                        Point{2, 4, 1'000'000, 1'000'000, true}, Point{3, 1, 72'000, 100'000, true},
                                        Point{3, 4, 72'000, 100'000, true}};

Json json_of(const Point& point) {
  return {{"zero_stage", point.zero_stage},
          {"micro_batch", point.micro_batch},
          {"reduce_bucket_size", point.reduce_bucket},
          {"allgather_bucket_size", point.gather_bucket},
          {"overlap_comm", point.overlap}};
}

constexpr const char* kJob = R"({
  "workload": {"model": {"layers": 6, "hidden": 128, "heads": 4, "vocab": 256, "seq_len": 16},
               "precision": "fp32", "optimizer": "adamw", "train_batch_size": 8},
  "cluster": {"gpus_per_node": 2, "emulate_network": {"latency_us": 100, "bytes_per_s": 2.5e8}},
  "memory": {"limit_gib": 1}})";

constexpr const char* kHeader =
    "repeat,configuration,step_time_s,step_time_sem_s,step_time_low_s,step_time_high_s,measured_steps,"
    "autocorrelation_time,drift_per_minute,outliers,stopped\n";

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  if (!pipe) throw EnvironmentError("cannot start '" + command + "'", "");
  std::array<char, 4096> block{};
  std::string text;
  for (std::size_t n = 0; (n = fread(block.data(), 1, block.size(), pipe.get())) > 0;) text.append(block.data(), n);
  return text;
}

std::string measured_row(const std::string& bench, std::size_t configuration, int repeat, const std::string& folder) {
  Json job = parse_json(kJob, "the job");
  job["configuration"] = json_of(kConfigurations[configuration]);
  const std::string file = folder + "/config.json";
  write_atomically(file, job.dump());
  // As long as a trial of the quickstart.
  const Json result =
      parse_json(output_of("'" + bench + "' --config '" + file + "' --json --warmup-s 0.3 --measure-s 1.5"), bench);
  if (result["status"] != "ok") throw EnvironmentError(result.dump(), "krigtune-bench could not measure");
  std::string row = fmt::format("{},{}", repeat, configuration);
  for (const char* field : {"step_time_s", "step_time_sem_s", "step_time_low_s", "step_time_high_s", "measured_steps",
                            "autocorrelation_time", "drift_per_minute", "outliers"}) {
    row += fmt::format(",{:.9g}", result[field].get<double>());
  }
  return row + "," + result["stopped"].get<std::string>() + "\n";
}

std::vector<std::vector<std::string>> rows_of(const std::string& table) {
  if (!std::filesystem::exists(table)) return {};
  return parse_csv(read_text(table), table).rows;
}

void run(const std::string& bench, const std::string& table, int repeats, std::uint64_t seed) {
  const std::size_t done = rows_of(table).size();
  std::ofstream file(table, std::ios::app);
  if (done == 0) file << kHeader << std::flush;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("repeatability_{}", seed);
  std::filesystem::create_directories(folder);
  std::size_t index = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::vector<std::size_t> order = {0, 1, 2, 3, 4};
    Rng(seed, static_cast<std::uint64_t>(repeat)).shuffle(order);
    for (const std::size_t configuration : order) {
      if (index++ < done) continue;
      file << measured_row(bench, configuration, repeat, folder.string()) << std::flush;
      std::cerr << fmt::format("\r{} of {}", index, static_cast<std::size_t>(repeats) * order.size());
    }
  }
  std::cerr << "\n";
  std::filesystem::remove_all(folder);
}

struct Runs {
  std::vector<double> values;
  std::vector<double> sems;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

void summarise(const std::string& table) {
  std::map<int, Runs> by_configuration;
  for (const auto& row : rows_of(table)) {
    Runs& runs = by_configuration[std::stoi(row[1])];
    runs.values.push_back(std::stod(row[2]));
    runs.sems.push_back(std::stod(row[3]));
  }
  std::cout << "| configuration | runs | step time (ms) | within: standard error | between runs: standard deviation | "
               "ratio |\n"
               "|---|---:|---:|---:|---:|---:|\n";
  double within = 0.0;
  double total = 0.0;
  for (const auto& [configuration, runs] : by_configuration) {
    const double mean = mean_of(runs.values);
    double variance = 0.0;
    for (const double value : runs.values) variance += (value / mean - 1.0) * (value / mean - 1.0);
    variance /= static_cast<double>(runs.values.size()) - 1.0;
    std::vector<double> stated_variances;
    for (const double sem : runs.sems) stated_variances.push_back(sem * sem / (mean * mean));
    const double stated = mean_of(stated_variances);
    std::cout << fmt::format("| {} | {} | {:.2f} | {:.2f} % | {:.2f} % | {:.1f} |\n", configuration, runs.values.size(),
                             mean * 1e3, 100.0 * std::sqrt(stated), 100.0 * std::sqrt(variance),
                             std::sqrt(variance / stated));
    within += stated / static_cast<double>(by_configuration.size());
    total += variance / static_cast<double>(by_configuration.size());
  }
  std::cout << fmt::format(
      "\npooled: within {:.2f} %, between runs {:.2f} %, ratio {:.1f}; between runs beyond what runs "
      "state: {:.2f} %\n",
      100.0 * std::sqrt(within), 100.0 * std::sqrt(total), std::sqrt(total / within),
      100.0 * std::sqrt(std::max(0.0, total - within)));
}

int number_after(const std::vector<std::string>& arguments, const std::string& option, int fallback) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == option) return std::stoi(arguments[i + 1]);
  }
  return fallback;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() >= 3 && arguments[0] == "run") {
      run(arguments[1], arguments[2], number_after(arguments, "--repeats", 20),
          static_cast<std::uint64_t>(number_after(arguments, "--seed", 1)));
    } else if (arguments.size() == 2 && arguments[0] == "summary") {
      summarise(arguments[1]);
    } else {
      std::cerr << "usage: repeatability run BENCH TABLE.csv [--repeats 20] [--seed 1] | summary TABLE.csv\n";
      return 2;
    }
  } catch (const std::exception& error) {
    std::cerr << "repeatability: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
