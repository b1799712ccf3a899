// Sessions with several objectives: the search of a front.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "search/fixtures.h"
#include "search/model/front.h"
#include "search/model/other_objective.h"
#include "search/uncertain_memory.h"
#include "session/objectives.h"
#include "user_error.h"

namespace krigtune {
namespace {

constexpr std::uint64_t kSeed = 54;

/// Speed is to be maximised and memory to be minimised; only the budget ends it.
session::Session two_objectives(const std::string& space = kFourKnobs) {
  session::Session session = plain_session(space);
  session.others = {{"memory", false, "memory"}};
  return session;
}

trial::Outcome both(double speed, double memory) {
  trial::Measured result;
  result.metrics = {{"speed", speed}, {"memory", memory}};
  return result;
}

/// Larger batches are faster and need more memory, stages save some of it and are slower, and the bucket and the
/// overlap have an optimum of speed that costs no memory.
trial::Outcome trade_off(const space::Configuration& c) {
  const double batch = log2_of(c, "batch");
  const double stage = space::as_number(*c.find("stage"));
  const double bucket = log2_of(c, "bucket") - 15.0;
  const bool overlap = space::to_string(*c.find("overlap")) == "true";
  const double speed = 100.0 * (1.0 - std::exp(-0.4 * (batch + 1.0))) * (1.0 - 0.08 * stage) *
                       (1.0 - 0.01 * bucket * bucket) * (overlap ? 1.1 : 1.0);
  return both(speed, 10.0 / (1.0 + stage) + std::exp2(batch) * (overlap ? 1.02 : 1.0));
}

/// The two largest batches run out of memory below stage 2.
trial::Outcome trade_off_with_failures(const space::Configuration& c) {
  if (log2_of(c, "batch") > 4.5 && space::as_number(*c.find("stage")) < 1.5) return trial::OutOfMemory{};
  return trade_off(c);
}

Eigen::MatrixXd points_of(const std::vector<trial::Outcome>& outcomes) {
  Eigen::MatrixXd points(0, 2);
  for (const trial::Outcome& outcome : outcomes) {
    const auto* measured = std::get_if<trial::Measured>(&outcome);
    if (measured == nullptr) continue;
    points.conservativeResize(points.rows() + 1, 2);
    points.row(points.rows() - 1) << measured->metrics.at("speed"), -measured->metrics.at("memory");
  }
  return points;
}

/// The hypervolume above (0, 80), which is worse than every value, as a share of that of the whole space's front.
double share_of_front(const Problem& problem, const search::History& history, const FakeRunner::Answer& answer) {
  const Eigen::Vector2d reference(0.0, -80.0);
  std::vector<trial::Outcome> all, found;
  for (std::size_t i = 0; i < problem.candidates.size(); ++i) all.push_back(answer(problem.candidates[i]));
  for (const journal::Trial& trial : history) found.push_back(*trial.outcome);
  return surrogate::hypervolume(points_of(found), reference) / surrogate::hypervolume(points_of(all), reference);
}

int failures_in(const search::History& history) {
  return static_cast<int>(std::count_if(history.begin(), history.end(), [](const journal::Trial& trial) {
    return std::holds_alternative<trial::OutOfMemory>(*trial.outcome);
  }));
}

journal::Trial closed(int number, const std::string& value, trial::Outcome outcome) {
  journal::Trial trial;
  trial.number = number;
  trial.proposal.configuration = {{"a", value}};
  trial.outcome = std::move(outcome);
  return trial;
}

TEST(Front, HasTheMeasuredConfigurationsThatNoOtherDominates) {
  const session::Session session = two_objectives();
  const search::History history = {closed(0, "p", both(10.0, 5.0)), closed(1, "q", both(12.0, 9.0)),
                                   closed(2, "r", both(9.0, 6.0)),  closed(3, "s", trial::OutOfMemory{}),
                                   closed(4, "q", both(14.0, 7.0)), closed(5, "t", both(20.0, 30.0))};
  const std::vector<search::FrontMember> front = search::front_of(session, history);
  ASSERT_EQ(front.size(), 3);
  EXPECT_EQ(front[0].trial, 5);
  EXPECT_EQ(front[1].trial, 4) << "the better one of its two trials";
  EXPECT_EQ(front[1].values, (std::vector<double>{13.0, 8.0})) << "the means of its two trials";
  EXPECT_EQ(front[1].measurements, 2);
  EXPECT_EQ(front[2].trial, 0) << "r is slower and needs more memory";
  EXPECT_EQ(search::trials_without_progress(session, history), 0);
}

TEST(Front, LeavesOutWhatIsBeyondALimit) {
  session::Session session = two_objectives();
  session.others.front().limit = 8.0;
  const search::History history = {closed(0, "p", both(10.0, 5.0)), closed(1, "q", both(12.0, 8.0)),
                                   closed(2, "r", both(20.0, 8.5))};
  const std::vector<search::FrontMember> front = search::front_of(session, history);
  ASSERT_EQ(front.size(), 2);
  EXPECT_EQ(front[0].trial, 1) << "the limit itself is allowed";
  EXPECT_EQ(search::trials_without_progress(session, history), 1);
}

TEST(Front, OfOneObjectiveIsEmpty) {
  EXPECT_TRUE(search::front_of(plain_session(kFourKnobs), {closed(0, "p", both(1.0, 1.0))}).empty());
}

TEST(Front, ThePreferredMemberIsTheBestByTheOtherObjectiveWithinTheBound) {
  const session::Session session = two_objectives();
  const std::vector<search::FrontMember> front = {
      {0, {}, {100.0, 50.0}, 1}, {1, {}, {96.0, 30.0}, 1}, {2, {}, {94.0, 10.0}, 1}};
  const auto chosen = [&](const std::string& text) {
    return search::preferred(session, front, session::read_preference(session, text, "--prefer"));
  };
  EXPECT_EQ(chosen("speed >= 0.95 best"), 1);
  EXPECT_EQ(chosen("speed >= 1 best"), 0);
  EXPECT_EQ(chosen("speed >= 94"), 2);
  EXPECT_EQ(chosen("memory <= 35"), 1);
  EXPECT_EQ(chosen("memory <= 3.5 best"), 1);
  EXPECT_EQ(chosen("speed >= 101"), std::nullopt);
}

TEST(Front, APreferenceThatCannotBeReadIsRefusedInOneLine) {
  const session::Session session = two_objectives();
  const auto refusal = [&](const session::Session& of, const std::string& text) {
    return user_error_of([&] { session::read_preference(of, text, "--prefer"); });
  };
  EXPECT_NE(refusal(session, "sped >= 1").find("'sped' is none of the objectives"), std::string::npos);
  EXPECT_NE(refusal(session, "speed <= 1").find("to be maximized"), std::string::npos);
  for (const char* text : {"", "speed", "speed >= x", "speed >= 1 worst", "speed >= nan", "speed >= 1 best of all"}) {
    EXPECT_NE(refusal(session, text).find("is not a preference"), std::string::npos) << text;
  }
  EXPECT_NE(refusal(plain_session(kFourKnobs), "speed >= 1").find("one objective"), std::string::npos);
}

Eigen::MatrixXd certain(const Eigen::MatrixXd& expected) {
  return Eigen::MatrixXd::Zero(expected.rows(), expected.cols());
}

TEST(FrontGain, IsTheShareThatACertainTrialAdds) {
  // Latent values are logarithms, and the reference is 0.1 times the range of the values beyond the worst: speeds are 1
  // and e, memories 1 and e.
  const session::Session session = two_objectives();
  const search::History history = {closed(0, "p", both(1.0, 1.0)), closed(1, "q", both(std::exp(1.0), std::exp(1.0)))};
  std::vector<search::ObjectiveScale> scales;
  for (const session::Objective& one : session::all_objectives(session)) scales.emplace_back(one, history);
  const Eigen::MatrixXd measured{{0.0, 0.0}, {1.0, -1.0}};
  const search::FrontGain gain(scales, measured, measured, certain(measured), {std::nullopt, std::nullopt});
  const double e = std::exp(1.0);
  const double slow = 1.0 - 0.1 * (e - 1.0), large = e + 0.1 * (e - 1.0);
  EXPECT_LE((gain.reference() - Eigen::Vector2d(std::log(slow), -std::log(large))).norm(), 1e-14);
  const double volume = (1.0 - slow) * (large - 1.0) + (e - 1.0) * (large - e);
  EXPECT_LE(std::abs(gain.hypervolume() - volume), 1e-13);
  // A point at (0.5, -0.5) adds the rectangle between its neighbours. Its stddev of 1e-6 moves this by as little.
  const double added = (std::exp(0.5) - 1.0) * (e - std::exp(0.5));
  const double share = gain.share(Eigen::Vector2d(0.5, -0.5), Eigen::Vector2d::Constant(1e-7));
  EXPECT_LE(std::abs(share - added / volume), 1e-5);
}

// A candidate that is expected to be dominated, but may well be the best in the second objective, extends the range of
// the first one: memory 2 +- 1 where 1 is the best, for a speed of 0.4. Ranges are those of the values (not
// logarithms).
TEST(FrontGain, TheReferenceLeavesRoomForAPromisingEnd) {
  session::Session session = two_objectives();
  session.objective.by_ratio = session.others.front().by_ratio = false;
  const search::History history = {closed(0, "p", both(1.0, 1.0)), closed(1, "q", both(2.0, 3.0))};
  std::vector<search::ObjectiveScale> scales;
  for (const session::Objective& one : session::all_objectives(session)) scales.emplace_back(one, history);
  const Eigen::MatrixXd measured{{1.0, -1.0}, {2.0, -3.0}};
  const Eigen::MatrixXd expected{{1.5, -2.0}, {0.4, -2.0}, {0.2, -2.5}};
  Eigen::MatrixXd stddev = certain(expected);
  const search::FrontGain sure(scales, measured, expected, stddev, {std::nullopt, std::nullopt});
  EXPECT_LE((sure.reference() - Eigen::Vector2d(1.0 - 0.1, -3.0 - 0.2)).norm(), 1e-12);
  stddev(1, 1) = stddev(2, 1) = 1.0;
  // h(-1) = 0.0833 and h(-1.5) = 0.0293 of Normal(0, 1): only the second row is within half of the best.
  const search::FrontGain open(scales, measured, expected, stddev, {std::nullopt, std::nullopt});
  EXPECT_LE((open.reference() - Eigen::Vector2d(0.4 - 0.16, -3.0 - 0.2)).norm(), 1e-12);
}

TEST(FrontGain, KnowsWhatTheLastTrialsAdded) {
  // The rectangle of the middle point of the test above, by the last two of three trials, of which one adds nothing.
  const session::Session session = two_objectives();
  const search::History history = {closed(0, "p", both(1.0, 1.0))};
  std::vector<search::ObjectiveScale> scales;
  for (const session::Objective& one : session::all_objectives(session)) scales.emplace_back(one, history);
  const Eigen::MatrixXd measured{{0.0, 0.0}, {1.0, -1.0}, {0.5, -0.5}, {0.4, -0.6}};
  const search::FrontGain gain(scales, measured, measured, certain(measured), {std::nullopt, std::nullopt});
  const double added = (std::exp(0.5) - 1.0) * (std::exp(1.0) - std::exp(0.5));
  EXPECT_LE(std::abs(gain.lately_added(measured, 2) - 0.5 * added / gain.hypervolume()), 1e-12);
  EXPECT_LE(std::abs(gain.lately_added(measured, 8) - 0.125), 1e-12) << "all were added by the last eight";
}

TEST(FrontGain, OfWhatIsBeyondALimitIsNothing) {
  const session::Session session = two_objectives();
  const search::History history = {closed(0, "p", both(1.0, 1.0))};
  std::vector<search::ObjectiveScale> scales;
  for (const session::Objective& one : session::all_objectives(session)) scales.emplace_back(one, history);
  const Eigen::MatrixXd measured{{0.0, 0.0}};
  const Eigen::MatrixXd expected{{0.0, 0.0}, {3.0, -3.0}};
  const search::FrontGain gain(scales, measured, expected, certain(expected), {std::nullopt, std::exp(2.0)});
  EXPECT_LE(gain.share(Eigen::Vector2d(3.0, -2.5), Eigen::Vector2d::Constant(0.01)), 1e-12);
  EXPECT_GE(gain.share(Eigen::Vector2d(3.0, -1.5), Eigen::Vector2d::Constant(0.01)), 0.1);
}

// Every peak is 1.3 times the planned one, which three trials of the least needy half show.
TEST(OtherObjective, OfMemoryCorrectsThePlanByTheTrials) {
  session::Session told = uncertain_session();
  const session::Objective memory{"peak_memory_bytes", false, "peak_memory_bytes"};
  told.others = {memory};
  const Problem problem(std::move(told), Problem::WithPhysics());
  std::vector<std::size_t> order(problem.candidates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto planned = [&](std::size_t i) {
    return static_cast<double>(problem.candidates.memory_of(i)->predicted.count);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return planned(a) < planned(b); });
  search::History history;
  for (const std::size_t i : {order[0], order[order.size() / 4], order[order.size() / 2]}) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal.configuration = problem.candidates[i];
    trial::Measured result;
    result.metrics = {{"samples_per_s", 1.0}, {"throughput", 1.0}, {"peak_memory_bytes", 1.3 * planned(i)}};
    trial.outcome = result;
    history.push_back(trial);
  }
  search::OtherObjective model(memory, problem.candidates, history);
  Rng rng(kSeed, 0);
  model.fit(rng);
  for (const std::size_t i : {order[order.size() * 3 / 4], order.back()}) {
    const double predicted = model.scale().from_latent(model.predict({problem.candidates[i]}).mean(0));
    EXPECT_LE(std::abs(predicted / (1.3 * planned(i)) - 1.0), 0.15) << problem.candidates[i].text();
  }
}

TEST(SearchOfAFront, FindsNearlyAllOfItInATenthOfTheSpace) {
  const Problem problem(two_objectives());
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeed, 45, trade_off);
  const search::History drawn = problem.drive(search::StrategyKind::kRandom, kSeed, 45, trade_off);
  EXPECT_GE(share_of_front(problem, found, trade_off), 0.99) << "seed " << kSeed;
  EXPECT_GE(share_of_front(problem, found, trade_off), share_of_front(problem, drawn, trade_off));
}

