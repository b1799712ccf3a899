#pragma once
#include <Eigen/Core>
#include <vector>

#include "search/candidates/candidate_list.h"
#include "search/candidates/candidates.h"
#include "search/model/limit_models.h"
#include "search/model/trial_model.h"

// Which candidates a model lets a strategy choose from. `probability`: that a trial of each candidate succeeds.
namespace krigtune::search {

/// Returns whether a trial may fail, so that probabilities matter.
bool may_fail(const TrialModel& model, const CandidateList& list);

/// Returns the probabilities that a trial succeeds and is within the session's limits; ones if there is no sign that
/// one may fail or break a limit.
Eigen::VectorXd success_probability(const TrialModel& model, const CandidateList& list, const LimitModels& limits);

/// Returns what was not asked yet. What the session's plan calls too large must be likely enough to run all the same.
std::vector<bool> open_candidates(const Candidates& candidates, const CandidateList& list, const History& history,
                                  const Eigen::VectorXd& probability);

/// Drops candidates that are far less likely to run than the likeliest of `safe`, a subset of the allowed ones.
void drop_unlikely(const TrialModel& model, std::vector<bool>& allowed, const Eigen::VectorXd& probability,
                   const std::vector<bool>& safe);

/// Returns whether the first trials are spread over the space, because nothing is believed about it.
bool spreads_first_trials(const TrialModel& model, const History& history, const session::Session& session);

}  // namespace krigtune::search
