#pragma once
#include <optional>
#include <string>
#include <vector>

namespace krigtune::executor {

template <class Spec>
struct ExecutorEntry;

/// Options of sbatch; "" means not given.
struct SbatchOptions {
  std::string partition;
  std::string account;
  std::string qos;
  std::string time;  ///< in the form of --time; "": derived from the trial's timeout, shorter once the durations of
                     ///< trials are known
  std::string gres;  ///< "": gpu:N if the trial uses GPUs
  std::string constraint;
  std::vector<std::string> extra;
};

enum class SlurmMode { kAuto, kSubmit, kSteps };
/// How the program of a trial is started in its job: once on the first node, once on each node (torchrun), or once for
/// each rank.
enum class JobLaunch { kAuto, kOnce, kNode, kRank };

/// "executor": {"kind": "slurm", ...}.
struct SlurmSpec {
  static ExecutorEntry<SlurmSpec> entry();
  SlurmMode mode = SlurmMode::kAuto;
  SbatchOptions sbatch;
  int max_queued = 8;
  double poll_s = 10.0;
  std::optional<double> pending_limit_s;
  double patience_s = 60.0;
  JobLaunch launch = JobLaunch::kAuto;
  std::string gpus_per_trial = "auto";
  void set_jobs(int jobs) { max_queued = jobs; }
};
/// "executor": {"kind": "template", ...}: any scheduler with commands that submit, show and cancel a job.
struct TemplateSpec {
  static ExecutorEntry<TemplateSpec> entry();
  /// argv lists with the placeholders {script}, {name}, {directory}, {log}, {nodes}, {ranks}, {ranks_per_node}, {gpus}
  /// and {minutes} (submit), or {id} and {name} (status, cancel).
  std::vector<std::string> submit;
  std::vector<std::string> status;
  std::vector<std::string> cancel;
  std::string id = "^\\s*(\\S+)";     ///< regular expression for the output of submit; its group is the job's id
  std::string state = "^\\s*(\\S+)";  ///< regular expression for the output of status; its group is the job's state
  std::string gone =
      "[Uu]nknown|[Nn]ot found|NotFound|does not exist|do not exist";  ///< status no longer knows the job
  std::vector<std::string> pending;                                    ///< states of a job that waits
  std::vector<std::string> held;  ///< ... for something that does not resolve by itself
  std::vector<std::string> running;
  std::vector<std::string> ended;
  std::vector<std::string> lost;    ///< ended by a node failure or a preemption: the trial is run again
  std::vector<std::string> launch;  ///< words before the program if a trial has several nodes
  int max_queued = 8;
  double poll_s = 10.0;
  std::optional<double> pending_limit_s;
  double patience_s = 60.0;
  std::string gpus_per_trial = "auto";
  void set_jobs(int jobs) { max_queued = jobs; }
};

}  // namespace krigtune::executor