TEST(SearchOfAFront, LearnsWhatFails) {
  const Problem problem(two_objectives());
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeed, 45, trade_off_with_failures);
  EXPECT_GE(share_of_front(problem, found, trade_off_with_failures), 0.98) << "seed " << kSeed;
  EXPECT_LE(failures_in(found), 8) << "an eighth of the space fails, but it is where speed is highest";
}

TEST(SearchOfAFront, AsksTheSameAgainInANewProcess) {
  const Problem problem(two_objectives());
  const search::History whole = problem.drive(search::StrategyKind::kBayes, kSeed, 14, trade_off_with_failures);
  const search::History first(whole.begin(), whole.begin() + 7);
  const search::History again = problem.drive(search::StrategyKind::kBayes, kSeed, 14, trade_off_with_failures, first);
  EXPECT_EQ(texts(again), texts(whole));
}

TEST(SearchOfAFront, ExpectsLittleMoreOnceTheFrontIsKnown) {
  const Problem problem(two_objectives());
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeed, 60, trade_off);
  const auto expects_little = [](const journal::Trial& trial) {
    return trial.proposal.outlook && trial.proposal.outlook->expected_gain < 0.003;  // budget.least_gain
  };
  const auto stop = std::find_if(found.begin() + 6, found.end(), expects_little);
  ASSERT_NE(stop, found.end()) << "no end in 60 trials, seed " << kSeed;
  EXPECT_GE(share_of_front(problem, {found.begin(), stop}, trade_off), 0.97);
}

