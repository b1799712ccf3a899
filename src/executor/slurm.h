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

/// Which one it is: inside an allocation (SLURM_JOB_ID) steps, otherwise jobs of their own.
bool runs_as_steps(const SlurmSpec& spec);

/// kAuto decided for a program. One node, or a program that starts processes on other nodes by itself (srun, mpirun):
/// once. krigtune-bench: for each rank. Anything else on several nodes, torchrun above all: once on each node.
JobLaunch launch_of(JobLaunch launch, const std::vector<std::string>& argv, const trial::TrialNeeds& needs);

/// srun and its options for that; {} for kOnce. `cores`: of each rank.
std::vector<std::string> srun_words(JobLaunch launch, const std::vector<std::string>& argv,
                                    const trial::TrialNeeds& needs, int cores, const std::string& gres);

/// Cores of a rank that the options ask for (--cpus-per-task); 1 where they do not.
int cores_per_rank(const std::vector<std::string>& extra);

/// Slurm's commands. `clock` must outlive it.
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

/// Has Slurm run the job again that this process is part of (scontrol requeue). "": it will; else why not.
std::string requeue_this_job(const Clock& clock);

/// Jobs of their own, one for each trial.
std::unique_ptr<trial::Executor> make_slurm_submit(const SlurmSpec& spec, const ExecutorJob& job);

}  // namespace krigtune::executor
