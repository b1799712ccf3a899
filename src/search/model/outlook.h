#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "search/model/trial_model.h"

namespace krigtune::search {

/// The model's predictions for all candidates when the strategy chose. All references must outlive the call.
struct ScoredCandidates {
  const CandidateList& list;
  const surrogate::Prediction& prediction;  ///< latent
  const Eigen::VectorXd& probability;       ///< of success
  const Eigen::VectorXd& log_cost;          ///< of a trial, in typical ones
  const std::vector<bool>& open;            ///< what was not asked
  const std::vector<bool>& wanted;          ///< what the strategy would ask
  const std::vector<bool>& within;          ///< one per measured configuration: it breaks no limit; one must be true
};

/// Returns the remaining gain over the best measured configuration: the expected gain of a wanted trial, and a bound
/// over all candidates and all measured configurations at the budget's confidence. `model` must be fitted. Other
/// configurations that were asked before are not included.
journal::Outlook outlook_of(const TrialModel& model, const session::Session& session, const Candidates& candidates,
                            const ScoredCandidates& scored);

/// A candidate: the difference of its latent value from the incumbent's, and its probability of success.
struct Challenger {
  double mean = 0.0;
  double stddev = 0.0;
  double probability = 1.0;
};

/// Returns the smallest d >= 0 with weight * sum of P(success and difference > d) <= 1 - confidence. By Boole's
/// inequality, at that confidence no challenger is better by more than d. `weight`: number of configurations that each
/// challenger represents.
double largest_difference(const std::vector<Challenger>& challengers, double weight, double confidence);

/// Returns E[max_i (means_i + slopes_i Z)] - max_i means_i with Z standard normal: the gain of choosing the best after
/// one more measurement instead of now.
double expected_gain_of_choice(const Eigen::VectorXd& means, const Eigen::VectorXd& slopes);

/// The gain of one more measurement for the recommendation, of a measured or a new configuration: the knowledge
/// gradient, in latent units (0.01 is 1 % if values are logarithms).
class RepeatGain {
 public:
  /// `model`: fitted, with pending trials believed. The arguments must outlive it.
  RepeatGain(const session::Session& session, const Candidates& candidates, const History& history,
             const TrialModel& model);

  struct Repeat {
    Eigen::Index row = 0;   ///< index among the measured configurations
    std::size_t trial = 0;  ///< index into the history: the first successful trial of its configuration
    double gain = 0.0;
    double mean = 0.0;  ///< latent posterior mean of its true value
  };
  /// Returns the repeat with the largest gain. Empty if no repetition can give a different result.
  std::optional<Repeat> best() const;
  /// Excludes a configuration that is now pending from the repeats, if it is one of the measured ones.
  void leave_out(const space::Configuration& configuration);
  /// Returns the gain of measuring a configuration that was not measured yet; `candidate` is one point.
  double of_new(const surrogate::Points& candidate) const;

 private:
  const Candidates& candidates_;
  const TrialModel& model_;
  bool exact_;
  const AchievedValues& achieved_;
  std::unordered_map<std::string, std::size_t> rows_;  ///< index of the measured configurations, by Candidates::key
  std::vector<bool> repeatable_;                       ///< one per measured configuration
  mutable std::vector<std::optional<double>> gains_;   ///< one per measured configuration; empty: not computed yet
};

}  // namespace krigtune::search
