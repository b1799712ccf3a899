#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "search/strategies/strategy.h"

namespace krigtune::run {

/// Where and when the trials run that are proposed now. See Proposal::run.
struct CurrentRun {
  int number = 0;
  std::string machine = {};
  std::uint64_t seed = 1;  ///< of the recommendation that is measured again
};

/// Returns the trial that a guess of the user need not repeat, if there is one: it has the same configuration, and runs
/// or ended in any way except early (Bounded), because guesses run to their ends.
const journal::Trial* trial_of_try(const search::Candidates& candidates, const search::History& history,
                                   const space::Configuration& configuration);

/// Decides what to propose next: the session's baseline, then the user's guesses, then the strategy's proposals. If
/// there is anything left to propose, a run that continues earlier ones begins with their leader, which connects the
/// time scales of both.
class Proposer {
 public:
  /// `tries`: completed guesses (read_try); each is proposed once, unless trial_of_try finds it. `clock` measures the
  /// time of the suggestions. The references must outlive it.
  Proposer(const session::Session& session, const search::Candidates& candidates, const search::Strategy& strategy,
           const Clock& clock, std::vector<space::Configuration> tries = {}, CurrentRun run = {});

  /// A pure function of the history, except for the recorded time of the suggestion. Empty if nothing is left to
  /// propose.
  std::optional<journal::Proposal> next(const search::History& history) const;

  /// What comes when nothing else is proposed any more: see next_repeat (repeats.h).
  std::optional<journal::Proposal> next_repeat(const search::History& history, int times) const;

 private:
  /// Fills in what every proposal has. `begun_s`: when the clock was asked first.
  void complete(journal::Proposal& proposal, const search::History& history, double begun_s) const;
  std::optional<journal::Proposal> of_the_user(const search::History& history) const;

  const session::Session& session_;
  const search::Candidates& candidates_;
  const search::Strategy& strategy_;
  const Clock& clock_;
  std::vector<space::Configuration> tries_;
  CurrentRun run_;
};

/// Ask and tell without a journal, with any number of pending trials. It does not know how trials are run.
class Tuner {
 public:
  Tuner(Proposer proposer, search::History history = {})
      : proposer_(std::move(proposer)), history_(std::move(history)) {}

  /// Returns the next trial, which is then pending. Empty if nothing is left to propose.
  std::optional<journal::Trial> ask();
  /// Closes a pending trial.
  void tell(int trial, trial::Outcome outcome, double wall_s);

  const search::History& history() const { return history_; }

 private:
  Proposer proposer_;
  search::History history_;
};

}  // namespace krigtune::run
