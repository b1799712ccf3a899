#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "executor/batch_system.h"
#include "executor/executor.h"
#include "executor/tool.h"
#include "trial/executor.h"

namespace krigtune::executor {

/// Returns whether trials run as steps: inside an allocation (SLURM_JOB_ID). Otherwise each trial is a job of its own.
bool runs_as_steps(const SlurmSpec& spec);

/// Resolves kAuto for a program. On one node, or if the program starts processes on other nodes itself (srun, mpirun):
/// once. krigtune-bench: once for each rank. Any other program on several nodes, above all torchrun: once on each node.
JobLaunch launch_of(JobLaunch launch, const std::vector<std::string>& argv, const trial::TrialNeeds& needs);

/// Returns srun and its options for that; {} for kOnce. `cores` is the number for each rank.
std::vector<std::string> srun_words(JobLaunch launch, const std::vector<std::string>& argv,
                                    const trial::TrialNeeds& needs, int cores, const std::string& gres);

/// Returns the cores that the options give each rank (--cpus-per-task), or 1 if they do not say.
int cores_per_rank(const std::vector<std::string>& extra);

/// Slurm's commands. `clock` must outlive the object.
class SlurmSystem final : public BatchSystem {
 public:
  SlurmSystem(SlurmSpec spec, const Clock& clock);
  Submission submit(const JobRequest& request) override;
  std::optional<std::vector<JobState>> jobs(const std::vector<Asked>& asked) override;
  std::optional<JobState> forgotten(const std::string& id) override;
  bool cancel(const std::string& id) override;
  bool take_back(const std::string& id) override;
  void cancel_named(const std::string& name) override;
  std::string objection(const trial::TrialNeeds& needs, double time_limit_s) override;
  std::vector<std::string> launcher(const std::vector<std::string>& argv,
                                    const trial::TrialNeeds& needs) const override;
  std::vector<std::string> broken_nodes(const std::string& nodes) override;
  const char* name() const override { return "Slurm"; }

 private:
  ToolEnd ask(const std::vector<std::string>& argv) const;
  std::vector<std::string> resources(const trial::TrialNeeds& needs, double time_limit_s) const;

  const SlurmSpec spec_;
  const Clock& clock_;
  const std::vector<std::string> unset_;
};

/// Asks Slurm to run the job of this process again (scontrol requeue). Returns "" if it will, otherwise the reason.
std::string requeue_this_job(const Clock& clock);

/// Returns an executor that runs each trial as a job of its own.
std::unique_ptr<trial::Executor> make_slurm_submit(const SlurmSpec& spec, const ExecutorJob& job);

}  // namespace krigtune::executor
