#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/batch_system.h"

namespace krigtune::executor {

// Parsers for the output of Slurm's commands. They are pure functions, and tests compare them with recorded text.
// krigtune asks for fixed formats (-o), because neither the default columns nor the JSON are the same in all versions.

/// squeue -h -o kQueueFormat prints id, name, state, time used, nodes and reason. The reason is free text and comes
/// last.
inline constexpr const char* kQueueFormat = "%i|%j|%T|%M|%N|%r";
std::vector<JobState> parse_queue(std::string_view text);

/// Returns the state of a job from the scheduler's word ("NODE_FAIL", "CANCELLED by 0") and its reason. Source of the
/// words: squeue(1), "JOB STATE CODES" and "JOB REASON CODES", Slurm 22.05 to 24.05.
JobState slurm_state(std::string_view word, std::string_view reason);

/// Parses the line "JobId=12 JobName=x ... JobState=RUNNING Reason=None ..." of scontrol -o show job ID. Empty if the
/// text is not such a line.
std::optional<JobState> parse_job_record(std::string_view text);

/// Converts "1-02:03:04", "02:03:04", "3:04" or "INVALID" to seconds. Empty if the text is not a time.
std::optional<double> parse_elapsed(std::string_view text);

/// Expands "n[1-2,07],gpu3" to n1, n2, n07, gpu3, as `scontrol show hostnames` does. A name may have several brackets.
std::vector<std::string> expand_hosts(std::string_view list);

/// Expands "16(x3),8" to 16, 16, 16, 8, the form of SLURM_JOB_CPUS_PER_NODE.
std::vector<int> expand_counts(std::string_view text);

/// Why sbatch refused a job, for the user: its own message, and how to fix it.
struct Refusal {
  std::string reason;  ///< quoted, without "sbatch: error:"
  std::string fix;     ///< "" if unknown
  /// A later attempt may succeed: the controller does not answer, or too many jobs wait.
  bool passes = false;
};
Refusal explain_refusal(std::string_view standard_error);

/// What Slurm's daemons wrote into the output of a step. A line counts only if it begins as those of srun and
/// slurmstepd do ("srun: error:", "slurmstepd: error:"), so that a program cannot produce one by chance.
struct DaemonWords {
  bool node_failure = false;
  bool out_of_memory = false;
  bool preempted = false;
  bool time_limit = false;
  bool cancelled = false;  ///< by scancel
  std::string line;        ///< the first line that counted
};
DaemonWords daemon_words(std::string_view output);

/// Returns the value of a key in "key=value key=value" lines of scontrol -o.
std::string record_field(std::string_view record, std::string_view key);

}  // namespace krigtune::executor
