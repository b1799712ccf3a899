// What is the job? Each hypothesis h (forecast/hypotheses.h) predicts the time and the memory of every configuration.
// Its probability after the trials is, with the prior p_h (Bayesian model averaging: Hoeting et al. 1999, equations 1
// to 3),
//
//   w_h ~ p_h  p(values | h)  prod over trials of P(it ran, or it did not | h)  p(peaks | h)
//
// Values: y = o + g_h(x) + r(x) + noise, r ~ GP(0, s^2 Matern-5/2) with the medians of the lengthscale's and the
// noise's priors and s integrated out (five Gauss-Hermite points), and (b - 1) g_h as in the surrogate. The level o is
//
//   o ~ 0.8 Normal(0, level^2) + 0.2 Normal(0, 10^2)    if values have the unit of the predictions: one value says how
//                                                       large the job is, but a stranger's unit may be another one
//   o ~ Normal(0, 10^2)                                 otherwise
//
// Failures: P(ran | h) = 0.85 P_h(fits) + 0.03, because other things fail too, and plans may be wrong. A trial that
// says that it ran out of memory is judged without the 0.85. Peaks: log(measured / planned) = c + e, c ~ Normal(0,
// 0.3^2) for all, e ~ Normal(0, 0.3^2), because each part of a plan is wrong by a factor of its own
// (cost/memory/memory_shape.h). An error of more than a nat says no more.
// One value may be far too slow for a reason that no hypothesis knows (0.5 % each): it then says nothing about the job.
//
// Only the hypotheses that matter predict whole lists: the likeliest ones, and an even sample of the rest, each of
// which stands for its neighbours.
#include "search/model/job_belief.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "core/statistics.h"
#include "krigtune/surrogate/hyperparameters.h"
#include "krigtune/surrogate/kernel.h"
#include "krigtune/surrogate/success_model.h"
#include "search/model/objective_model.h"
#include "search/model/relevant_trials.h"
#include "search/model/trial_success.h"

namespace krigtune::search {
namespace {

constexpr Eigen::Index kMostWeighed = 48;  // measured configurations: more would change no weight
constexpr double kVagueLevel = 10.0;
constexpr double kTrustInLevel = 0.8;
constexpr double kScaleStddev = 0.2;  // of b, as in the surrogate

constexpr Eigen::Index kFewestToDoubtOne = 3;
constexpr double kOutlierShare = 0.005;  // of each value: q
constexpr double kOutlierDensity = 0.1;  // over ten nats: u
constexpr double kMostForgiven = 500.0;  // nats

constexpr double kRunsIfItFits = 0.85;
constexpr double kRunsAnyhow = 0.03;
constexpr double kSharedPeakStddev = 0.3;
constexpr double kOwnPeakStddev = 0.3;
constexpr double kFarPeak = 1.0;  // nats; a peak that is farther off says no more

// Gauss-Hermite points of a standard normal distribution.
struct QuadratureNode {
  double deviations;
  double weight;
};
constexpr std::array<QuadratureNode, 5> kNormalQuadrature{{{-2.8569700138728, 0.0112574113277},
                                                           {-1.3556261799743, 0.2220759220056},
                                                           {0.0, 0.5333333333333},
                                                           {1.3556261799743, 0.2220759220056},
                                                           {2.8569700138728, 0.0112574113277}}};

double log_sum_exp(const Eigen::VectorXd& terms) {
  const double largest = terms.maxCoeff();
  return largest + std::log((terms.array() - largest).exp().sum());
}

/// The density of some measured values under any hypothesis. All hypotheses share the factors of the covariance.
class ValueEvidence {
 public:
  ValueEvidence(const MeasuredValues& measured, const std::vector<Eigen::Index>& rows,
                const forecast::Hypotheses& hypotheses)
      : hypotheses_(hypotheses), values_(measured.latent.values(rows)) {
    for (const Eigen::Index row : rows)
      configurations_.push_back(measured.configurations[static_cast<std::size_t>(row)]);
    const surrogate::Points points = measured.latent.points.rows(rows);
    const Eigen::VectorXd variance = measured.latent.variance(rows);
    const std::optional<double> level = hypotheses.level_stddev();
    add(points, variance, kVagueLevel, 1.0, relative_);
    add(points, variance, kVagueLevel, level ? 1.0 - kTrustInLevel : 1.0, absolute_);
    if (level) add(points, variance, *level, kTrustInLevel, absolute_);
  }

