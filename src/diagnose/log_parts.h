#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/measured_parts.h"
#include "diagnose/megatron_timers.h"

namespace krigtune::diagnose {

/// Reads DeepSpeed's lines of "wall_clock_breakdown" from a job's log:
///
///   time (ms) | fwd: 99.15 | bwd: 356.21 | bwd_inner: 229.46 | bwd_allreduce: 126.55 | step: 13.15
///
/// also with the names before 0.10.1 ("forward", "backward_allreduce"), and GPT-NeoX's own line ("optimizer") if there
/// is none of DeepSpeed's.
///
///   PrintedBreakdown printed;
///   for (const std::string& line : log) printed.take(line);
class PrintedBreakdown {
 public:
  void take(const std::string& line);
  /// Adds one step, in milliseconds by name: "fwd", "bwd", "bwd_inner", "bwd_allreduce", "step".
  void add(const std::map<std::string, double>& milliseconds);
  bool is_empty() const { return lines_ == 0; }
  /// Returns the median of a name in seconds; 0 if no line has it.
  double seconds(const std::string& name) const;

 private:
  std::map<std::string, std::vector<double>> milliseconds_;
  std::int64_t lines_ = 0;
  bool has_engines_ = false;  ///< they are DeepSpeed's own
};

/// The durations of consecutive steps.
struct StepTimesOfLog {
  std::vector<double> seconds;  ///< of a step; if only rates are printed, of a token or a sample
  std::string unit = "step";
};

/// Returns the samples/s of the lines that DeepSpeed's engine prints every steps_per_print steps:
///
///   epoch=0/micro_step=1/global_step=1, RunningAvgSamplesPerSec=7.70, CurrSamplesPerSec=7.09, MemAllocated=59.65GB
///   0/10, SamplesPerSec=84.048840, MemAllocated=0.26GB            (before 0.8)
std::optional<double> printed_samples_per_s(const std::string& line);

/// Returns what a log reveals: the parts of a step, from the printed breakdown or the timers if there are any,
/// occasional steps that take longer, with their period, and a trend. Throws UserError if the log has neither and shows
/// fewer than three steps.
MeasuredParts parts_of_log(const StepTimesOfLog& steps, const PrintedBreakdown& printed,
                           const MegatronTimers& timers = {});

/// The output of DeepSpeed's "csv_monitor": a folder with Train_Samples_elapsed_time_ms_forward.csv and similar files,
/// with one row for each optimizer step.
struct MonitorFiles {
  StepTimesOfLog steps;  ///< forward, backward and step together, after the first five rows
  PrintedBreakdown printed;
};
/// `path`: the folder, its parent, or one of the files. Empty if there are no such files. Throws UserError if they are
/// damaged.
std::optional<MonitorFiles> read_monitor(const std::filesystem::path& path);

}  // namespace krigtune::diagnose
