#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/batch_system.h"

namespace krigtune::executor {

// What Slurm's commands print, as values. Pure functions: tests hold them against recorded text. The formats are the
// ones that krigtune asks for (-o), because neither the default columns nor the JSON are the same in all versions.

/// squeue -h -o kQueueFormat: id, name, state, time used, nodes, reason. The reason comes last: it is free text.
inline constexpr const char* kQueueFormat = "%i|%j|%T|%M|%N|%r";
std::vector<JobState> parse_queue(std::string_view text);

/// One job of a scheduler's word for its state ("NODE_FAIL", "CANCELLED by 0") and its reason.
/// Source of the words: squeue(1), "JOB STATE CODES" and "JOB REASON CODES", Slurm 22.05 to 24.05.
JobState slurm_state(std::string_view word, std::string_view reason);

/// scontrol -o show job ID: "JobId=12 JobName=x ... JobState=RUNNING Reason=None ...". Empty: it is no such line.
std::optional<JobState> parse_job_record(std::string_view text);

/// "1-02:03:04", "02:03:04", "3:04", "INVALID" -> seconds; empty: no such time.
std::optional<double> parse_elapsed(std::string_view text);

/// "n[1-2,07],gpu3" -> n1, n2, n07, gpu3. As `scontrol show hostnames`; of names with several brackets too.
std::vector<std::string> expand_hosts(std::string_view list);

/// "16(x3),8" -> 16, 16, 16, 8: SLURM_JOB_CPUS_PER_NODE and the like.
std::vector<int> expand_counts(std::string_view text);

/// Why sbatch refused, for the user: its own words, and how to fix it.
struct Refusal {
  std::string reason;  ///< quoted, without "sbatch: error:"
  std::string fix;     ///< "" where nothing is known of it
  /// It will do later: the controller does not answer, or too many jobs wait.
  bool passes = false;
};
Refusal explain_refusal(std::string_view standard_error);

/// What Slurm's daemons wrote among the output of a step: only lines that begin with "srun: error:" or
/// "slurmstepd: error:" count, so that a program cannot say it by chance.
struct DaemonWords {
  bool node_failure = false;
  bool out_of_memory = false;
  bool preempted = false;
  bool time_limit = false;
  bool cancelled = false;  ///< by scancel
  std::string line;        ///< the first one that counted
};
DaemonWords daemon_words(std::string_view output);

/// "key=value key=value" lines of scontrol -o.
std::string record_field(std::string_view record, std::string_view key);

}  // namespace krigtune::executor
