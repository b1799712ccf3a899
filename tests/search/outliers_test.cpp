// A configuration that is slower than everything around it, for reasons that no model has. The model doubts it, and
// does not extend it to its neighbours.
#include <gtest/gtest.h>

#include <algorithm>

#include "search/model/trial_model.h"
#include "search/ultrascale.h"

namespace krigtune::outliers_test {

// Physics predicts what to expect.
TEST(Outliers, AreDoubtedAndNothingElseIs) {
  const Problem problem(session::read_session(parse_json(ultrascale(64, "known"), "s"), "s", "."),
                        Problem::WithPhysics{});
  const forecast::Forecaster forecast(problem.session, problem.filter);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) {
    const forecast::Forecast of = forecast(problem.candidates[i]);
    if (!of.memory || of.memory->probability_fits > 0.99) order.emplace_back(-forecast.score(of), i);
  }
  std::sort(order.begin(), order.end());
  // The best prediction is left alone; the second best is the slow one.
  const auto after = [&](double factor) {
    search::History history;
    for (const std::size_t rank : {1U, 5U, 10U, 20U, 30U, 40U}) {
      journal::Trial trial;
      trial.number = static_cast<int>(history.size());
      trial.proposal.configuration = problem.candidates[order[rank].second];
      const double value = -order[rank].first;
      trial.outcome = measured(problem.session, rank == 1 ? factor * value : value);
      history.push_back(trial);
    }
    search::TrialModel model(problem.session.objective, problem.candidates, history);
    Rng rng(1, 1);
    model.fit(rng);
    return Eigen::VectorXd(model.predict(model.points_of(*problem.candidates.to_score(history, 0))).mean);
  };
  Eigen::VectorXd off = (after(0.02) - after(1.0)).cwiseAbs();
  off(static_cast<Eigen::Index>(order[1].second)) = 0.0;
  EXPECT_LE(off.mean(), 0.1);
  EXPECT_LE(off.maxCoeff(), 0.3);  // a fiftieth is 3.9 nats
}

// Nothing is known in advance: a link that retransmits for one configuration says nothing about others of its stage.
TEST(Outliers, AreNoPropertyOfTheirStage) {
  const Problem problem(plain_session(R"({"stage": [0, 1, 2, 3], "batch": {"min": 1, "max": 64, "scale": "log2"}})"));
  const auto predicted_after = [&](double factor) {
    search::History history;
    for (const auto& [stage, batch] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {0, 1}, {0, 16}, {1, 4}, {1, 64}, {2, 2}, {2, 8}, {2, 32}, {3, 1}, {3, 16}}) {
      journal::Trial trial;
      trial.number = static_cast<int>(history.size());
      trial.proposal.configuration = space::Configuration({{"stage", stage}, {"batch", batch}});
      const double speed = 100.0 + 5.0 * static_cast<double>(stage) + 8.0 * std::log2(static_cast<double>(batch));
      trial.outcome = measured(problem.session, stage == 2 && batch == 8 ? speed / factor : speed);
      history.push_back(trial);
    }
    search::TrialModel model(problem.session.objective, problem.candidates, history);
    Rng rng(1, 1);
    model.fit(rng);
    const surrogate::Points others =
        problem.candidates.encode({space::Configuration({{"stage", std::int64_t{2}}, {"batch", std::int64_t{4}}}),
                                   space::Configuration({{"stage", std::int64_t{2}}, {"batch", std::int64_t{16}}})});
    return Eigen::VectorXd(model.predict(others).mean.array().exp());
  };
  for (const double factor : {3.0, 8.0, 30.0}) {
    const Eigen::VectorXd off = (predicted_after(factor).array() / predicted_after(1.0).array()).log();
    EXPECT_LE(off.cwiseAbs().maxCoeff(), 0.1) << factor;
  }
}

}  // namespace krigtune::outliers_test
