#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "search/model/best.h"
#include "search/model/front.h"
#include "search/trials/history.h"
#include "search/trials/run_effects.h"
#include "session/session.h"

// What a run says of its result. The summary of tune, best.json, summary.md, the page, watch and the library show these
// facts in their own words and compute none of them:
//
//   const answer::Answer answer = answer::answer_of(session, history, recommendation);
//   if (answer.best) print(answer.best->value, answer.best->gain_by_model, answer.trials.closed);
namespace krigtune::answer {

/// Trials that ended alike.
struct ClassCount {
  std::string name;    ///< "ok", "oom", "failed (crash)"
  std::string status;  ///< "ok", "oom", "failed", "bounded"
  int count = 0;
  int first = 0;  ///< its first trial
};

/// The closed trials that count (search::counts) by how they ended: not those that were interrupted, failed because of
/// the environment, or were passed over.
struct TrialCounts {
  int closed = 0;                                      ///< all of them
  int of_budget = 0;                                   ///< those that count against the budget: search::closed_trials
  std::vector<std::pair<std::string, int>> by_status;  ///< ok, oom, failed, bounded, also those of which there is none
  std::vector<ClassCount> by_class;                    ///< ok first, then the others by decreasing frequency
};
TrialCounts count_trials(const search::History& history);

/// Returns how many trials have an outcome, also those that do not count.
std::ptrdiff_t ended_trials(const search::History& history);

/// What gains are relative to.
struct Reference {
  int trial = 0;        ///< search::reference_trial, or that of the recommendation
  bool is_own = false;  ///< it measured the session's baseline: the user's own configuration
};

/// How many times better single trials are than the reference, with all values on the scale of the latest run.
class TrialGains {
 public:
  TrialGains(const session::Objective& objective, const search::History& history,
             const std::optional<Reference>& reference);
  /// Takes search::reference_trial as the reference.
  TrialGains(const session::Objective& objective, const search::History& history);

  const std::optional<Reference>& reference() const { return reference_; }
  /// Empty if the trial has not succeeded.
  std::optional<double> value_of(const journal::Trial& trial) const { return effects_.value_of(trial); }
  /// Empty if the trial has not succeeded, or if the reference has no value.
  std::optional<double> operator()(const journal::Trial& trial) const;

 private:
  session::Objective objective_;
  search::RunEffects effects_;
  std::optional<Reference> reference_;
  std::optional<double> base_;  ///< value of the reference
};

/// The best measured configuration that is not the recommended one.
struct RunnerUp {
  int trial = 0;  ///< its best trial
  space::Configuration configuration;
  double value = 0.0;         ///< mean of its measurements
  bool within_noise = false;  ///< its value is inside the 95 % interval of the recommended configuration, or better
};

/// The best single measurement on the scale of the latest run. It need not be of the recommended configuration, because
/// the largest of many measurements is partly luck.
struct RawBest {
  int trial = 0;
  double value = 0.0;
  bool is_recommended = false;  ///< it is a measurement of the recommended configuration
};

/// What a further trial could gain, as the proposal of a trial said before that trial was measured.
struct LastOutlook {
  int trial = 0;
  journal::Outlook outlook;
};

/// A sentence that belongs to every form of the result.
struct Remark {
  const char* name;  ///< its key in documents, and its title on the terminal: "machine"
  std::string text;
};

struct Answer {
  TrialCounts trials;
  std::optional<search::Recommendation> best;  ///< empty while no trial has succeeded
  std::optional<Reference> reference;
  /// "the baseline failed; gains are relative to trial 1, ...": why the reference is not the user's own configuration;
  /// "" if it is.
  std::string reference_note;
  bool is_reference = false;  ///< the recommended configuration is that of the reference: nothing is to be changed
  std::optional<RunnerUp> runner_up;
  std::optional<RawBest> raw_best;
  std::vector<search::FrontMember> front;  ///< of a session with several objectives; empty with one
  /// Index in the front of what the session prefers; without a preference, or if no member is within its bound, of the
  /// recommended configuration. Empty if there is no front.
  std::optional<std::size_t> pick;
  std::optional<LastOutlook> outlook;  ///< of the last trial that has one; the summary of tune knows a later one
  /// Seconds of all closed trials, in hours times ranks. Trials that do not count took their time all the same. Empty
  /// if trials run no programs.
  std::optional<double> gpu_hours;
  std::string emulated_network;  ///< "emulated network eth-25", which goes with every number; "" if none is emulated
  /// "machine": its speed has changed (search::run_effect_sentence). "preference": nothing is within its bound.
  /// "limits": how many trials broke the session's limits, if it has any.
  std::vector<Remark> remarks;

  /// Returns whether the interval of the best value says anything.
  bool has_interval() const { return best && best->lower_95 < best->upper_95; }
};

/// Returns the facts of a run. `best`: the recommendation for these trials. `means`: search::measured_means, for
/// callers that know them already.
Answer answer_of(const session::Session& session, const search::History& history,
                 const std::optional<search::Recommendation>& best);
Answer answer_of(const session::Session& session, const search::History& history,
                 const std::optional<search::Recommendation>& best, const std::vector<search::MeasuredMean>& means);

/// Returns "emulated network eth-25", "emulated network 100 us + 250 MB/s", or "" if no network is emulated.
std::string emulated_label(const session::Session& session);

}  // namespace krigtune::answer
