#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "journal/journal.h"
#include "session/session.h"

namespace krigtune::search {

/// Everything that was asked so far, in order: closed and pending trials. Trials that do not count are as if never
/// asked.
using History = std::vector<journal::Trial>;

/// Closed as `failed`, reason `interrupted`.
bool is_interrupted(const journal::Trial& trial);
/// False for `failed` trials whose reason is not the configuration's: interrupted, environment. They taught nothing,
/// count in no budget, and their configuration may be asked again. False too for what waits in Optuna's queue, and for
/// records that cannot be used.
bool counts(const journal::Trial& trial);
/// Closed, and it counts.
bool is_closed(const journal::Trial& trial);
/// The trial of that number; nullptr: there is none.
const journal::Trial* find_trial(const History& history, std::int64_t number);
/// Trials that count, pending ones included: the number that random streams are drawn by.
int counted_trials(const History& history);
/// Of those the closed ones, without what is measured again because trials run beside each other (kTogetherStrategy,
/// kAloneStrategy): what the budget of trials is of.
int closed_trials(const History& history);
/// The objective's value of an ok trial.
std::optional<double> value_of(const journal::Trial& trial, const session::Objective& objective);

// Who proposed a trial (Proposal::strategy), where it was no strategy.
inline constexpr const char* kBaselineStrategy = "baseline";  ///< Proposal::strategy of the session's baseline
inline constexpr const char* kTryStrategy = "try";            ///< of the user's guesses
inline constexpr const char* kAgainStrategy = "again";        ///< of the leader, measured again first in a new run

inline constexpr const char* kTogetherStrategy = "together";  ///< of the baseline, in all places at once
inline constexpr const char* kAloneStrategy = "alone";        ///< of one of the best, measured with nothing beside it

}  // namespace krigtune::search
