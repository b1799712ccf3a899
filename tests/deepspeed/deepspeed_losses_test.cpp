#include <gtest/gtest.h>

#include <cmath>

#include "core/files.h"
#include "core/json.h"
#include "deepspeed/job/ds_losses.h"
#include "trial/temporary_directory.h"

namespace krigtune::deepspeed_losses_test {

const std::filesystem::path kRecorded = KRIGTUNE_TEST_DIR "/deepspeed/deepspeed_outputs";

struct Line {
  const char* text;
  double value;
  double resolution;
  std::int64_t step;  ///< -1: none
};

void expect_loss(const Line& line) {
  const auto loss = deepspeed::loss_in_line(line.text);
  ASSERT_TRUE(loss) << line.text;
  EXPECT_LE(std::abs(loss->value - line.value), 1e-12) << line.text;
  EXPECT_LE(std::abs(loss->resolution / line.resolution - 1.0), 1e-12) << line.text << " " << loss->resolution;
  EXPECT_EQ(loss->step.value_or(-1), line.step) << line.text;
}

TEST(LossInLine, IsReadInEveryFormThatIsKnown) {
  for (const Line& line : std::vector<Line>{
           {"loss 6.43", 6.43, 0.01, -1},
           {"step 3 loss 6.436566", 6.436566, 1e-6, 3},
           {"Loss: 6.4", 6.4, 0.1, -1},
           {"epoch 0 | step=12 | train_loss=6.43 | lr=0.1", 6.43, 0.01, 12},
           {"iter 0: loss 10.9884, time 5123.45ms, mfu -100.00%", 10.9884, 1e-4, 0},
           {" iteration        7/     100 | consumed samples:          224 | elapsed time per iteration (ms): 512.3 | "
            "learning rate: 1.500E-04 | global batch size:    32 | lm loss: 6.430000E+00 | loss scale: 1.0 | grad "
            "norm: 2.1 |",
            6.43, 1e-6, 7},
           {"{'loss': 6.43, 'grad_norm': 1.25, 'learning_rate': 5e-05, 'epoch': 0.01}", 6.43, 0.01, -1},
           {"{'loss': '6.43', 'grad_norm': '1.25', 'epoch': '0.01'}", 6.43, 0.01, -1},
           {"loss tensor(6.4366, device='cuda:0', grad_fn=<NllLossBackward0>)", 6.4366, 1e-4, -1},
           {"[rank1]: step 3, loss = 6.43", 6.43, 0.01, 3},
           {"[1,3]<stdout>:loss -> -1.5", -1.5, 0.1, -1},
           {"worker-0: [2026-11-21 22:55:13,050] [INFO] global_step=4 loss is 6.43", 6.43, 0.01, 4},
           {" 30%|###       | 3/10 [00:01<00:03,  1.90it/s, loss=6.43]", 6.43, 0.01, 3},
           {"lm loss: 1.2E+03", 1200.0, 100.0, -1}}) {
    expect_loss(line);
  }
  EXPECT_TRUE(std::isnan(deepspeed::loss_in_line("step 4 loss nan")->value));
  EXPECT_TRUE(std::isinf(deepspeed::loss_in_line("{'loss': inf}")->value));
}

TEST(LossInLine, IsNoOtherNumber) {
  for (const char* line :
       {"", "loss", "loss:", "step 0: train loss 10.98, val loss 10.97", "{'eval_loss': 6.1, 'epoch': 1.0}",
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
        "validation loss at iteration 100 | lm loss value: 6.4", "test loss: 3.0", "lossless 3", "gloss 3.0",
        "loss_scale=1.0", "aux_loss: 0.01", "load_balancing_loss: 0.3", "loss 3/10", "the loss of 3 ranks",
        "{'train_runtime': 12.3, 'train_samples_per_second': 7.0, 'train_loss': 6.1, 'epoch': 1.0}"}) {
    EXPECT_FALSE(deepspeed::loss_in_line(line)) << line;
  }
  EXPECT_EQ(deepspeed::loss_in_line("aux_loss: 0.01, lm loss: 6.4")->value, 6.4);
}

// The output of train.py under real DeepSpeed: 11 steps, 10 of which were timed.
TEST(Losses, OfTheRecordedJobAreItsFirstSteps) {
  const deepspeed::DsLosses losses = deepspeed::losses_in(read_text(kRecorded / "success.txt"), 10, 10);
  ASSERT_EQ(losses.values.size(), 10U);
  EXPECT_EQ(losses.values[0], 6.436566);
  EXPECT_EQ(losses.values[9], 5.283401);
  EXPECT_LE(std::abs(losses.resolution - 1e-6), 1e-18);
  EXPECT_EQ(losses.interval, 1);
  EXPECT_TRUE(deepspeed::losses_in("", 10, 10).values.empty());
  EXPECT_TRUE(deepspeed::losses_in("nothing of the kind\n", 10, 10).values.empty());
}

// Two ranks and four micro-steps: eight lines per step, of which the last one of the seventeenth step is lost.
TEST(Losses, ManyLinesOfAStepCountWithTheirMean) {
  std::string text;
  for (int line = 0; line < 17 * 8 - 1; ++line)
    text += "loss " + std::to_string(line / 8 + 1) + "." + std::to_string(line % 8) + "\n";
  const deepspeed::DsLosses losses = deepspeed::losses_in(text, 16, 15);
  ASSERT_EQ(losses.values.size(), 15U);
  for (int step = 0; step < 15; ++step) {
    EXPECT_LE(std::abs(losses.values[static_cast<std::size_t>(step)] - (step + 1.35)), 1e-12) << step;
  }
}

TEST(Losses, OfRanksThatNameTheStepAreTogetherWhereverTheyStand) {
  const deepspeed::DsLosses losses = deepspeed::losses_in(
      "[rank0]: step 1 loss 2.0\n[rank0]: step 2 loss 5.0\n[rank1]: step 1 loss 4.0\n"
      "[rank1]: step 2 loss 7.0\n[rank0]: step 3 loss 1.0\n[rank1]: step 3 loss 1.0\n",
      2, 2);
  EXPECT_EQ(losses.values, (std::vector<double>{3.0, 6.0}));
}

// tqdm draws a state twice: before the new loss is set, and after it.
TEST(Losses, OfAProgressBarAreTheLastOfEachOfItsStates) {
  const deepspeed::DsLosses losses = deepspeed::losses_in(
      "\r  0%|   | 0/20 [00:00<?, ?it/s]\r  0%|   | 0/20 [00:01<?, ?it/s, loss=7.0]"
      "\r  5%|   | 1/20 [00:01<00:19, 1.0it/s, loss=7.0]"
      "\r  5%|   | 1/20 [00:02<00:19, 1.0it/s, loss=6.5]"
      "\r 10%|   | 2/20 [00:02<00:18, 1.0it/s, loss=6.5]"
      "\r 10%|   | 2/20 [00:03<00:18, 1.0it/s, loss=6.25]",
      2, 3);
  EXPECT_EQ(losses.values, (std::vector<double>{7.0, 6.5, 6.25}));
}

TEST(Losses, MayBeOfEveryFifthStep) {
  const deepspeed::DsLosses losses = deepspeed::losses_in("{'loss': 6.5}\n{'loss': 6.25}\n{'loss': 6.0}\n", 15, 15);
  EXPECT_EQ(losses.values, (std::vector<double>{6.5, 6.25, 6.0}));
  EXPECT_EQ(losses.interval, 5);
}

TEST(Losses, AreThoseOfTheEngineWhereItWritesThem) {
  const TemporaryDirectory dir;
  const auto file = dir.write("losses.csv", "step,train_loss\n32,6.5\n64,6.25\n96,6.0\n");
  EXPECT_EQ(deepspeed::losses_in_monitor(file, 2).values, (std::vector<double>{6.5, 6.25}));
  EXPECT_TRUE(deepspeed::losses_in_monitor(dir / "none.csv", 2).values.empty());
}

TEST(Losses, ComeBackFromAResult) {
  const TemporaryDirectory dir;
  Json result = {{"status", "ok"}};
  deepspeed::write_losses({{6.5, std::nan(""), 6.25}, 0.01, 10}, result);
  const deepspeed::DsLosses losses = deepspeed::read_losses(dir.write("result.json", result.dump()));
  ASSERT_EQ(losses.values.size(), 3U);
  EXPECT_EQ(losses.values[0], 6.5);
  EXPECT_TRUE(std::isnan(losses.values[1]));
  EXPECT_EQ(losses.resolution, 0.01);
  EXPECT_EQ(losses.interval, 10);
  for (const char* text : {"", "[]", "{}", R"({"losses": 3})", R"({"losses": []})"}) {
    EXPECT_TRUE(deepspeed::read_losses(dir.write("other.json", text)).values.empty()) << text;
  }
  EXPECT_TRUE(deepspeed::read_losses(dir / "none.json").values.empty());
}

}  // namespace krigtune::deepspeed_losses_test