// ZDT2 (Zitzler, Deb & Thiele 2000) with six numbers. Where a front begins at one end that is found, the model took the
// second objective beyond it for flat and expected 0.2 % of the next trial, and each added several per cent.
TEST(SearchOfAFront, DoesNotEndWhileTrialsAddToTheFront) {
  constexpr std::uint64_t kSeedOfZdt2 = 1;
  std::string space;
  for (int i = 0; i < 6; ++i) {
    space +=
        (i == 0 ? "" : ", ") + std::string("\"x") + std::to_string(i) + R"(": {"type": "real", "min": 0, "max": 1})";
  }
  session::Session session = two_objectives("{" + space + "}");
  session.objective.maximize = false;
  session.objective.by_ratio = session.others.front().by_ratio =
      false;  // as read_objectives has it for one's own metrics
  const Problem problem(std::move(session));
  const auto zdt2 = [](const space::Configuration& c) {
    double sum = 0.0;
    for (int i = 1; i < 6; ++i) sum += space::as_number(*c.find("x" + std::to_string(i)));
    const double x = space::as_number(*c.find("x0"));
    const double g = 1.0 + 9.0 * sum / 5.0;
    return both(x, g * (1.0 - (x / g) * (x / g)));
  };
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeedOfZdt2, 40, zdt2);
  const auto stop = std::find_if(found.begin() + 6, found.end(), [](const journal::Trial& trial) {
    return trial.proposal.outlook && trial.proposal.outlook->expected_gain < 0.003;  // budget.least_gain
  });
  Eigen::MatrixXd points(0, 2);
  for (auto trial = found.begin(); trial != stop; ++trial) {
    const trial::Outcome outcome = *trial->outcome;
    points.conservativeResize(points.rows() + 1, 2);
    points.row(points.rows() - 1) = points_of({outcome}).row(0).cwiseProduct(Eigen::RowVector2d(-1.0, 1.0));
  }
  const double whole = 1.1 * 1.1 - 2.0 / 3.0;  // above (1.1, 1.1): the area below f2 = 1 - f1^2 is 2 / 3
  EXPECT_GE(surrogate::hypervolume(points, Eigen::Vector2d(-1.1, -1.1)) / whole, 0.8)
      << "ended after " << stop - found.begin() << " trials, seed " << kSeedOfZdt2;
}