  /// Returns log p(values | hypothesis) for each of the hypotheses.
  Eigen::VectorXd operator()(const std::vector<std::size_t>& hypotheses) const {
    const Eigen::MatrixXd predicted = hypotheses_.log_values(hypotheses, configurations_);
    Eigen::VectorXd log_density(predicted.cols());
    for (Eigen::Index i = 0; i < predicted.cols(); ++i) {
      log_density(i) = of(hypotheses[static_cast<std::size_t>(i)], predicted.col(i));
    }
    return log_density;
  }

 private:
  double of(std::size_t hypothesis, const Eigen::VectorXd& predicted) const {
    const std::vector<Part>& parts = hypotheses_.all()[hypothesis].job ? absolute_ : relative_;
    Eigen::VectorXd terms(static_cast<Eigen::Index>(parts.size()));
    const Eigen::VectorXd residuals = values_ - predicted;
    const Eigen::VectorXd scaled = kScaleStddev * (predicted.array() - predicted.mean());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      terms(static_cast<Eigen::Index>(i)) = parts[i].log_weight + log_density(parts[i], residuals, scaled);
    }
    return log_sum_exp(terms);
  }

  struct Part {
    Eigen::MatrixXd inverse;  ///< of the covariance
    double log_determinant;
    double log_weight;
  };

  // The covariance with (b - 1) g is a rank-one update (Sherman and Morrison 1950). One value may be far too slow for a
  // reason of its own: p(values) = (1 - n q) N(all) + q u sum_i N(all but i), where the value i is below its prediction
  // from the others, and N(all but i) = N(all) / N(i given the others) (Rasmussen and Williams 2006, equation 5.12).
  static double log_density(const Part& part, const Eigen::VectorXd& residuals, const Eigen::VectorXd& scaled) {
    const Eigen::VectorXd v = part.inverse * scaled;
    const double more = 1.0 + scaled.dot(v);
    const Eigen::VectorXd alpha = part.inverse * residuals - v * (v.dot(residuals) / more);
    const double log_all = -0.5 * (residuals.dot(alpha) + part.log_determinant + std::log(more));
    const auto count = static_cast<double>(residuals.size());
    if (residuals.size() < kFewestToDoubtOne) return log_all;
    const Eigen::VectorXd precision = part.inverse.diagonal().array() - v.array().square() / more;
    double factor = 1.0 - count * kOutlierShare;
    for (Eigen::Index i = 0; i < residuals.size(); ++i) {
      if (alpha(i) >= 0.0) continue;
      const double log_own =
          0.5 * (std::log(precision(i) / (2.0 * std::numbers::pi)) - alpha(i) * alpha(i) / precision(i));
      factor += kOutlierShare * kOutlierDensity * std::exp(std::min(-log_own, kMostForgiven));
    }
    return log_all + std::log(factor);
  }

  static void add(const surrogate::Points& points, const Eigen::VectorXd& variance, double level_stddev, double share,
                  std::vector<Part>& parts) {
    const std::shared_ptr<const surrogate::Kernel> kernel = surrogate::make_kernel(surrogate::KernelKind::kMatern52);
    const surrogate::HyperparameterPriors priors = residual_priors();
    const double noise = std::exp(priors.noise_stddev.log_median);
    for (const QuadratureNode& node : kNormalQuadrature) {
      const double stddev =
          std::exp(priors.signal_stddev.log_median + node.deviations * priors.signal_stddev.log_stddev);
      const Eigen::VectorXd theta =
          surrogate::uniform_theta(kernel->hyperparameters(points.ordered.cols(), points.categories.cols()),
                                   std::exp(priors.lengthscale.log_median), stddev);
      Eigen::MatrixXd covariance = kernel->gram(points, points, theta);
      covariance.array() += level_stddev * level_stddev;
      covariance.diagonal() += variance;
      covariance.diagonal().array() += noise * noise;
      const Eigen::LLT<Eigen::MatrixXd> factors(covariance);
      const Eigen::MatrixXd identity = Eigen::MatrixXd::Identity(covariance.rows(), covariance.cols());
      parts.push_back({factors.solve(identity), 2.0 * factors.matrixLLT().diagonal().array().log().sum(),
                       std::log(node.weight * share)});
    }
  }

