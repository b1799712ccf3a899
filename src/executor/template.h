#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/block.h"
#include "core/clock.h"
#include "executor/batch_system.h"
#include "trial/executor.h"

namespace krigtune::executor {

/// "executor": {"kind": "template", ...}: any scheduler that has commands to submit, to show and to cancel a job.
struct TemplateSpec {
  /// argv lists with {script}, {name}, {directory}, {log}, {nodes}, {ranks}, {ranks_per_node}, {gpus}, {minutes} (submit)
  /// and {id}, {name} (status, cancel).
  std::vector<std::string> submit;
  std::vector<std::string> status;
  std::vector<std::string> cancel;
  std::string id = "^\\s*(\\S+)";     ///< regular expression: what submit printed, its group is the job's id
  std::string state = "^\\s*(\\S+)";  ///< what status printed, its group is the job's state
  std::string gone = "[Uu]nknown|[Nn]ot found|NotFound|does not exist|do not exist";  ///< status no longer knows the job
  std::vector<std::string> pending;  ///< states of a job that waits
  std::vector<std::string> held;     ///< ... for what does not come by itself
  std::vector<std::string> running;
  std::vector<std::string> ended;
  std::vector<std::string> lost;       ///< ended by node failure or preemption: the trial is run again
  std::vector<std::string> launch;     ///< words before the program of a trial on several nodes
  int max_queued = 8;
  double poll_s = 10.0;
  std::optional<double> pending_limit_s;
  double patience_s = 60.0;
};
Block<TemplateSpec> template_block();

/// Replaces {name} by the value of that name; other braces stay.
std::string filled(const std::string& word, const std::map<std::string, std::string>& values);

/// The scheduler's commands as the session says them. `clock` must outlive it.
std::unique_ptr<BatchSystem> make_template_system(const TemplateSpec& spec, const Clock& clock);

std::unique_ptr<trial::Executor> make_template_executor(const TemplateSpec& spec, const std::atomic<bool>* ending,
                                                        const Clock& clock);

}  // namespace krigtune::executor
