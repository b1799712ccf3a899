// What trials say about the job, against a slower and more obvious way to compute it, and on jobs that are known.
#include "search/model/job_belief.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <numbers>

#include "forecast/hypotheses.h"
#include "krigtune/surrogate/hyperparameters.h"
#include "krigtune/surrogate/kernel.h"
#include "search/fixtures.h"
#include "search/model/objective_model.h"
#include "search/model/trial_model.h"

namespace krigtune::job_belief_test {

// GPUs behind PCIe, so that links decide.
session::Session told(int gpus = 8) {
  const std::string cluster = fmt::format(R"("gpus_per_node": {})", gpus);
  return session::read_session(parse_json(R"({
      "workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50304, "seq_len": 2048},
                   "precision": "bf16", "framework": "deepspeed", "train_batch_size": 256},
      "cluster": {"nodes": 1, "gpu": "a100-80gb", "interconnect": "pcie4", )" +
                                              cluster + R"(}, "baseline": null,
      "space": {"zero_stage": [0, 1, 2, 3], "tensor_parallel": [1, 2, 4, 8],
                "micro_batch": {"min": 1, "max": 32, "scale": "log2"}},
      "runner": {"kind": "command", "argv": ["true", "{config}"]}})",
                                          "s"),
                               "s", ".");
}

// The same cluster and space, but nothing about what is trained.
session::Session told_the_cluster() {
  return session::read_session(parse_json(R"({
      "cluster": {"nodes": 4, "gpus_per_node": 8, "gpu": "h100-80gb", "interconnect": "nvlink4",
                  "network": "ib-ndr-400"}, "baseline": null,
      "space": {"zero_stage": [0, 1], "tensor_parallel": [1, 2, 4, 8], "pipeline_parallel": [1, 2, 4],
                "micro_batch": [1, 2, 4, 8]},
      "objective": {"metric": "tokens_per_second"},
      "runner": {"kind": "command", "argv": ["true", "{config}"]}})",
                                          "s"),
                               "s", ".");
}

/// Trials of every `step`-th candidate, answered as if the hypothesis were true.
search::History answered(const Problem& problem, std::size_t hypothesis, int trials) {
  const forecast::Hypotheses& hypotheses = *problem.candidates.hypotheses();
  const search::CandidateList& list = *problem.candidates.to_score({}, 0);
  search::History history;
  for (int i = 0; i < trials; ++i) {
    const std::size_t row = (static_cast<std::size_t>(i) * 37 + 5) % list.size();
    journal::Trial trial;
    trial.number = i;
    trial.proposal.configuration = list.configurations[row];
    const std::vector<space::Configuration> one = {list.configurations[row]};
    const auto memory = hypotheses.memory({*hypotheses.all()[hypothesis].job}, one).front().front();
    if (memory && memory->probability_fits < 0.5) {
      trial.outcome = trial::OutOfMemory{};
    } else {
      trial.outcome = measured(problem.session, std::exp(hypotheses.log_values({hypothesis}, one)(0, 0)));
    }
    history.push_back(std::move(trial));
  }
  return history;
}

