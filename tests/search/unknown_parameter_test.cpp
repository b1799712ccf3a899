// A parameter that the physics of the job does not know: it is expected to matter little, and may matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "forecast/hypotheses.h"
#include "search/fixtures.h"
#include "search/model/trial_model.h"

namespace krigtune::unknown_parameter_test {

session::Session told() {
  return session::read_session(parse_json(R"({
      "workload": {"model": {"layers": 24, "hidden": 2048, "heads": 16, "vocab": 50304, "seq_len": 2048},
                   "precision": "bf16", "framework": "deepspeed", "train_batch_size": 256},
      "cluster": {"nodes": 1, "gpus_per_node": 8, "gpu": "a100-80gb", "interconnect": "pcie4"}, "baseline": null,
      "space": {"zero_stage": [0, 1, 2, 3], "tensor_parallel": [1, 2, 4, 8], "micro_batch": [1, 2, 4, 8, 16],
                "prefetch_depth": [1, 2, 4]},
      "objective": {"metric": "tokens_per_second"},
      "runner": {"kind": "command", "argv": ["true", "{config}"]}})",
                                          "s"),
                               "s", ".");
}

/// The told job's times with slower links, where twice the depth is `factor` times as fast.
double speed(const Problem& problem, const space::Configuration& configuration, double factor) {
  const forecast::Hypotheses& hypotheses = *problem.candidates.hypotheses();
  std::size_t slow = 0;
  while (hypotheses.all()[slow].link_times != 4.0) ++slow;
  const double depth = space::as_number(*configuration.find("prefetch_depth"));
  return std::exp(hypotheses.log_values({slow}, {configuration})(0, 0)) * std::pow(factor, std::log2(depth));
}

// A history of two trials. Row 5 is asked with another depth afterwards.
search::History two_trials(const Problem& problem, const trial::Outcome& of_row_5) {
  const search::CandidateList& list = *problem.candidates.to_score({}, 0);
  search::History history;
  for (const std::size_t row : {std::size_t{5}, std::size_t{77}}) {
    journal::Trial& trial = history.emplace_back();
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = list.configurations[row];
    trial.outcome = row == 5 ? of_row_5 : measured(problem.session, speed(problem, list.configurations[row], 1.0));
  }
  return history;
}

std::vector<space::Configuration> with_each_depth(const Problem& problem) {
  std::vector<space::Configuration> depths;
  for (const std::int64_t depth : {1, 2, 4}) {
    depths.push_back(problem.candidates.to_score({}, 0)->configurations[5]);
    depths.back().set("prefetch_depth", depth);
  }
  return depths;
}

// Nothing says why it failed. In a column as wide as the others P differed by 0.25.
TEST(UnknownParameter, DoesNotMakeAFailureNew) {
  const Problem problem(told(), Problem::WithPhysics{});
  const search::History history = two_trials(problem, trial::Failed{trial::FailureReason::kCrash, 1, ""});
  const search::TrialModel model(problem.session.objective, problem.candidates, history);
  const std::vector<space::Configuration> depths = with_each_depth(problem);
  const Eigen::VectorXd runs = model.probability(model.encode(depths), model.memory_of(depths));
  EXPECT_LE(runs.maxCoeff() - runs.minCoeff(), 0.03);
}

TEST(UnknownParameter, IsLearnedWhereItMatters) {
  const Problem problem(told(), Problem::WithPhysics{});
  const search::History history =
      problem.drive(search::StrategyKind::kBayes, 1, 12, [&](const space::Configuration& configuration) {
        return measured(problem.session, speed(problem, configuration, 1.5));
      });
  double best = 0.0;
  double best_of_all = 0.0;
  for (const journal::Trial& trial : history) {
    best = std::max(best, *search::value_of(trial, problem.session.objective));
  }
  for (const space::Configuration& one : problem.candidates.to_score({}, 0)->configurations) {
    best_of_all = std::max(best_of_all, speed(problem, one, 1.5));
  }
  EXPECT_GE(best, 0.95 * best_of_all);
}

}  // namespace krigtune::unknown_parameter_test
