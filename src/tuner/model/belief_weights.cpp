// A cost model whose links are wrong by a factor is wrong in a way that no smooth residual follows. So a prior comes
// with alternatives, hypotheses h of probabilities p_h, and the trials y choose among them (Bayesian model averaging:
// Hoeting et al. 1999, equations 1 to 3):
//
//   w_h = p_h p(y | h) / sum_k p_k p(y | k),   g(x) = sum_h w_h g_h(x)
//
// p(y | h) is the marginal likelihood of the surrogate with g_h as its prior. Averaging g instead of mixing the
// posteriors leaves out how far the hypotheses disagree: after three to five trials one of them has nearly all weight.
#include "model/belief_weights.h"

#include <cmath>

namespace krigtune {

BeliefWeights::BeliefWeights(const std::vector<Belief>& beliefs) {
  auto next = static_cast<Eigen::Index>(beliefs.size());
  for (std::size_t k = 0; k < beliefs.size(); ++k) {
    const auto others = static_cast<Eigen::Index>(beliefs[k].alternatives.size());
    Hypotheses prior{{static_cast<Eigen::Index>(k)}, Eigen::VectorXd::Ones(1 + others), {}};
    for (Eigen::Index h = 1; h <= others; ++h) {
      prior.columns.push_back(next++);
      prior.before(h) = beliefs[k].alternatives[static_cast<std::size_t>(h - 1)].probability;
      prior.before(0) -= prior.before(h);
    }
    prior.now = Eigen::VectorXd::Unit(1 + others, 0);
    priors_.push_back(std::move(prior));
  }
}

void BeliefWeights::learn(const Observations& latent, const std::function<double(const Observations&)>& log_evidence) {
  for (Hypotheses& prior : priors_) {
    const Eigen::Index count = prior.before.size();
    if (count == 1) continue;
    Eigen::VectorXd log_weight = prior.before.array().log();
    for (Eigen::Index h = 0; h < count; ++h) {
      prior.now = Eigen::VectorXd::Unit(count, h);
      log_weight(h) += log_evidence({mixed(latent.points), latent.values, latent.variance});
    }
    prior.now = (log_weight.array() - log_weight.maxCoeff()).exp();
    prior.now /= prior.now.sum();
  }
}

Points BeliefWeights::mixed(const Points& points) const {
  Points result{points.ordered, points.categories,
                Eigen::MatrixXd::Zero(points.size(), static_cast<Eigen::Index>(priors_.size()))};
  for (std::size_t k = 0; k < priors_.size(); ++k) {
    const Hypotheses& prior = priors_[k];
    for (std::size_t h = 0; h < prior.columns.size(); ++h) {
      result.features.col(static_cast<Eigen::Index>(k)) +=
          prior.now(static_cast<Eigen::Index>(h)) * points.features.col(prior.columns[h]);
    }
  }
  return result;
}

}  // namespace krigtune
