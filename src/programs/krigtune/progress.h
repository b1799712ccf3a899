#pragma once
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "programs/krigtune/command_line.h"
#include "programs/krigtune/log.h"
#include "report/trial_lines.h"
#include "run/loop.h"

namespace krigtune::cli {

/// Returns the time since something began: "0:07", "1:26", "2:03:26".
std::string elapsed_text(double seconds);

/// Joins with " | " as many of the parts, in this order, as fit into so many columns; always at least the first one.
std::string status_line(const std::vector<std::string>& parts, int columns);

/// Shows the progress of a session: a line for each closed trial. On a terminal it also rewrites one line below them,
/// with the running trials, the progress, the best so far, the failures by class and the time.
class Progress final : public run::Observer {
 public:
  /// Returns what the session recommends now. It is called after each closed trial.
  using Best = std::function<std::optional<search::Recommendation>()>;

  /// The objects must outlive the progress. `jobs`: trials at a time; `directory`: of the run.
  Progress(const session::Session& session, const Clock& clock, Log& log, Best best, int jobs = 1,
           std::filesystem::path directory = {})
      : session_(session),
        clock_(clock),
        log_(log),
        ask_best_(std::move(best)),
        jobs_(jobs),
        directory_(std::move(directory)),
        began_s_(clock.now_s()) {}

  void resumed(const search::History& history) override;
  void trial_begins(const journal::Trial& trial, const search::History& history) override;
  void waiting(const journal::Trial& trial) override;
  void trial_lost(const journal::Trial& trial, const std::string& why) override;
  void interference(const run::Interference& interference) override;
  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  void session_ended(const search::History& history) override;

  /// Returns the trials that are running: "trial 7", "trials 7 and 8", or "". Safe from any thread.
  std::string running() const;

 private:
  struct Running {
    int trial = 0;
    double began_s = 0.0;
    std::vector<std::string> differs;  ///< from the best so far
  };
  void say_header();
  void warn_of_measurement(const journal::Trial& trial);
  std::string job_guess() const;
  void say_job();
  void explain_marks(const journal::Trial& trial, const std::string& line);
  void show_status();
  std::vector<std::string> status_parts() const;
  std::string running_text() const;
  void remember(const search::History& history);

  const session::Session& session_;
  const Clock& clock_;
  Log& log_;
  Best ask_best_;
  int jobs_;
  std::filesystem::path directory_;
  double began_s_;
  bool header_said_ = false;
  bool more_was_said_ = false;
  bool bound_was_said_ = false;
  std::set<std::string> warned_;  ///< without their numbers
  std::string last_trouble_;      ///< the last line of the last failed trial
  std::string last_job_;          ///< what was last said about the job
  std::string guessed_job_;       ///< what the last trial said about it
  // The state after the last closed trial.
  std::optional<search::Recommendation> best_;
  int closed_ = 0;
  std::string failures_;
  std::optional<double> left_s_;
  double left_at_s_ = 0.0;    ///< when that was computed
  mutable std::mutex mutex_;  // guards running_
  std::vector<Running> running_;
};

/// Calls several observers one after the other. They must outlive it.
class Observers final : public run::Observer {
 public:
  explicit Observers(std::vector<run::Observer*> all) : all_(std::move(all)) {}

  void resumed(const search::History& history) override { call(&Observer::resumed, history); }
  void trial_begins(const journal::Trial& trial, const search::History& history) override {
    call(&Observer::trial_begins, trial, history);
  }
  void waiting(const journal::Trial& trial) override { call(&Observer::waiting, trial); }
  void trial_lost(const journal::Trial& trial, const std::string& why) override {
    call(&Observer::trial_lost, trial, why);
  }
  void interference(const run::Interference& interference) override { call(&Observer::interference, interference); }
  void trial_ended(const journal::Trial& trial, const search::History& history) override {
    call(&Observer::trial_ended, trial, history);
  }
  void session_ended(const search::History& history) override { call(&Observer::session_ended, history); }

 private:
  template <class... Arguments>
  void call(void (run::Observer::*event)(const Arguments&...), const Arguments&... arguments) const {
    for (run::Observer* one : all_) (one->*event)(arguments...);
  }

  std::vector<run::Observer*> all_;
};

}  // namespace krigtune::cli
