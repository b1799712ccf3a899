// The climb from the best members of a pool.
#include "search/candidates/climb.h"

#include <gtest/gtest.h>

#include <cmath>

#include "search/fixtures.h"

namespace krigtune::climb_test {

constexpr std::uint64_t kSeed = 54;

std::string reals(int count) {
  std::string space;
  for (int i = 0; i < count; ++i) {
    space += fmt::format("{}\"x{}\": {{\"type\": \"real\", \"min\": 0, \"max\": 1}}", i == 0 ? "" : ", ", i);
  }
  return "{" + space + "}";
}

/// exp(-|x - t|) with its only maximum, 1, at t: in the middle for x0, at the lower ends for the others.
Eigen::VectorXd peak(const search::CandidateList& list) {
  Eigen::VectorXd scores(list.points.size());
  for (Eigen::Index i = 0; i < scores.size(); ++i) {
    Eigen::RowVectorXd from = list.points.ordered.row(i);
    from(0) -= 0.5;
    scores(i) = std::exp(-from.norm());
  }
  return scores;
}

TEST(Climb, ComesMuchNearerToThePeakThanThePool) {
  const Problem problem(plain_session(reals(6)));
  const auto pool = problem.candidates.to_score({}, kSeed);
  const Eigen::VectorXd scores = peak(*pool);
  Rng rng(kSeed, 0);
  const search::CandidateList tops = search::climb(problem.candidates, *pool, scores, peak, rng);
  ASSERT_GE(tops.size(), 1U);
  EXPECT_LE(-std::log(peak(tops).maxCoeff()), 0.2 * -std::log(scores.maxCoeff()))
      << "distances from it, seed " << kSeed;
}

TEST(Climb, IsAPureFunctionOfItsArguments) {
  const Problem problem(plain_session(reals(3)));
  const auto pool = problem.candidates.to_score({}, kSeed);
  Rng one(kSeed, 0), two(kSeed, 0);
  EXPECT_EQ(search::climb(problem.candidates, *pool, peak(*pool), peak, one).configurations,
            search::climb(problem.candidates, *pool, peak(*pool), peak, two).configurations);
}

TEST(Climb, WhereNothingIsWorthAnythingIsEmpty) {
  const Problem problem(plain_session(reals(2)));
  const auto pool = problem.candidates.to_score({}, kSeed);
  const auto nothing = [](const search::CandidateList& list) -> Eigen::VectorXd {
    return Eigen::VectorXd::Zero(list.points.size());
  };
  Rng rng(kSeed, 0);
  EXPECT_EQ(search::climb(problem.candidates, *pool, nothing(*pool), nothing, rng).size(), 0U);
}

TEST(Climb, WhatItFoundIsAppendedToTheList) {
  const Problem problem(plain_session(reals(2)));
  search::CandidateList list = *problem.candidates.to_score({}, kSeed);
  const std::size_t before = list.size();
  Rng rng(kSeed, 0);
  const search::CandidateList tops = search::climb(problem.candidates, list, peak(list), peak, rng);
  search::append(list, tops);
  EXPECT_EQ(list.size(), before + tops.size());
  EXPECT_EQ(list.points.size(), static_cast<Eigen::Index>(list.size()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    ASSERT_EQ(list.find(problem.candidates.key(list.configurations[i])), i);
  }
}

}  // namespace krigtune::climb_test
