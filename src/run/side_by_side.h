#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "search/candidates/candidates.h"
#include "search/trials/history.h"
#include "session/session.h"

namespace krigtune::run {

/// Concurrent trials on one machine may disturb each other. So a session that runs several at a time measures its
/// baseline alone, then in all slots at once, and at the end its best configurations alone again. Alone and together
/// are two runs (Proposal::run): the model converts their values to one scale by the configurations that were measured
/// in both, and treats the spread between slots as noise.
///
///   const SideBySide plan(session, candidates, executor.capacity());
///   const SideBySide::Turn turn = plan.turn(history);     // before each question
class SideBySide {
 public:
  /// The arguments must outlive it. `at_a_time`: number of concurrent trials; with one there is nothing to do.
  /// `is_checked`: false leaves out the measurements of the baseline that are not yet done.
  SideBySide(const session::Session& session, const search::Candidates& candidates, int at_a_time, bool is_checked);

  /// What comes before the strategy's proposals.
  struct Turn {
    bool waits = false;                                        ///< nothing may begin beside the running trials
    std::optional<journal::Proposal> proposal = std::nullopt;  ///< the baseline once more
  };
  Turn turn(const search::History& history) const;

  /// Returns the run of a trial that is proposed now, which depends on whether it runs alone.
  int run_of(const journal::Proposal& proposal, const search::History& history) const;

  /// Returns the next of the best configurations that was not measured alone, to be run with nothing beside it. Empty
  /// if all were, or if the session never measured its baseline together.
  std::optional<journal::Proposal> next_alone(const search::History& history) const;

 private:
  const journal::Trial* baseline_alone(const search::History& history) const;

  const session::Session& session_;
  const search::Candidates& candidates_;
  int at_a_time_;
  bool is_checked_;
};

/// How much concurrent trials slow each other down.
struct Interference {
  int at_a_time = 0;
  double slowdown = 0.0;  ///< of a trial among others, as a fraction: 0.03 means that it takes 3 % longer than alone
  double stddev = 0.0;    ///< of the logarithms of its values between slots
};
/// Compares the baseline alone and in all slots; empty if it was not measured so, or if fewer than two succeeded.
std::optional<Interference> interference_of(const session::Objective& objective, const search::History& history);
/// Returns "4 trials at a time: each is 0.8 % slower than alone, and they differ by 0.5 % from place to place".
std::string interference_sentence(const Interference& interference);
/// Returns advice if that matters, with its cost; "" if it does not.
std::string interference_advice(const Interference& interference);

/// Returns the largest expected host memory of a trial, over the baseline and 64 configurations spread over the
/// candidates. Empty if it is not modelled. `on_processors`: the ranks' own memory is host memory as well.
std::optional<Bytes> host_memory_of_a_trial(const session::Session& session, const search::Candidates& candidates,
                                            bool on_processors);
/// Returns a warning if that many trials may not fit into a machine's memory, which krigtune does not divide; "" if
/// they do.
std::string memory_warning(Bytes of_a_trial, int at_a_time, Bytes machine);

}  // namespace krigtune::run