struct Belief {
  Belief(const Problem& problem, const search::History& history)
      : model(problem.session.objective, problem.candidates, history) {}
  search::TrialModel model;
  const search::JobBelief& operator*() const { return *model.job(); }
};

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// One hypothesis at a time, with whole matrices: the formulas at the top of job_belief.cpp.
double obvious_log_weight(const Problem& problem, const search::TrialModel& model, const search::History& history,
                          std::size_t h) {
  const forecast::Hypotheses& hypotheses = *problem.candidates.hypotheses();
  const forecast::Hypothesis& one = hypotheses.all()[h];
  double log_weight = std::log(one.probability);
  std::vector<space::Configuration> ran;
  for (const journal::Trial& trial : history) {
    const std::vector<space::Configuration> its = {trial.proposal.configuration};
    if (trial::ran(*trial.outcome)) ran.push_back(its.front());
    const auto memory = one.job ? hypotheses.memory({*one.job}, its).front().front() : std::nullopt;
    if (!memory) {
      log_weight += std::log(0.5);
      continue;
    }
    const double fits = memory->spread ? normal_cdf(memory->spread->margin) : memory->probability_fits;
    const double runs = 0.85 * fits + 0.03;
    log_weight += std::log(trial::ran(*trial.outcome) ? runs : 1.0 - fits + 0.03);
  }
  const surrogate::Observations& latent = model.measured().latent;
  const Eigen::VectorXd predicted = hypotheses.log_values({h}, ran);
  const Eigen::VectorXd centred = predicted.array() - predicted.mean();
  const auto kernel = surrogate::make_kernel(surrogate::KernelKind::kMatern52);
  const surrogate::HyperparameterPriors priors = search::residual_priors();
  // Probabilists' Gauss-Hermite: roots of x^5 - 10 x^3 + 15 x, weights 4! 5 / (5 He_4(x))^2 (times 1).
  const double inner = std::sqrt(5.0 - std::sqrt(10.0));
  const double outer = std::sqrt(5.0 + std::sqrt(10.0));
  // The density of some of the values, by whole matrices.
  const auto normal = [](const Eigen::MatrixXd& covariance, const Eigen::VectorXd& residual) {
    const double scale = std::pow(2.0 * std::numbers::pi, 0.5 * static_cast<double>(residual.size()));
    return std::exp(-0.5 * residual.dot(covariance.ldlt().solve(residual))) / std::sqrt(covariance.determinant()) /
           scale;
  };
  double density = 0.0;
  std::vector<std::pair<double, double>> levels = {{10.0, 1.0}};
  if (one.job && hypotheses.level_stddev()) levels = {{*hypotheses.level_stddev(), 0.8}, {10.0, 0.2}};
  for (const double x : {-outer, -inner, 0.0, inner, outer}) {
    const double he4 = std::pow(x, 4) - 6.0 * x * x + 3.0;
    const double weight = 24.0 * 5.0 / (25.0 * he4 * he4);
    const double s = std::exp(priors.signal_stddev.log_median + x * priors.signal_stddev.log_stddev);
    const Eigen::VectorXd theta =
        surrogate::uniform_theta(kernel->hyperparameters(latent.points.ordered.cols(), latent.points.categories.cols()),
                                 std::exp(priors.lengthscale.log_median), s);
    for (const auto& [level, share] : levels) {
      Eigen::MatrixXd covariance = kernel->gram(latent.points, latent.points, theta);
      covariance.array() += level * level;
      covariance += 0.2 * 0.2 * centred * centred.transpose();
      covariance.diagonal().array() += std::pow(std::exp(priors.noise_stddev.log_median), 2);
      covariance.diagonal() += latent.variance;
      const Eigen::VectorXd residual = latent.values - predicted;
      const Eigen::Index count = residual.size();
      double of_values = (1.0 - 0.005 * static_cast<double>(count)) * normal(covariance, residual);
      for (Eigen::Index i = 0; i < count; ++i) {
        std::vector<Eigen::Index> others;
        for (Eigen::Index k = 0; k < count; ++k) {
          if (k != i) others.push_back(k);
        }
        const Eigen::VectorXd expected = covariance(std::vector{i}, others) *
                                         covariance(others, others).ldlt().solve(Eigen::VectorXd(residual(others)));
        if (residual(i) < expected(0)) of_values += 0.005 * 0.1 * normal(covariance(others, others), residual(others));
      }
      density += weight * share * of_values;
    }
  }
  return log_weight + std::log(density);
}

TEST(JobBelief, FollowsBayesRule) {
  const Problem problem(told_the_cluster(), Problem::WithPhysics{});
  const search::History history = answered(problem, 330, 8);
  const Belief belief(problem, history);
  ASSERT_GE(belief.model.measured().size(), 4);
  const Eigen::VectorXd& got = (*belief).probabilities();
  EXPECT_NEAR(got.sum(), 1.0, 1e-12);
  Eigen::Index best = 0;
  got.maxCoeff(&best);
  const double reference = obvious_log_weight(problem, belief.model, history, static_cast<std::size_t>(best));
  int compared = 0;
  for (Eigen::Index h = 0; h < got.size(); ++h) {
    if (got(h) < 1e-6 * got(best)) continue;
    const double want = obvious_log_weight(problem, belief.model, history, static_cast<std::size_t>(h)) - reference;
    EXPECT_NEAR(std::log(got(h) / got(best)), want, 1e-5 * (1.0 + std::abs(want))) << h;
    ++compared;
  }
  EXPECT_GT(compared, 20);
}

