#include "cost/memory/memory_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace krigtune::memory_shape_test {

using Shows = cost::MemoryEvidence::Shows;

constexpr double kGb = 1e9;
constexpr double kSpread = 0.15;              // of measured over predicted peaks of a framework
constexpr double kOwn = 2.0 / 3.0 * kSpread;  // of one peak, in addition to the factors

plan::MemoryParts parts(double states, double activations, double other_split = 0.0, double logits = 0.0) {
  plan::MemoryParts bytes{};
  bytes[static_cast<std::size_t>(plan::MemoryPart::kStates)] = states * kGb;
  bytes[static_cast<std::size_t>(plan::MemoryPart::kActivations)] = activations * kGb;
  bytes[static_cast<std::size_t>(plan::MemoryPart::kOtherSplit)] = other_split * kGb;
  bytes[static_cast<std::size_t>(plan::MemoryPart::kLogits)] = logits * kGb;
  return bytes;
}

cost::MemoryEvidence peak(const plan::MemoryParts& planned, double gb) { return {{planned}, Shows::kPeak, gb * kGb}; }

cost::MemoryShape learned(const std::vector<cost::MemoryEvidence>& evidence) {
  cost::MemoryShape shape(kSpread);
  shape.learn(evidence);
  return shape;
}

double predicted_gb(const cost::MemoryShape& shape, const plan::MemoryParts& planned) {
  return std::exp(shape.allocated({planned}).mean) / kGb;
}

TEST(MemoryShape, IsAsPlannedBeforeAnythingIsMeasured) {
  const cost::MemoryShape shape(kSpread);
  EXPECT_NEAR(predicted_gb(shape, parts(20, 30, 0, 10)), 60.0, 1e-9);
  // States alone: their own factor, the common one, and the spread of one peak. They are independent, so squares add
  // up.
  EXPECT_NEAR(shape.allocated({parts(20, 0)}).stddev, std::sqrt(0.03 * 0.03 + 0.08 * 0.08 + kOwn * kOwn), 1e-12);
  EXPECT_NEAR(shape.allocated({parts(0, 5)}).stddev, std::sqrt(0.3 * 0.3 + 0.08 * 0.08 + kOwn * kOwn), 1e-12);
  EXPECT_DOUBLE_EQ(shape.factor(plan::MemoryPart::kActivations), 1.0);
}

TEST(MemoryShape, TheLargestMomentIsThePeakAndOverheadIsNotCountedByAnAllocator) {
  const cost::MemoryShape shape(kSpread);
  plan::MemoryParts with_overhead = parts(10, 20);
  with_overhead[static_cast<std::size_t>(plan::MemoryPart::kOverhead)] = 2 * kGb;
  const std::vector<plan::MemoryParts> moments = {parts(25, 0), with_overhead};
  EXPECT_NEAR(std::exp(shape.allocated(moments).mean) / kGb, 30.0, 1e-9);
  EXPECT_NEAR(std::exp(shape.needed(moments).mean) / kGb, 32.0, 1e-9);
}

// Activations alone leave two unknowns, their factor and the common one. The reference searches a grid for the most
// probable pair, under the priors and the error that memory_shape.cpp states.
TEST(MemoryShape, FindsTheMostProbableFactors) {
  const auto student = [](double r, double freedom) { return 0.5 * (freedom + 1.0) * std::log1p(r * r / freedom); };
  for (const double ratio : {0.5, 0.9, 1.3, 4.0}) {
    double least = 1e300;
    double best = 0.0;
    for (double activations = -2.0; activations <= 2.0; activations += 0.002) {
      for (double all = -0.5; all <= 0.5; all += 0.002) {
        const double loss = student(activations / 0.3, 3.0) + student(all / 0.08, 3.0) +
                            student((std::log(ratio) - activations - all) / kOwn, 4.0);
        if (loss < least) best = activations + all;
        least = std::min(least, loss);
      }
    }
    const cost::MemoryShape shape = learned({peak(parts(0, 10), 10 * ratio)});
    EXPECT_NEAR(std::log(predicted_gb(shape, parts(0, 10)) / 10), best, 0.005) << ratio;
  }
}

