#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "journal/journal.h"

namespace krigtune::journal {

/// The "op_code" of a line of Optuna's JournalStorage (optuna/storages/journal/_storage.py).
enum class JournalOperation {
  kCreateStudy = 0,
  kDeleteStudy = 1,
  kSetStudyUserAttr = 2,
  kSetStudySystemAttr = 3,
  kCreateTrial = 4,
  kSetTrialParam = 5,
  kSetTrialStateValues = 6,
  kSetTrialIntermediateValue = 7,
  kSetTrialUserAttr = 8,
  kSetTrialSystemAttr = 9,
};

/// Optuna's TrialState.
enum class TrialState { kRunning = 0, kComplete = 1, kPruned = 2, kFail = 3, kWaiting = 4 };

/// Optuna's StudyDirection.
inline constexpr int kMinimize = 1;
inline constexpr int kMaximize = 2;

inline constexpr const char* kStudyName = "krigtune";
inline constexpr const char* kMetricNames = "study:metric_names";

/// The user attribute by which krigtune's trials are recognised.
inline constexpr const char* kConfiguration = "configuration";
/// The user attribute that says where a trial ran.
inline constexpr const char* kWhere = "where";
/// The user attribute that says how often a trial lost its place and was run again.
inline constexpr const char* kTimesLost = "times_lost";

/// Returns the user attributes that are known when a trial begins, enough to rebuild its Proposal. None is null or NaN.
/// They are `configuration` (JSON as text, so that every reader keeps the order of names), strategy, asker, suggest_s,
/// and if known predicted_value, predicted_stddev with widening, predicted_memory_bytes, hyperparameters,
/// trials_without_gain, repeat_of, and the outlook: expected_gain, regret_bound, confidence, bound_of_new.
Json proposal_attributes(const Proposal& proposal);
/// Rebuilds the Proposal. Empty if `configuration` is not such a text.
std::optional<Proposal> proposal_from(const Json& attributes);
/// Empty if the JSON is not an object of scalars.
std::optional<space::Configuration> configuration_of(const Json& json);

/// What is written when a trial ends.
struct OutcomeRecord {
  TrialState state = TrialState::kFail;
  Json values;             ///< [objective], or null
  Json user_attributes;    ///< the status and the details that belong to it: reason, metric_<name>, value_sem, ...,
                           ///< enough to rebuild the outcome
  Json system_attributes;  ///< "constraints" of an out-of-memory failure: Optuna's samplers avoid values above 0
};
/// `metric`: the objective's name among the metrics. A Measured without it, or with a value that is not finite, is a
/// bug of the caller (std::logic_error).
OutcomeRecord outcome_record(const trial::Outcome& outcome, const std::string& metric);
/// Rebuilds the outcome. Other programs write to the journal too, so attributes of a kind that krigtune does not write
/// are ignored, and a completed trial without a finite value becomes a failure (bad_result).
trial::Outcome outcome_from(TrialState state, const Json& values, const Json& attributes, const std::string& metric);
double wall_s_from(const Json& attributes);
std::string where_from(const Json& attributes);
int times_lost_from(const Json& attributes);

}  // namespace krigtune::journal