  const forecast::Hypotheses& hypotheses_;
  Eigen::VectorXd values_;
  std::vector<space::Configuration> configurations_;
  std::vector<Part> absolute_;  ///< for hypotheses that predict values in their unit
  std::vector<Part> relative_;  ///< for the others
};

/// The trials that say something about memory.
struct MemoryTrials {
  std::vector<space::Configuration> configurations;
  std::vector<const trial::Outcome*> outcomes;
};

MemoryTrials memory_trials(const History& history) {
  MemoryTrials trials;
  for (const journal::Trial& trial : history) {
    if (!trial.outcome || !counts(trial)) continue;
    if (!trial::ran(*trial.outcome) && !trial::is_unforeseen_failure(*trial.outcome)) continue;
    trials.configurations.push_back(trial.proposal.configuration);
    trials.outcomes.push_back(&*trial.outcome);
  }
  return trials;
}

double log_peaks(const std::vector<double>& errors) {
  const auto count = static_cast<double>(errors.size());
  const double own = kOwnPeakStddev * kOwnPeakStddev;
  const double total = own + count * kSharedPeakStddev * kSharedPeakStddev;
  const double sum = std::accumulate(errors.begin(), errors.end(), 0.0);
  const double squares = std::inner_product(errors.begin(), errors.end(), errors.begin(), 0.0);
  const double quadratic = squares / own - sum * sum * kSharedPeakStddev * kSharedPeakStddev / (own * total);
  return -0.5 * (quadratic + (count - 1.0) * std::log(own) + std::log(total));
}

double log_evidence_of_memory(const MemoryTrials& trials,
                              const std::vector<std::optional<plan::MemoryVerdict>>& verdicts) {
  double sum = 0.0;
  std::vector<double> peak_errors;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    const trial::Outcome& outcome = *trials.outcomes[i];
    if (!verdicts[i]) {
      sum += std::log(0.5);
      continue;
    }
    const double fits = verdicts[i]->spread ? normal_cdf(verdicts[i]->spread->margin) : verdicts[i]->probability_fits;
    const double runs = kRunsIfItFits * fits + kRunsAnyhow;
    if (trial::ran(outcome)) {
      sum += std::log(runs);
    } else if (trial::ran_out_of_memory(outcome)) {
      sum += std::log(1.0 - fits + kRunsAnyhow);
    } else {
      sum += std::log(1.0 - runs);
    }
    const auto* measured = std::get_if<trial::Measured>(&outcome);
    if (measured == nullptr || !measured->peak_memory || measured->peak_memory->count <= 0 || !verdicts[i]->spread) {
      continue;
    }
    const double error = std::log(static_cast<double>(measured->peak_memory->count) /
                                  std::max(static_cast<double>(verdicts[i]->spread->allocated.count), 1.0));
    peak_errors.push_back(std::clamp(error, -kFarPeak, kFarPeak));
  }
  return peak_errors.empty() ? sum : sum + log_peaks(peak_errors);
}