// Another framework, with two and a half times the activations and twice the logits.
TEST(MemoryShape, ThreePeaksTeachAFrameworkThatKeepsMore) {
  const auto real_gb = [](double states, double activations, double logits) {
    return states + 2.5 * activations + 2.0 * logits;
  };
  const cost::MemoryShape shape =
      learned({peak(parts(10, 2, 0, 1), real_gb(10, 2, 1)), peak(parts(10, 16, 0, 1), real_gb(10, 16, 1)),
               peak(parts(3, 4, 0, 8), real_gb(3, 4, 8))});
  EXPECT_NEAR(predicted_gb(shape, parts(5, 32, 0, 2)) / real_gb(5, 32, 2), 1.0, 0.1);
  EXPECT_NEAR(predicted_gb(shape, parts(40, 1, 0, 1)) / real_gb(40, 1, 1), 1.0, 0.05);
  EXPECT_NEAR(shape.factor(plan::MemoryPart::kActivations), 2.5, 0.3);
  EXPECT_LT(shape.allocated({parts(5, 32, 0, 2)}).stddev,
            cost::MemoryShape(kSpread).allocated({parts(5, 32, 0, 2)}).stddev);
}

plan::MemoryParts recomputed(double states, plan::MemoryPart how, double activations, double other_split = 0.0) {
  plan::MemoryParts bytes = parts(states, 0.0, other_split);
  bytes[static_cast<std::size_t>(how)] = activations * kGb;
  return bytes;
}

// A framework that keeps a third more of whole layers than planned, and a quarter less of those recomputed in part.
TEST(MemoryShape, WhatIsRecomputedHasAFactorOfItsOwn) {
  constexpr auto kSelective = plan::MemoryPart::kSelectiveActivations;
  constexpr auto kFull = plan::MemoryPart::kFullActivations;
  const auto whole = [](double gb) { return peak(parts(10, gb), 10 + 1.33 * gb); };
  const auto selective = [](double gb) { return peak(recomputed(10, kSelective, gb), 10 + 0.75 * gb); };
  const cost::MemoryShape shape = learned({whole(20), selective(30), whole(30), selective(20), selective(50)});
  EXPECT_NEAR(predicted_gb(shape, parts(10, 40)) / (10 + 1.33 * 40), 1.0, 0.08);
  EXPECT_NEAR(predicted_gb(shape, recomputed(10, kSelective, 60)) / (10 + 0.75 * 60), 1.0, 0.05);
  const double unseen = predicted_gb(shape, recomputed(0, kFull, 10)) / 10;
  EXPECT_GT(unseen, 0.75) << "not seen yet: between the two";
  EXPECT_LT(unseen, 1.33);
  // Without anything measured, its spread is that of both factors.
  EXPECT_NEAR(cost::MemoryShape(kSpread).allocated({recomputed(0, kFull, 5)}).stddev,
              std::sqrt(0.3 * 0.3 + 0.2 * 0.2 + 0.08 * 0.08 + kOwn * kOwn), 1e-12);
}

