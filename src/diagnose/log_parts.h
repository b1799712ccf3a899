#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/measured_parts.h"
#include "diagnose/megatron_timers.h"

namespace krigtune::diagnose {

/// DeepSpeed's lines of "wall_clock_breakdown", as a job's log has them:
///
///   time (ms) | fwd: 99.15 | bwd: 356.21 | bwd_inner: 229.46 | bwd_allreduce: 126.55 | step: 13.15
///
///   PrintedBreakdown printed;
///   for (const std::string& line : log) printed.take(line);
class PrintedBreakdown {
 public:
  void take(const std::string& line);
  /// Of one step, in milliseconds by name: "fwd", "bwd", "bwd_inner", "bwd_allreduce", "step".
  void add(const std::map<std::string, double>& milliseconds);
  bool is_empty() const { return lines_ == 0; }
  /// Median of a name in seconds; 0 where no line has it.
  double seconds(const std::string& name) const;

 private:
  std::map<std::string, std::vector<double>> milliseconds_;
  std::int64_t lines_ = 0;
};

/// How long steps took, one after the other.
struct StepTimesOfLog {
  std::vector<double> seconds;  ///< of a step; where only rates are printed, of a token or a sample
  std::string unit = "step";
};

/// What a log tells: where a step goes, by the printed breakdown or the timers, where there are any; steps that take
/// longer than others now and then, with their period; a trend. Throws UserError where it tells of fewer than three
/// steps and has neither.
MeasuredParts parts_of_log(const StepTimesOfLog& steps, const PrintedBreakdown& printed,
                           const MegatronTimers& timers = {});

/// What DeepSpeed's "csv_monitor" writes: a folder with Train_Samples_elapsed_time_ms_forward.csv and its likes, a row
/// for each optimizer step.
struct MonitorFiles {
  StepTimesOfLog steps;  ///< forward, backward and step together, behind the first five rows
  PrintedBreakdown printed;
};
/// `path`: the folder, one above it, or one of the files. Empty: these are no such files. Throws UserError where they
/// are damaged.
std::optional<MonitorFiles> read_monitor(const std::filesystem::path& path);

}  // namespace krigtune::diagnose
