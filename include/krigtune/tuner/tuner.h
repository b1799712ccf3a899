#pragma once
#include <memory>
#include <optional>

#include "krigtune/core/clock.h"
#include "krigtune/tuner/strategy.h"

namespace krigtune {

inline constexpr const char* kBaselineStrategy = "baseline";  ///< Proposal::strategy of the session's baseline

/// Ask and tell, any number of trials pending in between. Trial 0 is the session's baseline, if it has one. Knows
/// nothing of how a trial is run.
class Tuner {
 public:
  /// `history`: what a journal holds. The others must outlive it; `clock` times the suggestions.
  Tuner(const Session& session, const Candidates& candidates, const Strategy& strategy, const Clock& clock,
        History history = {});

  /// The next trial, now pending. Empty: nothing is left to ask.
  std::optional<Trial> ask();
  /// Closes a pending trial.
  void tell(int trial, Outcome outcome, double wall_s);
  /// When the trial began, as the journal writes it.
  void set_started(int trial, std::string started_at);

  const History& history() const { return history_; }

 private:
  const Session& session_;
  const Candidates& candidates_;
  const Strategy& strategy_;
  const Clock& clock_;
  History history_;
};

}  // namespace krigtune