// Planned without sequence parallelism and run with it, and the other way round: a factor of eight is information.
TEST(MemoryShape, TwoPeaksSayThatTokensAreSplitOtherwise) {
  const cost::MemoryShape split = learned({peak(parts(2, 80, -70), 12.0), peak(parts(2, 40, -30), 12.5)});
  EXPECT_GT(split.factor(plan::MemoryPart::kOtherSplit), 0.9);
  EXPECT_NEAR(predicted_gb(split, parts(4, 160, -140)) / 24.0, 1.0, 0.15);
  const cost::MemoryShape whole = learned({peak(parts(2, 10, 70), 82.0), peak(parts(2, 10, 30), 41.5)});
  EXPECT_GT(whole.factor(plan::MemoryPart::kOtherSplit), 0.5);  // more activations would be another explanation
  EXPECT_NEAR(predicted_gb(whole, parts(4, 20, 140)) / 164.0, 1.0, 0.15);
  constexpr auto kSelective = plan::MemoryPart::kSelectiveActivations;
  const cost::MemoryShape selective =
      learned({peak(recomputed(2, kSelective, 80, -70), 12.0), peak(recomputed(2, kSelective, 40, -30), 12.5)});
  EXPECT_NEAR(predicted_gb(selective, recomputed(4, kSelective, 160, -140)) / 24.0, 1.0, 0.15);
}

// Gradients of 60 GB planned whole on 8 ranks that share the optimizer's states, and kept in shards.
TEST(MemoryShape, TwoPeaksSayThatGradientsAreSharded) {
  const auto with_gradients = [](double states, double gradients, double activations) {
    plan::MemoryParts bytes = parts(states, activations);
    bytes[static_cast<std::size_t>(plan::MemoryPart::kGradients)] = gradients * kGb;
    bytes[static_cast<std::size_t>(plan::MemoryPart::kShardedGradients)] = -7.0 / 8.0 * gradients * kGb;
    return bytes;
  };
  const auto sharded_gb = [](double states, double gradients, double activations) {
    return states + gradients / 8.0 + activations;
  };
  const cost::MemoryShape shape = learned({peak(with_gradients(30, 60, 5), sharded_gb(30, 60, 5)),
                                           peak(with_gradients(15, 30, 20), sharded_gb(15, 30, 20))});
  EXPECT_GT(shape.factor(plan::MemoryPart::kShardedGradients), 0.7);
  EXPECT_NEAR(predicted_gb(shape, with_gradients(8, 16, 10)) / sharded_gb(8, 16, 10), 1.0, 0.1);
  const cost::MemoryShape whole = learned({peak(with_gradients(30, 60, 5), 95), peak(with_gradients(15, 30, 20), 65)});
  EXPECT_LT(whole.factor(plan::MemoryPart::kShardedGradients), 0.1);
}

TEST(MemoryShape, BoundsMoveWhatContradictsThem) {
  const std::vector<plan::MemoryParts> moments = {parts(20, 40)};
  const double planned = cost::MemoryShape(kSpread).needed(moments).mean;
  const auto after = [&](Shows shows, double gb) { return learned({{moments, shows, gb * kGb}}).needed(moments).mean; };
  EXPECT_GT(after(Shows::kRanOut, 80.0), planned + 0.1) << "planned 60, not enough were 80";
  EXPECT_LT(after(Shows::kRan, 45.0), planned - 0.1) << "planned 60, enough were 45";
  EXPECT_NEAR(after(Shows::kRanOut, 30.0), planned, 0.01) << "known before";
  EXPECT_NEAR(after(Shows::kRan, 120.0), planned, 0.01) << "known before";
}

TEST(MemoryShape, APeakInAnotherUnitDoesNotBendTheOthers) {
  std::vector<cost::MemoryEvidence> evidence;
  for (const double activations : {4.0, 8.0, 16.0, 32.0}) {
    evidence.push_back(peak(parts(10, activations), 10 + 1.5 * activations));
  }
  evidence.push_back(peak(parts(10, 12), (10 + 1.5 * 12) / 1024));
  EXPECT_NEAR(predicted_gb(learned(evidence), parts(10, 24)) / 46.0, 1.0, 0.1);
}

TEST(MemoryShape, EvidenceWithoutAPlanSaysNothing) {
  const cost::MemoryShape shape = learned({{{}, Shows::kPeak, 5 * kGb}});
  EXPECT_NEAR(predicted_gb(shape, parts(20, 30)), 50.0, 1e-6);
}

}  // namespace krigtune::memory_shape_test
