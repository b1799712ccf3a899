#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "search/model/trial_model.h"

namespace krigtune::search {

/// What the model says of all candidates, as the strategy had it when it chose. All must outlive the call.
struct ScoredCandidates {
  const CandidateList& list;
  const surrogate::Prediction& prediction;  ///< latent
  const Eigen::VectorXd& probability;       ///< of success
  const Eigen::VectorXd& log_cost;          ///< of a trial, in typical ones
  const std::vector<bool>& open;            ///< what was not asked
  const std::vector<bool>& wanted;          ///< what the strategy would ask
};

/// What is left to gain over what the best measured one achieves: by a trial that is wanted, and the bound over all.
/// `model` is fitted; the confidence of the bound is the budget's. Configurations asked before are not part of what is
/// left.
journal::Outlook outlook_of(const TrialModel& model, const session::Session& session, const Candidates& candidates,
                            const ScoredCandidates& scored);

/// Of one candidate: how its latent value differs from the incumbent's, and its chance of succeeding.
struct Challenger {
  double mean = 0.0;
  double stddev = 0.0;
  double probability = 1.0;
};

/// The smallest d >= 0 with weight * sum of P(success and difference > d) <= 1 - confidence: by Boole's inequality no
/// challenger is better by more than d, at that confidence. `weight`: how many configurations each stands for.
double largest_difference(const std::vector<Challenger>& challengers, double weight, double confidence);

/// E[max_i (means_i + slopes_i Z)] - max_i means_i, Z standard normal: what choosing the best after one more
/// measurement gains over choosing it now.
double expected_gain_of_choice(const Eigen::VectorXd& means, const Eigen::VectorXd& slopes);

/// What one more measurement gains for the recommendation, of something measured before or of something new: the
/// knowledge gradient, in latent units (a gain of 0.01 is 1 % where values are logarithms).
class RepeatGain {
 public:
  /// `model`: fitted, pending trials believed; where it is exact, nothing may be believed afterwards. The arguments
  /// must outlive it.
  RepeatGain(const session::Session& session, const Candidates& candidates, const History& history,
             const TrialModel& model);

  struct Repeat {
    Eigen::Index row = 0;   ///< of the measured configurations
    std::size_t trial = 0;  ///< index into the history: the first ok trial of its configuration
    double gain = 0.0;
    double mean = 0.0;  ///< of what it achieves, latent
  };
  /// The repeat that gains the most. Empty: nothing may be measured again with another result.
  std::optional<Repeat> best() const;
  /// It is pending by now, if it is one of the measured: not to be asked again.
  void leave_out(const space::Configuration& configuration);
  /// Of a configuration that was not measured yet; one point.
  double of_new(const surrogate::Points& candidate) const;

 private:
  const Candidates& candidates_;
  const TrialModel& model_;
  bool exact_;
  const AchievedValues& achieved_;
  std::unordered_map<std::string, std::size_t> rows_;  ///< of the measured configurations, by Candidates::key
  std::vector<bool> repeatable_;                       ///< one a measured configuration
  mutable std::vector<std::optional<double>> gains_;   ///< likewise; empty: not asked for yet
};

}  // namespace krigtune::search
