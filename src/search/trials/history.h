#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "journal/journal.h"
#include "session/session.h"

namespace krigtune::search {

/// Everything that was asked so far, in order: closed and pending trials. Trials that do not count are treated as if
/// never asked.
using History = std::vector<journal::Trial>;

/// Returns whether the trial was closed as `failed` with the reason `interrupted`.
bool is_interrupted(const journal::Trial& trial);
/// Returns whether a trial counts. `failed` trials whose reason is not the configuration (interrupted, environment) do
/// not: they teach nothing, use no budget, and their configuration may be asked again. Trials waiting in Optuna's queue
/// and unusable records do not count either.
bool counts(const journal::Trial& trial);
/// Returns whether the trial is closed and counts.
bool is_closed(const journal::Trial& trial);
/// Returns the trial of that number, or nullptr.
const journal::Trial* find_trial(const History& history, std::int64_t number);
/// Returns the number of trials that count, including pending ones; random streams use it.
int counted_trials(const History& history);
/// Returns the number of closed trials that count against the budget: without configurations that are measured again
/// because trials run in parallel (kTogetherStrategy, kAloneStrategy) or because the user wants it (kRepeatStrategy).
int closed_trials(const History& history);
/// Returns the objective's value of a successful trial.
std::optional<double> value_of(const journal::Trial& trial, const session::Objective& objective);

// Values of Proposal::strategy for trials that no strategy proposed.
inline constexpr const char* kBaselineStrategy = "baseline";  ///< the session's baseline
inline constexpr const char* kTryStrategy = "try";            ///< the user's guesses
inline constexpr const char* kAgainStrategy = "again";        ///< the leader, measured again at the start of a new run

inline constexpr const char* kTogetherStrategy = "together";  ///< the baseline, in all slots at once
inline constexpr const char* kAloneStrategy = "alone";        ///< one of the best, measured with nothing beside it
inline constexpr const char* kRepeatStrategy = "repeat";      ///< the best or the baseline, once more at the end

}  // namespace krigtune::search
