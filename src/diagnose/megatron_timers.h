#pragma once
#include <map>
#include <string>
#include <vector>

#include "diagnose/measured_parts.h"

namespace krigtune::diagnose {

/// Reads Megatron's timers from a job's log (--timing-log-level 1 or 2; any --timing-log-option):
///
///   (min, max) time across ranks (ms):
///       forward-backward ...............................: (210.40, 221.30)
///       optimizer ......................................: (40.10, 41.20)
///
/// The numbers are for one iteration. Blocks of one-time operations such as the model's set-up are read but ignored.
class MegatronTimers {
 public:
  void take(const std::string& line);
  /// Returns whether no line has the time of an iteration's passes.
  bool is_empty() const { return largest_.count("forward-backward") == 0; }
  /// Returns the slowest rank's time: median over the lines, in seconds; 0 if no line has the name.
  double seconds(const std::string& name) const;
  /// Returns the fastest rank's time; equal to seconds() if only the largest is printed.
  double least_seconds(const std::string& name) const;

 private:
  void take_all_ranks(const std::string& line);

  std::map<std::string, std::vector<double>> largest_;  ///< milliseconds, one entry per printed block
  std::map<std::string, std::vector<double>> least_;
  std::string ranks_of_;       ///< the timer whose ranks the next lines list; "" if none
  bool is_first_rank_ = true;  ///< the next line is the first rank of that list
};

/// Returns where an iteration goes. `step_s`: the duration of an iteration if the log has it; 0: forward-backward and
/// the timers beside it. Each number is that of its slowest rank, so parts are cut if they would exceed the part that
/// contains them.
MeasuredParts parts_of_timers(const MegatronTimers& timers, double step_s);

}  // namespace krigtune::diagnose
