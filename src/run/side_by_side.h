#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "search/candidates/candidates.h"
#include "search/trials/history.h"
#include "session/session.h"

namespace krigtune::run {

/// Trials beside each other on one machine may disturb each other. So a session that begins with several at a time
/// measures its baseline alone, then in all places at once, and at its end its best configurations alone again. Alone
/// and together are two runs (Proposal::run): the model brings their values to one scale by what was measured in both,
/// and takes the spread of the places for noise.
///
///   const SideBySide plan(session, candidates, executor.capacity());
///   const SideBySide::Turn turn = plan.turn(history);     // before each question
class SideBySide {
 public:
  /// They must outlive it. `at_a_time`: trials; with one there is nothing to do. `is_checked`: false leaves the
  /// baseline's measurements out where they are not yet there.
  SideBySide(const session::Session& session, const search::Candidates& candidates, int at_a_time, bool is_checked);

  /// What comes before the strategy's questions.
  struct Turn {
    bool waits = false;                                        ///< nothing may begin beside what runs
    std::optional<journal::Proposal> proposal = std::nullopt;  ///< the baseline once more
  };
  Turn turn(const search::History& history) const;

  /// The run of a trial that is asked now: the strategy's and the user's, or of the baseline and of those alone.
  int run_of(const journal::Proposal& proposal, const search::History& history) const;

  /// The next of the best configurations that was not measured alone; to be run with nothing beside it. Empty: all
  /// were, or the session never had its baseline measured together.
  std::optional<journal::Proposal> next_alone(const search::History& history) const;

 private:
  const journal::Trial* baseline_alone(const search::History& history) const;

  const session::Session& session_;
  const search::Candidates& candidates_;
  int at_a_time_;
  bool is_checked_;
};

/// What trials at the same time cost each other.
struct Interference {
  int at_a_time = 0;
  double slowdown = 0.0;  ///< of a trial among others, a fraction: 0.03 means that it takes 3 % longer than alone
  double stddev = 0.0;    ///< of the logarithms of its values from place to place
};
/// From the baseline alone and in all places at once; empty: it was not measured so, or less than two were ok.
std::optional<Interference> interference_of(const session::Objective& objective, const search::History& history);
/// "4 trials at a time: each is 0.8 % slower than alone, and they differ by 0.5 % from place to place"
std::string interference_sentence(const Interference& interference);
/// What to do where that matters, with what it costs; "": it does not.
std::string interference_advice(const Interference& interference);

/// The most host memory that a trial is expected to take, of the baseline and 64 configurations spread over the
/// candidates. Empty where it is not modelled. `on_processors`: the ranks' own memory is the host's as well.
std::optional<Bytes> host_memory_of_a_trial(const session::Session& session, const search::Candidates& candidates,
                                            bool on_processors);
/// What to know before so many such trials share a machine's memory, which krigtune does not divide; "": they fit.
std::string memory_warning(Bytes of_a_trial, int at_a_time, Bytes machine);

}  // namespace krigtune::run
