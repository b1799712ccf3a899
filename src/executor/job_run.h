#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/batch_executor.h"
#include "executor/job_files.h"
#include "executor/job_watch.h"
#include "trial/watchdog.h"

namespace krigtune::executor {

/// What all jobs of a process share. It is thread-safe.
class JobRoom {
 public:
  JobRoom(std::unique_ptr<BatchSystem> scheduler, const BatchOptions& wanted, const Clock& time)
      : system(std::move(scheduler)), options(wanted), clock(time), watch(*system, time, wanted.poll_s) {}

  const std::unique_ptr<BatchSystem> system;
  const BatchOptions options;
  const Clock& clock;
  JobWatch watch;

  int taken() const;
  int take_slot();
  void give_back(int slot);
  /// Throws UserError where such trials can never run here. It asks the scheduler once for each kind of trial.
  void refuse_impossible(const trial::TrialNeeds& needs);

  void note_duration(double wall_s);
  /// Returns the time limit of a job whose trial may take timeout_s.
  double full_limit_s(const trial::ProcessSpec& spec) const;
  /// Returns that limit, or a shorter one that all trials so far would have met: the scheduler fills its gaps with
  /// short jobs sooner.
  double likely_limit_s(const trial::ProcessSpec& spec) const;

  void note_failed_nodes(const std::string& nodes);
  std::vector<std::string> failed_nodes() const;
  void forget_failed_nodes();
  /// Tells of each silence of the scheduler once.
  void tell_of_silence(double silent_s);

 private:
  mutable std::mutex mutex_;  // guards all members below
  std::set<int> slots_;
  std::map<std::vector<double>, std::string> objections_;
  std::vector<double> durations_;
  std::vector<std::string> failed_nodes_;
  bool told_of_silence_ = false;
};

/// Runs one trial as a job, from its submission (or adoption) to its end.
class JobRun {
 public:
  /// `say_where` is told where the trial runs whenever that changes.
  JobRun(JobRoom& room, const trial::TrialTask& task, const trial::ProcessSpec& spec, int port, const Clock& clock,
         std::function<void(const std::string&)> say_where);
  trial::ProcessResult until_it_ends();
  /// Returns false if the trial was adopted and the earlier process had not submitted its job.
  bool was_begun() const { return was_begun_; }

 private:
  bool submit();
  std::optional<std::string> live_job_of_that_name();
  bool find();
  void follow(const std::string& id);
  void wait_for_end();

  bool ended_by_files(double now_s);
  bool is_settled(const JobExit& exit, double now_s);
  void end_as_file_says(const JobExit& exit);
  bool ended_by_scheduler(double now_s);
  void end_as_scheduler_says();
  void end_without_exit_file();
  void see(const JobState& state, int answers, double now_s);
  void note_start(double now_s, double elapsed_s);
  void end_on_request(double now_s);
  void end_while_pending(double now_s);
  void end_while_running(double now_s);
  void cancel(double now_s);
  bool is_over_after_cancel(double now_s);
  bool wants_stop() const;
  std::string job() const;  ///< such as "Slurm job 4711"
  std::string last_log_line() const;
  void lose(const std::string& why);
  void say_once(const std::string& line);
  void tell_of_waiting(double now_s);

  JobRoom& room_;
  const trial::TrialTask& task_;
  const trial::ProcessSpec& spec_;
  const JobFiles files_;
  const std::string name_;
  const int port_;
  const Clock& clock_;
  std::function<void(const std::string&)> say_where_;

  trial::ProcessResult result_;
  std::string token_;  ///< names this try
  std::string id_;
  double limit_s_ = 0.0;  ///< time limit of the job
  std::optional<JobState> state_;
  std::optional<JobState> forgotten_;
  bool is_absent_ = false;
  std::optional<double> absent_since_s_;
  std::optional<double> ended_since_s_;
  std::optional<double> exit_since_s_;
  double pending_since_s_ = 0.0;
  std::optional<double> running_since_s_;
  std::optional<trial::Watchdog> watchdog_;
  std::optional<double> cancelled_s_;
  double next_cancel_s_ = 0.0;
  double next_file_look_s_ = 0.0;
  double next_wish_s_ = 0.0;
  std::optional<JobExit> exit_;
  int restarts_ = 0;
  int answers_ = 0;  ///< number of the scheduler's answers about this job
  int answers_at_start_ = 0;
  std::set<std::string> said_;
  std::optional<double> taken_back_s_;  ///< when the scheduler was last asked to take it back, after the first Ctrl-C
  bool is_taken_back_ = false;          ///< the job was cancelled before it began
  bool was_begun_ = true;
  bool again_ = false;  ///< the job is to be submitted again with the full time limit
};

}  // namespace krigtune::executor