// Returns one logarithm for each hypothesis.
Eigen::VectorXd log_evidence_of_memory(const forecast::Hypotheses& hypotheses, const MemoryTrials& trials) {
  const std::vector<forecast::Hypothesis>& all = hypotheses.all();
  // What plans nothing foresees nothing: each trial runs or not.
  const double unplanned = std::log(0.5) * static_cast<double>(trials.outcomes.size());
  Eigen::VectorXd log_evidence = Eigen::VectorXd::Constant(static_cast<Eigen::Index>(all.size()), unplanned);
  if (trials.outcomes.empty()) return log_evidence;
  std::vector<std::size_t> jobs(hypotheses.jobs());
  std::iota(jobs.begin(), jobs.end(), std::size_t{0});
  std::vector<double> of_jobs;
  for (const auto& verdicts : hypotheses.memory(jobs, trials.configurations)) {
    of_jobs.push_back(log_evidence_of_memory(trials, verdicts));
  }
  for (std::size_t h = 0; h < all.size(); ++h) {
    if (all[h].job) log_evidence(static_cast<Eigen::Index>(h)) = of_jobs[*all[h].job];
  }
  return log_evidence;
}

// Returns the hypotheses that matter with their weights: the likeliest half of `most`, and as many that are spread
// evenly over the probability of the rest.
std::vector<JobBelief::Share> shares_of(const Eigen::VectorXd& probabilities, std::size_t most) {
  constexpr double kNegligible = 1e-3;  // of the likeliest one
  std::vector<std::size_t> order(static_cast<std::size_t>(probabilities.size()));
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto of = [&](std::size_t h) { return probabilities(static_cast<Eigen::Index>(h)); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return of(a) > of(b); });
  while (!order.empty() && of(order.back()) < kNegligible * of(order.front())) order.pop_back();
  std::vector<JobBelief::Share> shares;
  const std::size_t likeliest = order.size() <= most ? order.size() : (most + 1) / 2;
  for (std::size_t i = 0; i < likeliest; ++i) shares.push_back({order[i], of(order[i])});
  std::vector<std::size_t> rest(order.begin() + static_cast<std::ptrdiff_t>(likeliest), order.end());
  std::sort(rest.begin(), rest.end());
  double mass = 0.0;
  for (const std::size_t h : rest) mass += of(h);
  const std::size_t places = most - std::min(most, likeliest);
  double passed = 0.0;
  std::size_t place = 0;
  for (const std::size_t h : rest) {
    passed += of(h);
    std::size_t hits = 0;
    while (place < places && passed >= mass * (static_cast<double>(place) + 0.5) / static_cast<double>(places)) {
      ++place;
      ++hits;
    }
    if (hits > 0) shares.push_back({h, mass * static_cast<double>(hits) / static_cast<double>(places)});
  }
  double sum = 0.0;
  for (const JobBelief::Share& share : shares) sum += share.weight;
  for (JobBelief::Share& share : shares) share.weight /= sum;
  return shares;
}

}  // namespace

bool job_plans_memory(const Candidates& candidates) {
  return candidates.hypotheses() != nullptr && candidates.hypotheses()->know_memory() &&
         !candidates.filter().is_exact();
}

JobBelief::JobBelief(const Candidates& candidates, const History& history, const MeasuredValues& measured,
                     std::size_t most)
    : hypotheses_(*candidates.hypotheses()) {
  const bool is_exact = candidates.filter().is_exact();
  const MemoryTrials trials = is_exact ? MemoryTrials{} : memory_trials(history);
  weigh(measured, log_evidence_of_memory(hypotheses_, trials));
  shares_ = shares_of(probabilities_, most);
  for (const Share& share : shares_) {
    const std::optional<std::size_t> job = hypotheses_.all()[share.hypothesis].job;
    if (!job) continue;
    const auto known =
        std::find_if(jobs_.begin(), jobs_.end(), [&](const JobShare& other) { return other.job == *job; });
    if (known != jobs_.end()) {
      known->weight += share.weight;
    } else {
      jobs_.push_back({*job, share.weight, std::nullopt});
    }
  }
  for (JobShare& job : jobs_) {
    if (!is_exact)
      job.shape = learned_shape(trials.outcomes, hypotheses_.memory({job.job}, trials.configurations).front());
  }
}

double JobBelief::probability_of_no_step() const {
  double sum = 0.0;
  for (std::size_t h = 0; h < hypotheses_.all().size(); ++h) {
    if (!hypotheses_.all()[h].job) sum += probabilities_(static_cast<Eigen::Index>(h));
  }
  return sum;
}

