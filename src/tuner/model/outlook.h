#pragma once
#include "model/trial_model.h"

namespace krigtune {

/// What the model says of all candidates, as the strategy had it when it chose. All must outlive the call.
struct ScoredCandidates {
  const CandidateList& list;
  const Prediction& prediction;        ///< latent
  const Eigen::VectorXd& probability;  ///< of success
  const Eigen::VectorXd& log_cost;     ///< of a trial, in typical ones
  const std::vector<bool>& wanted;     ///< what the strategy would ask
};

/// What is left to gain over what the best measured one achieves: by a trial that is wanted, and the bound over all.
/// `model` is fitted; the confidence of the bound is the budget's. Configurations asked before are not part of what is
/// left.
Outlook outlook_of(const TrialModel& model, const Session& session, const Candidates& candidates,
                   const History& history, const ScoredCandidates& scored);

/// Of one candidate: how its latent value differs from the incumbent's, and its chance of succeeding.
struct Challenger {
  double mean = 0.0;
  double stddev = 0.0;
  double probability = 1.0;
};

/// The smallest d >= 0 with weight * sum of P(success and difference > d) <= 1 - confidence: by Boole's inequality no
/// challenger is better by more than d, at that confidence. `weight`: how many configurations each stands for.
double largest_difference(const std::vector<Challenger>& challengers, double weight, double confidence);

}  // namespace krigtune