TEST(SearchOfAFront, DoesNotProposeTheSameTwiceWhileTrialsArePending) {
  const Problem problem(two_objectives());
  search::History history = problem.drive(search::StrategyKind::kBayes, kSeed, 10, trade_off);
  const auto strategy = problem.strategy(search::StrategyKind::kBayes, kSeed);
  for (int i = 0; i < 5; ++i) {
    journal::Trial trial;
    trial.number = static_cast<int>(history.size());
    trial.proposal = *strategy->ask(history);
    history.push_back(trial);
  }
  std::vector<std::string> asked = texts(history);
  std::sort(asked.begin(), asked.end());
  EXPECT_EQ(std::adjacent_find(asked.begin(), asked.end()), asked.end());
}

TEST(SearchOfAFront, OfThreeObjectivesWorksAlike) {
  session::Session session = two_objectives();
  session.others.push_back({"energy", false, "energy"});
  const Problem problem(std::move(session));
  const auto answer = [](const space::Configuration& c) {
    trial::Outcome outcome = trade_off(c);
    auto& metrics = std::get<trial::Measured>(outcome).metrics;
    metrics["energy"] = metrics["memory"] + metrics["speed"];
    return outcome;
  };
  const search::History found = problem.drive(search::StrategyKind::kBayes, kSeed, 20, answer);
  EXPECT_EQ(found.size(), 20);
  EXPECT_GE(search::front_of(problem.session, found).size(), 5);
}

}  // namespace
}  // namespace krigtune
