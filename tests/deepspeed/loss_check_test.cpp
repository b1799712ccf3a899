#include "deepspeed/result/loss_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/csv.h"
#include "core/files.h"
#include "core/json.h"

namespace krigtune::loss_check_test {

using Verdict = deepspeed::LossCheck::Verdict;

// Losses that fall from 6.5, each `factor(step)` times its correct value.
template <class Factor>
deepspeed::DsLosses falling(const Factor& factor, int steps = 15, double resolution = 1e-6) {
  deepspeed::DsLosses losses;
  for (int step = 1; step <= steps; ++step) losses.values.push_back((6.5 - 0.1 * step) * factor(step));
  losses.resolution = resolution;
  return losses;
}

const deepspeed::DsLosses& reference() {
  static const deepspeed::DsLosses kLosses = falling([](int /*step*/) { return 1.0; });
  return kLosses;
}

TEST(LossCheck, RoundingThatGrowsWithTheStepsAgrees) {
  const deepspeed::LossCheck check =
      deepspeed::compare_losses(reference(), falling([](int step) { return 1.0 + 9e-4 * step; }), {});
  EXPECT_EQ(check.verdict, Verdict::kAgree);
  EXPECT_EQ(check.compared, 15);
  EXPECT_LE(std::abs(check.largest - 15 * 9e-4 / (1.0 + 15 * 9e-4)), 1e-12);
  EXPECT_EQ(deepspeed::loss_check_sentence(check),
            "the losses of trial 0 agree with those of trial 0 within 1.3 % over the first 15 steps");
}

TEST(LossCheck, ADifferenceIsToldFromItsFirstStepOn) {
  const deepspeed::LossCheck check = deepspeed::compare_losses(
      reference(), falling([](int step) { return step < 4 ? 1.0 : 1.0 + 0.01 * (step - 3); }), {});
  EXPECT_EQ(check.verdict, Verdict::kDiffer);
  EXPECT_TRUE(deepspeed::is_warning(check));
  EXPECT_EQ(check.first, 4);
  EXPECT_LE(std::abs(check.at_first - 0.01 / 1.01), 1e-12);
  EXPECT_LE(std::abs(check.largest - 0.12 / 1.12), 1e-12);
  const std::string sentence = deepspeed::loss_check_sentence(check);
  EXPECT_NE(sentence.find("differ from those of trial 0 from step 4 on: by 0.99 % there, where rounding explains "
                          "0.39 %, and by up to 11 % over the first 15 steps"),
            std::string::npos)
      << sentence;
}

// "6.43" can be anything from 6.425 to 6.435.
TEST(LossCheck, WhatTheDigitsHideIsNoDifference) {
  const deepspeed::DsLosses coarse{{6.4}, 0.1, 1}, other{{6.5}, 0.1, 1}, far{{6.7}, 0.1, 1};
  EXPECT_EQ(deepspeed::compare_losses(coarse, other, {}).verdict, Verdict::kAgree);
  EXPECT_EQ(deepspeed::compare_losses(coarse, far, {}).verdict, Verdict::kDiffer);
}

// deepspeedai/DeepSpeed#7965: stage 2 with overlap_comm compared with stage 1, and stage 3 with stage 1.
TEST(LossCheck, NoNumberIsAlwaysADifference) {
  const deepspeed::DsLosses stage1{{11.201002, 11.165665, 11.213738, 11.121310}, 1e-6, 1};
  const deepspeed::DsLosses stage2{{11.201002, 11.165665, std::nan("")}, 1e-6, 1};
  const deepspeed::DsLosses stage3{{11.201002, 11.165665, 11.204460, 11.121443}, 1e-6, 1};
  EXPECT_EQ(deepspeed::compare_losses(stage1, stage3, {}).verdict, Verdict::kAgree);
  for (const bool same_cut : {true, false}) {
    const deepspeed::LossCheck check = deepspeed::compare_losses(stage1, stage2, {true, same_cut});
    EXPECT_EQ(check.verdict, Verdict::kDiffer);
    EXPECT_EQ(check.first, 3);
    EXPECT_NE(deepspeed::loss_check_sentence(check).find("from step 3 on: one of the two is not a number"),
              std::string::npos);
    EXPECT_TRUE(deepspeed::loss_check_json(check).at("largest_difference").is_null());
  }
}

// Stage 0 compared with stage 1 with accumulation, deepspeedai/DeepSpeed#1488: every second step from the second on.
TEST(LossCheck, AReportedFaultOfAccumulationIsFound) {
  deepspeed::DsLosses stage0{{3.7346994876861572, 2.4462392330169678, 2.4768574237823486, 2.8659024238586426}, 1e-6, 2};
  deepspeed::DsLosses stage1{{3.709287643432617, 2.4332594871520996, 2.469241142272949, 2.7676191329956055}, 1e-6, 2};
  const deepspeed::LossCheck check = deepspeed::compare_losses(stage0, stage1, {});
  EXPECT_EQ(check.verdict, Verdict::kDiffer);
  EXPECT_NE(deepspeed::loss_check_sentence(check).find("from loss 1 on"), std::string::npos);
}

TEST(LossCheck, WhatCannotBeComparedSaysWhy) {
  const auto why = [](const deepspeed::DsLosses& a, const deepspeed::DsLosses& b, const deepspeed::SameData& same) {
    const deepspeed::LossCheck check = deepspeed::compare_losses(a, b, same);
    EXPECT_EQ(check.verdict, Verdict::kUnknown);
    EXPECT_FALSE(deepspeed::is_warning(check));
    return deepspeed::loss_check_sentence(check);
  };
  const deepspeed::DsLosses far = falling([](int /*step*/) { return 1.2; });
  EXPECT_NE(why({}, reference(), {}).find("prints none"), std::string::npos);
  EXPECT_NE(why(reference(), {}, {}).find("--logging_steps 1"), std::string::npos);
  EXPECT_NE(why(reference(), far, {false, true}).find("their batches differ"), std::string::npos);
  EXPECT_NE(why(reference(), far, {true, false}).find("differ by 17 % at step 1"), std::string::npos);
  deepspeed::DsLosses rare = reference();
  rare.interval = 5;
  EXPECT_NE(why(reference(), rare, {}).find("different steps"), std::string::npos);
  EXPECT_EQ(deepspeed::compare_losses(reference(), reference(), {true, false}).verdict, Verdict::kAgree);
  EXPECT_TRUE(deepspeed::loss_check_json(std::nullopt).is_null());
}

// Real DeepSpeed on two CPU ranks (experiments/deepspeed_cpu/record_losses.py): neutral parameters agree, and stage 0
// in bf16, which has no fp32 weights, does not.
TEST(LossCheck, OfRecordedTrainingsTellsRoundingFromAnotherTraining) {
  const std::string file = KRIGTUNE_TEST_DIR "/deepspeed/deepspeed_outputs/losses.csv";
  const CsvTable table = parse_csv(read_text(file), file);
  std::map<std::string, std::map<std::string, deepspeed::DsLosses>> runs;  // by precision, then by the other parameters
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const auto& cells = table.rows[row];
    deepspeed::DsLosses& losses = runs[cells[0]][cells[1] + " " + cells[2] + " " + cells[4] + " " + cells[5]];
    losses.values.push_back(std::stod(cells[7]));
    losses.resolution = 1e-6;
  }
  ASSERT_EQ(runs.at("fp32").size(), 7U);
  ASSERT_EQ(runs.at("bf16").size(), 7U);
  for (const auto& [precision, same] : runs) {
    for (const auto& [one, a] : same) {
      ASSERT_EQ(a.values.size(), 16U) << one;
      for (const auto& [other, b] : same) {
        const bool alike = precision == "fp32" || (one.front() == '0') == (other.front() == '0');
        EXPECT_EQ(deepspeed::compare_losses(a, b, {}).verdict, alike ? Verdict::kAgree : Verdict::kDiffer)
            << precision << ": " << one << " | " << other;
      }
    }
  }
}

}  // namespace krigtune::loss_check_test
