#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "search/strategies/strategy.h"

namespace krigtune::run {

/// Where and when the trials are run that are proposed now. See Proposal::run.
struct CurrentRun {
  int number = 0;
  std::string machine = {};
  std::uint64_t seed = 1;  ///< of the recommendation that is measured again
};

/// Says what to ask next: the session's baseline, then the user's guesses, then what the strategy proposes. Where any
/// of these is left, a run that continues earlier ones begins with their leader, which ties its clock to theirs.
class Proposer {
 public:
  /// `tries` are completed guesses (read_try); each is asked once. The others must outlive it; `clock` times the
  /// suggestions.
  Proposer(const session::Session& session, const search::Candidates& candidates, const search::Strategy& strategy,
           const Clock& clock, std::vector<space::Configuration> tries = {}, CurrentRun run = {});

  /// But for the time that it took, a pure function of the history. Empty: nothing is left to ask.
  std::optional<journal::Proposal> next(const search::History& history) const;

 private:
  std::optional<journal::Proposal> of_the_user(const search::History& history) const;

  const session::Session& session_;
  const search::Candidates& candidates_;
  const search::Strategy& strategy_;
  const Clock& clock_;
  std::vector<space::Configuration> tries_;
  CurrentRun run_;
};

/// Ask and tell without a journal, any number of trials pending in between. Knows nothing of how a trial is run.
class Tuner {
 public:
  Tuner(Proposer proposer, search::History history = {})
      : proposer_(std::move(proposer)), history_(std::move(history)) {}

  /// The next trial, now pending. Empty: nothing is left to ask.
  std::optional<journal::Trial> ask();
  /// Closes a pending trial.
  void tell(int trial, trial::Outcome outcome, double wall_s);

  const search::History& history() const { return history_; }

 private:
  Proposer proposer_;
  search::History history_;
};

}  // namespace krigtune::run
