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

/// What all jobs of a process share. Thread-safe.
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
  /// Throws UserError where such trials can never run here. Asks the scheduler once for each kind of trial.
  void refuse_impossible(const trial::TrialNeeds& needs);

  void note_duration(double wall_s);
  /// Of a trial that may take timeout_s.
  double full_limit_s(const trial::ProcessSpec& spec) const;
  /// That limit, or a shorter one that trials so far kept to: short jobs fill gaps of the schedule sooner.
  double likely_limit_s(const trial::ProcessSpec& spec) const;

  void note_failed_nodes(const std::string& nodes);
  std::vector<std::string> failed_nodes() const;
  void forget_failed_nodes();
  /// Once each time that the scheduler falls silent.
  void tell_of_silence(double silent_s);

 private:
  mutable std::mutex mutex_;  // of all below
  std::set<int> slots_;
  std::map<std::vector<double>, std::string> objections_;
  std::vector<double> durations_;
  std::vector<std::string> failed_nodes_;
  bool told_of_silence_ = false;
};

/// One trial as a job, from its submission (or adoption) to its end.
class JobRun {
 public:
  /// `say_where` hears of where it runs, whenever that changes.
  JobRun(JobRoom& room, const trial::TrialTask& task, const trial::ProcessSpec& spec, int port, const Clock& clock,
         std::function<void(const std::string&)> say_where);
  trial::ProcessResult until_it_ends();
  /// False: the trial was adopted, and the earlier process had not submitted its job.
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
  std::string job() const;  ///< "Slurm job 4711"
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
  std::string token_;  ///< of this try
  std::string id_;
  double limit_s_ = 0.0;  ///< the job's own
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
  int answers_ = 0;  ///< of the scheduler, about this job
  int answers_at_start_ = 0;
  std::set<std::string> said_;
  std::optional<double> taken_back_s_;  ///< when the scheduler was last asked to, after the first Ctrl-C
  bool is_taken_back_ = false;          ///< it was cancelled before it began
  bool was_begun_ = true;
  bool again_ = false;  ///< with the full time limit
};

}  // namespace krigtune::executor