// Most hypotheses are out after a few values. So all are weighed by the first two, those that are left by five, and so
// on: the others need not predict the later ones.
void JobBelief::weigh(const MeasuredValues& measured, const Eigen::VectorXd& log_evidence) {
  constexpr double kHopeless = 14.0;  // nats below the best
  const std::vector<forecast::Hypothesis>& all = hypotheses_.all();
  const auto count = static_cast<Eigen::Index>(all.size());
  Eigen::VectorXd before(count);
  for (Eigen::Index h = 0; h < count; ++h) {
    before(h) = std::log(all[static_cast<std::size_t>(h)].probability) + log_evidence(h);
  }
  Eigen::VectorXd log_weight = before;
  std::vector<Eigen::Index> rows = relevant_rows(measured.latent.points, measured.latent.values, kMostWeighed);
  std::sort(rows.begin(), rows.end());
  const std::size_t values = measured.latent.size() > 0 ? rows.size() : 0;
  std::size_t seen = 0;
  for (const std::size_t stage : {std::size_t{2}, std::size_t{5}, std::size_t{12}, values}) {
    if (seen == std::min(stage, values)) continue;
    seen = std::min(stage, values);
    const ValueEvidence evidence(measured, {rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(seen)},
                                 hypotheses_);
    const double hopeless = log_weight.maxCoeff() - kHopeless;
    std::vector<std::size_t> left;
    for (Eigen::Index h = 0; h < count; ++h) {
      if (log_weight(h) >= hopeless) left.push_back(static_cast<std::size_t>(h));
    }
    log_weight.setConstant(-std::numeric_limits<double>::infinity());
    log_weight(left) = before(left) + evidence(left);
  }
  probabilities_ = (log_weight.array() - log_weight.maxCoeff()).exp();
  probabilities_ /= probabilities_.sum();
}

Eigen::MatrixXd JobBelief::log_values(const std::vector<space::Configuration>& configurations) const {
  const auto count = static_cast<Eigen::Index>(shares_.size());
  Eigen::MatrixXd values(static_cast<Eigen::Index>(configurations.size()), 1 + count);
  std::vector<std::size_t> hypotheses;
  Eigen::VectorXd weights(count);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    hypotheses.push_back(shares_[i].hypothesis);
    weights(static_cast<Eigen::Index>(i)) = shares_[i].weight;
  }
  values.rightCols(count) = hypotheses_.log_values(hypotheses, configurations);
  values.col(0) = values.rightCols(count) * weights;
  for (Eigen::Index i = 0; i < count; ++i) {
    values.col(1 + i) = std::sqrt(weights(i)) * (values.col(1 + i) - values.col(0));
  }
  return values;
}

std::vector<std::optional<plan::MemoryVerdict>> JobBelief::memory(
    const std::vector<space::Configuration>& configurations) const {
  constexpr double kUnplanned = 0.88;  // as without a plan (trial_success.cpp)
  std::vector<std::optional<plan::MemoryVerdict>> averaged(configurations.size());
  std::vector<double> fits(configurations.size(), 0.0);
  std::vector<double> planned(configurations.size(), 0.0);
  std::vector<std::size_t> jobs;
  for (const JobShare& job : jobs_) jobs.push_back(job.job);
  const auto of_jobs = hypotheses_.memory(jobs, configurations);
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const JobShare& job = jobs_[j];
    const auto& verdicts = of_jobs[j];
    const Eigen::VectorXd margins = margins_of(verdicts, job.shape);
    for (std::size_t i = 0; i < verdicts.size(); ++i) {
      if (!verdicts[i]) continue;
      if (!averaged[i]) averaged[i].emplace();
      averaged[i]->predicted = verdicts[i]->predicted;
      fits[i] += job.weight * normal_cdf(margins(static_cast<Eigen::Index>(i)));
      planned[i] += job.weight;
    }
  }
  for (std::size_t i = 0; i < averaged.size(); ++i) {
    if (!averaged[i]) continue;
    averaged[i]->probability_fits = fits[i] + (1.0 - planned[i]) * kUnplanned;
  }
  return averaged;
}

}  // namespace krigtune::search
