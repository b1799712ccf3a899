#pragma once
#include <optional>
#include <string>

#include "krigtune/cli/command_line.h"
#include "krigtune/tuner/loop.h"
#include "log.h"

namespace krigtune {

/// Shows a session as it goes: one line that is rewritten on a terminal, one line per closed trial elsewhere.
class Progress final : public Observer {
 public:
  /// All of them must outlive it.
  Progress(const Session& session, const Clock& clock, Log& log) : session_(session), clock_(clock), log_(log) {}

  void resumed(const History& history) override;
  void trial_begins(const Trial& trial, const History& history) override;
  void waiting(const Trial& trial) override;
  void trial_ended(const Trial& trial, const History& history) override;

 private:
  std::string counted(int trial) const;                             ///< "trial 7/30"
  std::string gain_of(double value, const History& history) const;  ///< "1.34x", or ""
  std::string best_text(const History& history) const;
  std::string rest_text(const History& history) const;
  void remember_summary(const History& history);

  const Session& session_;
  const Clock& clock_;
  Log& log_;
  int number_ = 0;  // of the running trial, counted from 1
  double began_s_ = 0.0;
  std::string summary_;  // best and time left, as of the last closed trial
};

/// Calls two observers in turn. Both must outlive it.
class Both final : public Observer {
 public:
  Both(Observer& first, Observer& second) : first_(first), second_(second) {}

  void resumed(const History& history) override;
  void trial_begins(const Trial& trial, const History& history) override;
  void waiting(const Trial& trial) override;
  void trial_ended(const Trial& trial, const History& history) override;

 private:
  Observer& first_;
  Observer& second_;
};

}  // namespace krigtune