// The archetypes are a factor of about 2.5 apart.
TEST(JobBelief, FindsTheSizeOfTheModel) {
  const Problem problem(told_the_cluster(), Problem::WithPhysics{});
  const forecast::Hypotheses& hypotheses = *problem.candidates.hypotheses();
  const auto size = [&](std::size_t h) {
    const auto job = hypotheses.all()[h].job;
    return job ? static_cast<double>(workload::parameter_count(hypotheses.workload(*job).model)) : 0.0;
  };
  for (const std::size_t truth : {250U, 500U, 750U}) {
    const Belief belief(problem, answered(problem, truth, 8));
    double near = 0.0;
    for (std::size_t h = 0; h < hypotheses.all().size(); ++h) {
      if (std::abs(std::log(size(h) / size(truth))) < std::log(4.0)) {
        near += (*belief).probabilities()(static_cast<Eigen::Index>(h));
      }
    }
    EXPECT_GT(near, 0.85) << truth;
  }
}

TEST(JobBelief, TellsWrongLinksByAFewTrials) {
  const Problem problem(told(), Problem::WithPhysics{});
  const forecast::Hypotheses& hypotheses = *problem.candidates.hypotheses();
  for (std::size_t truth = 0; truth < hypotheses.all().size(); ++truth) {
    const forecast::Hypothesis& one = hypotheses.all()[truth];
    if (!one.job || !hypotheses.is_told(*one.job) || one.link_times == 1.0) continue;
    const Belief belief(problem, answered(problem, truth, 6));
    double right = 0.0;
    for (std::size_t h = 0; h < hypotheses.all().size(); ++h) {
      if (hypotheses.all()[h].link_times == one.link_times) {
        right += (*belief).probabilities()(static_cast<Eigen::Index>(h));
      }
    }
    const double before = one.link_times == 0.5 || one.link_times == 2.0 ? 0.13 : 0.07;
    EXPECT_GT(right, 1.5 * before) << one.link_times;
  }
}

TEST(JobBelief, OneRankHasNoLinksToDoubt) {
  const session::Session session = told(1);
  const session::MemoryFilter filter(session);
  const auto prior = forecast::make_physics_prior(session, filter);
  ASSERT_TRUE(prior);
  for (const forecast::Hypothesis& one : prior->hypotheses()->all()) EXPECT_EQ(one.link_times, 1.0);
}

TEST(JobBelief, SharesStandForAllHypotheses) {
  const Problem problem(told_the_cluster(), Problem::WithPhysics{});
  for (const int trials : {0, 1, 6}) {
    const Belief belief(problem, answered(problem, 400, trials));
    double sum = 0.0;
    for (const search::JobBelief::Share& share : (*belief).shares()) sum += share.weight;
    EXPECT_NEAR(sum, 1.0, 1e-12);
    EXPECT_LE((*belief).shares().size(), 12U);
    const search::CandidateList& list = *problem.candidates.to_score({}, 0);
    const Eigen::MatrixXd values = (*belief).log_values(list.configurations);
    ASSERT_TRUE(values.allFinite());
    // The second columns are deviations from the first one, times the root of the weight.
    for (std::size_t i = 0; i < (*belief).shares().size(); ++i) {
      const search::JobBelief::Share& share = (*belief).shares()[i];
      const Eigen::VectorXd own = problem.candidates.hypotheses()->log_values({share.hypothesis}, list.configurations);
      const Eigen::VectorXd want = std::sqrt(share.weight) * (own - values.col(0));
      EXPECT_LT((values.col(1 + static_cast<Eigen::Index>(i)) - want).cwiseAbs().maxCoeff(), 1e-9);
    }
  }
}

}  // namespace krigtune::job_belief_test
