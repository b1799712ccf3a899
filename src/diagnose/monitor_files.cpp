// DeepSpeed's monitor (deepspeed/monitor/csv_monitor.py; deepspeed/runtime/engine.py _write_monitor): with
// "csv_monitor" and "wall_clock_breakdown" a folder has for each of five timers a file
// "Train_Samples_elapsed_time_ms_forward.csv", whose header is "step,elapsed_time_ms_forward" and whose rows are
// samples so far and milliseconds, one for each optimizer step. Files are appended to by every run.
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
constexpr std::size_t kWarmUpRows = 5;  // ZeRO 3 prefetches from the third step on, allocators settle

struct MonitorTimer {
  const char* file;     // behind kTimerFile
  const char* printed;  // as wall_clock_breakdown prints it
};
constexpr MonitorTimer kMonitorTimers[] = {{"forward", "fwd"},
                                           {"backward", "bwd"},
                                           {"backward_inner", "bwd_inner"},
                                           {"backward_allreduce", "bwd_allreduce"},
                                           {"step", "step"}};

std::filesystem::path file_of(const std::filesystem::path& folder, const char* timer) {
  return folder / fmt::format("{}{}.csv", kTimerFile, timer);
}

// The folder of the files: "output_path/job_name".
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

// One number a row; empty where there is no such file (bwd_inner in some versions).
std::vector<double> milliseconds_of(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  const CsvTable table = parse_csv(read_text(file, kMostTableBytes), file.string());
  std::vector<double> values;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::optional<double> value = trial::printed_number(table.rows[i].back());
    if (!value || *value < 0.0) {
      throw UserError(fmt::format("{}: line {}: '{}' is no number of milliseconds", file.string(), table.lines[i],
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
    rows = std::min(rows, values.size());  // a job that was ended may have written some files only
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
