#pragma once
#include <map>
#include <string>
#include <vector>

#include "diagnose/measured_parts.h"

namespace krigtune::diagnose {

/// Megatron's timers, as a job's log has them (--timing-log-level 1 or 2; every --timing-log-option):
///
///   (min, max) time across ranks (ms):
///       forward-backward ...............................: (210.40, 221.30)
///       optimizer ......................................: (40.10, 41.20)
///
/// They are of one iteration. Blocks of what happens once, as the set-up of the model, are read too, and not used.
class MegatronTimers {
 public:
  void take(const std::string& line);
  /// Whether a line tells how long the passes of an iteration took.
  bool is_empty() const { return largest_.count("forward-backward") == 0; }
  /// Of the slowest rank, median over the lines, in seconds; 0 where no line has the name.
  double seconds(const std::string& name) const;
  /// Of the fastest rank. The same as seconds() where only the largest is printed.
  double least_seconds(const std::string& name) const;

 private:
  void take_all_ranks(const std::string& line);

  std::map<std::string, std::vector<double>> largest_;  ///< milliseconds, one a printed block
  std::map<std::string, std::vector<double>> least_;
  std::string ranks_of_;       ///< the timer whose ranks the next lines list; "": none
  bool is_first_rank_ = true;  ///< of them
};

/// Where an iteration goes. `step_s`: how long one took, where the log has it; 0: forward-backward and what is beside
/// it. The numbers are of the slowest rank each, so parts are cut where they would exceed what holds them.
MeasuredParts parts_of_timers(const MegatronTimers& timers, double step_s);

}  // namespace krigtune::diagnose
