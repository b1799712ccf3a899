// DeepSpeed's monitor (deepspeed/monitor/csv_monitor.py; deepspeed/runtime/engine.py _write_monitor) writes, with
// "csv_monitor" and "wall_clock_breakdown", a folder with one file for each of five timers, for example
// "Train_Samples_elapsed_time_ms_forward.csv". Its header is "step,elapsed_time_ms_forward", and its rows are samples
// so far and milliseconds, one row per optimizer step. Every run appends to the files.
#include <fmt/format.h>

#include <algorithm>

#include "core/csv.h"
#include "core/error.h"
#include "core/files.h"
#include "diagnose/log_parts.h"
#include "trial/job_log.h"

namespace krigtune::diagnose {
namespace {

constexpr const char* kTimerFile = "Train_Samples_elapsed_time_ms_";
constexpr double kMonitorMilli = 1e-3;
constexpr std::size_t kWarmUpRows = 5;  // ZeRO 3 prefetches from the third step on, and allocators settle

struct MonitorTimer {
  const char* file;     // the part of the name after kTimerFile
  const char* printed;  // the name that wall_clock_breakdown prints
};
constexpr MonitorTimer kMonitorTimers[] = {{"forward", "fwd"},
                                           {"backward", "bwd"},
                                           {"backward_inner", "bwd_inner"},
                                           {"backward_allreduce", "bwd_allreduce"},
                                           {"step", "step"}};

std::filesystem::path file_of(const std::filesystem::path& folder, const char* timer) {
  return folder / fmt::format("{}{}.csv", kTimerFile, timer);
}

// Returns the folder of the files: "output_path/job_name".
std::filesystem::path monitor_folder(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    const bool is_one = path.filename().string().rfind(kTimerFile, 0) == 0;
    return is_one ? std::filesystem::absolute(path).parent_path() : std::filesystem::path();
  }
  if (!std::filesystem::is_directory(path, error)) return {};
  if (std::filesystem::exists(file_of(path, "forward"), error)) return path;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (std::filesystem::exists(file_of(entry.path(), "forward"), error)) return entry.path();
  }
  return {};
}

// Returns one number per row; empty if there is no such file (bwd_inner in some versions).
std::vector<double> milliseconds_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const CsvTable table = parse_csv(read_text(file, kMostTableBytes), file.string());
  std::vector<double> values;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::optional<double> value = trial::printed_number(table.rows[i].back());
    if (!value || *value < 0.0) {
      throw UserError(fmt::format("{}: line {}: '{}' is not a number of milliseconds", file.string(), table.lines[i],
                                  table.rows[i].back()),
                      "remove the line");
    }
    values.push_back(*value);
  }
  return values;
}

}  // namespace

std::optional<MonitorFiles> read_monitor(const std::filesystem::path& path) {
  const std::filesystem::path folder = monitor_folder(path);
  if (folder.empty()) return std::nullopt;
  std::map<std::string, std::vector<double>> columns;
  std::size_t rows = SIZE_MAX;
  for (const MonitorTimer& timer : kMonitorTimers) {
    std::vector<double> values = milliseconds_of(file_of(folder, timer.file));
    if (values.empty()) continue;
    rows = std::min(rows, values.size());  // a job that was ended may have written only some files
    columns[timer.printed] = std::move(values);
  }
  if (columns.count("fwd") == 0 || columns.count("bwd") == 0) {
    throw UserError(fmt::format("{}: it has no times of the forward and the backward pass", folder.string()),
                    "let the job run with \"wall_clock_breakdown\": true beside \"csv_monitor\"");
  }
  MonitorFiles files;
  for (std::size_t i = std::min(kWarmUpRows, rows / 2); i < rows; ++i) {
    std::map<std::string, double> step;
    for (const auto& [name, values] : columns) step[name] = values[i];
    files.printed.add(step);
    files.steps.seconds.push_back((step["fwd"] + step["bwd"] + step["step"]) * kMonitorMilli);
  }
  return files;
}

}  // namespace krigtune::diagnose
