#pragma once
#include <mutex>
#include <string>
#include <vector>

#include "programs/krigtune/command_line.h"
#include "programs/krigtune/log.h"
#include "run/loop.h"

namespace krigtune::cli {

/// Shows a session as it goes: one line that is rewritten on a terminal, one line per closed trial elsewhere.
class Progress final : public run::Observer {
 public:
  /// All of them must outlive it. `jobs`: trials at a time.
  Progress(const session::Session& session, const Clock& clock, Log& log, int jobs = 1)
      : session_(session), clock_(clock), log_(log), jobs_(jobs) {}

  void resumed(const search::History& history) override;
  void trial_begins(const journal::Trial& trial, const search::History& history) override;
  void waiting(const journal::Trial& trial) override;
  void trial_ended(const journal::Trial& trial, const search::History& history) override;

  /// "trial 7", "trials 7 and 8", or "": those that run now. Safe from any thread.
  std::string running() const;

 private:
  struct Running {
    int trial = 0;
    double began_s = 0.0;
    std::string configuration;
  };
  std::string running_text() const;
  void remember_summary(const search::History& history);

  const session::Session& session_;
  const Clock& clock_;
  Log& log_;
  int jobs_;
  int number_ = 0;            // trials begun, the running ones included
  std::string summary_;       // best and time left, as of the last closed trial
  mutable std::mutex mutex_;  // of running_
  std::vector<Running> running_;
};

/// Calls two observers in turn. Both must outlive it.
class Both final : public run::Observer {
 public:
  Both(run::Observer& first, run::Observer& second) : first_(first), second_(second) {}

  void resumed(const search::History& history) override;
  void trial_begins(const journal::Trial& trial, const search::History& history) override;
  void waiting(const journal::Trial& trial) override;
  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  void session_ended(const search::History& history) override;

 private:
  run::Observer& first_;
  run::Observer& second_;
};

}  // namespace krigtune::cli
