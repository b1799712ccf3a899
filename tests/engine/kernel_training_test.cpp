// Kernels of training at scale against their definitions: rotary positions, dropout, the vocabulary-parallel loss of
// two simulated tensor ranks, norm, clipping and loss scaling, momentum.
#include <algorithm>
#include <array>
#include <limits>

#include "engine/host/kernels/kernel_unit.h"
#include "kernel_harness.h"

namespace krigtune::kernel_training_test {

using Vector = std::vector<double>;
using Mask = std::vector<std::uint8_t>;

TEST(RotaryKernel, TurnsEveryPairOfQueriesAndKeysByItsAngleAndLeavesValues) {
  const plan::Shape s{.batch = 2, .seq = 3, .heads = 2, .kv_heads = 1, .inner = 8};
  const std::size_t width = 16, d = 4;
  const Vector before = random_vector(s.batch * s.seq * 16, 1);
  Vector after = before;
  run_kernel<double>(schedule::OpKind::kRotaryForward, s, {updates(after)});
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t head = 0; head < 4; ++head) {  // q, q, k, v
      for (std::size_t i = 0; i < d / 2; ++i) {
        const std::size_t low = row * width + head * d + i, high = low + d / 2;
        // theta^(-2 i / d) with theta = 10000 and d = 4: 1, 1 / 100.
        const double angle = head == 3 ? 0.0 : static_cast<double>(row % 3) * (i == 0 ? 1.0 : 0.01);
        EXPECT_LE(std::abs(after[low] - (before[low] * std::cos(angle) - before[high] * std::sin(angle))), 1e-15);
        EXPECT_LE(std::abs(after[high] - (before[high] * std::cos(angle) + before[low] * std::sin(angle))), 1e-15);
      }
    }
  }
}

TEST(SwigluKernel, EqualsItsDefinition) {
  Vector gate_up = {1.0, -2.0, 3.0, 5.0}, y(2);
  run_kernel<double>(schedule::OpKind::kSwigluForward, {.rows = 1, .inner = 2}, {reads(gate_up), writes(y)});
  EXPECT_LE(std::abs(y[0] - 3.0 / (1.0 + std::exp(-1.0))), 1e-15);
  EXPECT_LE(std::abs(y[1] + 10.0 / (1.0 + std::exp(2.0))), 1e-15);
}

TEST(RmsNormKernel, EqualsItsDefinition) {
  Vector x = {3.0, 4.0}, gain = {1.0, 2.0}, y(2), stats(1);
  run_kernel<double>(schedule::OpKind::kRmsNormForward, {.rows = 1, .inner = 2},
                     {reads(x), writes(y), writes(stats), reads(gain)});
  const double rms = std::sqrt(12.5 + 1e-5);
  EXPECT_LE(std::abs(stats[0] - 1.0 / rms), 1e-15);
  EXPECT_LE(std::abs(y[0] - 3.0 / rms), 1e-15);
  EXPECT_LE(std::abs(y[1] - 8.0 / rms), 1e-15);
}

// Two queries and a key of width 2, and a value that stays. outer = 2: each has a norm; 4: the queries share one.
TEST(QkNormKernel, EqualsItsDefinition) {
  for (const std::int64_t outer : {2, 4}) {
    const plan::Shape s{.batch = 1, .seq = 2, .heads = 2, .kv_heads = 1, .inner = 4, .outer = outer};
    const Vector start = random_vector(2 * 8, 1);
    Vector qkv = start, q_gain = random_vector(outer, 2), k_gain = random_vector(2, 3), before(12), stats(6);
    run_kernel<double>(schedule::OpKind::kQkNormForward, s,
                       {updates(qkv), reads(q_gain), reads(k_gain), writes(before), writes(stats)});
    for (std::size_t row = 0; row < 2; ++row) {
      for (std::size_t column = 0; column < 6; ++column) {
        const std::size_t width = column < 4 ? static_cast<std::size_t>(outer) : 2;
        const std::size_t begin = column / width * width;  // of the norm
        double squares = 0.0;
        for (std::size_t i = begin; i < begin + width; ++i) squares += start[row * 8 + i] * start[row * 8 + i];
        const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
        const double gain = (column < 4 ? q_gain : k_gain)[column - begin];
        EXPECT_LE(std::abs(qkv[row * 8 + column] - start[row * 8 + column] * inverse * gain), 1e-14);
        EXPECT_EQ(before[row * 6 + column], start[row * 8 + column]);
        EXPECT_LE(std::abs(stats[row * 3 + column / 2] - inverse), 1e-14);
      }
      for (std::size_t column = 6; column < 8; ++column) EXPECT_EQ(qkv[row * 8 + column], start[row * 8 + column]);
    }
  }
}

Mask draw(const plan::Shape& s, const engine::StepContext& at, std::int32_t micro_step = 0, std::int32_t layer = 0) {
  plan::Operation operation;
  operation.kind = schedule::OpKind::kDropoutForward;
  operation.shape = s;
  operation.micro_step = micro_step;
  operation.layer = layer;
  Vector x(static_cast<std::size_t>(s.rows * s.inner), 3.0);
  Mask mask(x.size());
  const std::vector<engine::OperandView> operands = {updates(x), writes(mask)};
  engine::kernel_for<double>(schedule::OpKind::kDropoutForward)({operation, operands, at});
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(x[i] - (mask[i] != 0 ? 3.0 / (1.0 - s.dropout) : 0.0)), 1e-14);
  }
  return mask;
}

TEST(DropoutKernel, DropsAboutItsShareAndDrawsAnewForEveryPlaceAndStep) {
  const plan::Shape s{.batch = 4, .seq = 50, .rows = 200, .inner = 101, .dropout = 0.1};
  const Mask mask = draw(s, {});
  // Binomial distribution; five standard deviations.
  const auto count = static_cast<double>(mask.size());
  const auto dropped = static_cast<double>(std::count(mask.begin(), mask.end(), 0));
  EXPECT_LE(std::abs(dropped - 0.1 * count), 5.0 * std::sqrt(count * 0.1 * 0.9));
  EXPECT_EQ(draw(s, {}), mask);  // the same when it is computed again
  plan::Shape other_site = s;
  other_site.site = 1;
  const engine::StepContext step{.step = 1}, seed{.options = {.seed = 2}};
  for (const Mask& other : {draw(other_site, {}), draw(s, step), draw(s, seed), draw(s, {}, 1), draw(s, {}, 0, 1)}) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < mask.size(); ++i) same += mask[i] == other[i] ? 1 : 0;
    // Independent masks agree with probability 0.82.
    EXPECT_LE(std::abs(static_cast<double>(same) - 0.82 * count), 5.0 * std::sqrt(count * 0.82 * 0.18));
  }
}

TEST(DropoutKernel, DrawsTheSameHoweverTheBatchIsCut) {
  const plan::Shape whole{.batch = 8, .seq = 5, .rows = 40, .inner = 6, .dropout = 0.5};
  const plan::Shape part{.batch = 2, .seq = 5, .rows = 10, .inner = 6, .dropout = 0.5};
  Mask cut;
  for (std::int32_t micro_step = 0; micro_step < 2; ++micro_step) {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const Mask mask = draw(part, {.step = 3, .rank = rank, .ranks = 2, .micro_steps = 2}, micro_step);
      cut.insert(cut.end(), mask.begin(), mask.end());
    }
  }
  EXPECT_EQ(draw(whole, {.step = 3}), cut);
  // Every tensor rank draws the same mask for rows that all have, and its own mask for a part of the rows.
  EXPECT_EQ(draw(whole, {.step = 3, .tensor_rank = 1, .tensor_ranks = 2}), cut);
  plan::Shape half = whole;
  half.rows = 20;
  EXPECT_EQ(draw(half, {.step = 3, .tensor_rank = 1, .tensor_ranks = 2}), Mask(cut.begin() + 120, cut.end()));
}

// As the inputs of an adapter whose layer is split over its columns.
TEST(DropoutKernel, DrawsItsOwnColumnsOfRowsThatAreSplit) {
  const plan::Shape whole{.batch = 2, .seq = 5, .rows = 10, .inner = 14, .dropout = 0.5};
  plan::Shape half = whole;
  half.inner = 7;
  half.width = 14;
  const Mask all = draw(whole, {.step = 3});
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const Mask part = draw(half, {.step = 3, .tensor_rank = rank, .tensor_ranks = 2});
    for (std::int64_t i = 0; i < std::ssize(part); ++i) {
      EXPECT_EQ(part[static_cast<std::size_t>(i)], all[static_cast<std::size_t>(i / 7 * 14 + rank * 7 + i % 7)]);
    }
  }
}

TEST(AttentionKernel, DropsByTheHeadOfTheWholeModel) {
  const plan::Shape s{.batch = 2, .seq = 6, .heads = 4, .kv_heads = 4, .inner = 4, .dropout = 0.5};
  plan::Shape half = s;
  half.heads = half.kv_heads = half.inner = 2;
  const auto mask_of = [](const plan::Shape& shape, const engine::StepContext& at) {
    Vector qkv(static_cast<std::size_t>(shape.batch * shape.seq * 3 * shape.inner), 1.0);
    Vector out(static_cast<std::size_t>(shape.batch * shape.seq * shape.inner));
    Vector logsumexp(static_cast<std::size_t>(shape.batch * shape.heads * shape.seq));
    Vector probabilities(static_cast<std::size_t>(shape.batch * shape.heads * shape.seq * shape.seq));
    Vector dropped = probabilities;
    Mask mask(probabilities.size());
    run_kernel<double>(
        schedule::OpKind::kAttentionForward, shape,
        {reads(qkv), writes(out), writes(logsumexp), writes(probabilities), writes(mask), writes(dropped)}, 1.0, at);
    return mask;
  };
  const Mask whole = mask_of(s, {});
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const Mask part = mask_of(half, {.tensor_rank = rank, .tensor_ranks = 2});
    for (std::int64_t i = 0; i < std::ssize(part); ++i) {
      const std::int64_t b = i / 72, rest = i % 72;
      EXPECT_EQ(part[static_cast<std::size_t>(i)], whole[static_cast<std::size_t>(b * 144 + rank * 72 + rest)]);
    }
  }
}

constexpr std::int64_t kRows = 4, kVocabulary = 11, kColumns = 6;  // two ranks: one column is padding

// Computes the loss of whole rows of logits with two ranks. The logits become the gradient.
double parallel_loss(Vector& logits, std::vector<std::int32_t>& targets, double scale) {
  const plan::Shape s{.rows = kRows, .inner = kVocabulary, .outer = kColumns};
  std::array<Vector, 2> part, top, sums, at_target, loss;
  const auto each = [&](auto&& act) {
    for (std::size_t r = 0; r < 2; ++r)
      act(r, engine::StepContext{.tensor_rank = static_cast<std::int64_t>(r), .tensor_ranks = 2});
  };
  const auto column = [](std::size_t r, std::int64_t j) { return static_cast<std::int64_t>(r) * kColumns + j; };
  each([&](std::size_t r, const engine::StepContext& at) {
    part[r].assign(kRows * kColumns, 1e6);  // padding must not count
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      const std::int64_t j = column(r, i % kColumns);
      if (j < kVocabulary)
        part[r][static_cast<std::size_t>(i)] = logits[static_cast<std::size_t>(i / kColumns * kVocabulary + j)];
    }
    for (auto* values : {&top[r], &sums[r], &at_target[r]}) values->resize(kRows);
    loss[r].resize(1);
    run_kernel<double>(schedule::OpKind::kVocabMax, s, {reads(part[r]), writes(top[r])}, 1.0, at);
  });
  for (std::size_t i = 0; i < kRows; ++i) top[0][i] = top[1][i] = std::max(top[0][i], top[1][i]);
  each([&](std::size_t r, const engine::StepContext& at) {
    run_kernel<double>(schedule::OpKind::kVocabSumExp, s,
                       {updates(part[r]), reads(targets), reads(top[r]), writes(sums[r]), writes(at_target[r])}, 1.0,
                       at);
  });
  for (std::size_t i = 0; i < kRows; ++i) {
    sums[0][i] = sums[1][i] = sums[0][i] + sums[1][i];
    at_target[0][i] = at_target[1][i] = at_target[0][i] + at_target[1][i];
  }
  Vector control = {4.0, 0.0, 0.25, 0.0, 0.0};
  each([&](std::size_t r, const engine::StepContext& at) {
    run_kernel<double>(
        schedule::OpKind::kVocabCrossEntropy, s,
        {updates(part[r]), reads(targets), reads(sums[r]), reads(at_target[r]), writes(loss[r]), reads(control)},
        scale / 4.0, at);
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      const std::int64_t j = column(r, i % kColumns);
      const double value = part[r][static_cast<std::size_t>(i)];
      if (j < kVocabulary) {
        logits[static_cast<std::size_t>(i / kColumns * kVocabulary + j)] = value;
      } else {
        EXPECT_EQ(value, 0.0);
      }
    }
  });
  EXPECT_EQ(loss[0][0], loss[1][0]);
  return loss[0][0];
}

TEST(VocabCrossEntropyKernels, HaveTheLossAndTheGradientOfTheWholeRow) {
  constexpr double kScale = 0.375;
  Vector logits = random_vector(kRows * kVocabulary, 1, 2.0);
  std::vector<std::int32_t> targets = {3, 0, 10, 6};
  Vector gradient = logits;
  const double parallel = parallel_loss(gradient, targets, kScale);
  Vector whole = logits, loss(1);
  const plan::Shape s{.rows = kRows, .outer = kVocabulary};
  run_kernel<double>(schedule::OpKind::kCrossEntropy, s, {updates(whole), reads(targets), writes(loss)}, kScale);
  EXPECT_LE(std::abs(parallel - loss[0]), 1e-14);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_LE(std::abs(gradient[i] - whole[i]), 1e-15);
  const auto scaled_sum = [&] {
    Vector work = logits;
    return parallel_loss(work, targets, kScale) * static_cast<double>(kRows) * kScale;
  };
  expect_gradient(scaled_sum, logits, gradient, "dlogits");
  Vector control = {8.0, 0.0, 0.125, 0.0, 0.0};
  whole = logits;
  run_kernel<double>(schedule::OpKind::kCrossEntropy, s, {updates(whole), reads(targets), writes(loss), reads(control)},
                     kScale / 8.0);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_LE(std::abs(gradient[i] - whole[i]), 1e-15);
  targets[2] = kVocabulary;
  EXPECT_THROW(parallel_loss(logits, targets, kScale), std::runtime_error);
}

TEST(GradientNormKernel, AddsScaledSquaresOfItsRanges) {
  Vector sum = {1.0}, a = {1.0, 2.0}, b = {3.0};
  run_kernel<double>(schedule::OpKind::kGradientNorm, {}, {updates(sum), reads(a), reads(b)}, 0.5);
  EXPECT_EQ(sum[0], 8.0);
  run_kernel<double>(schedule::OpKind::kGradientNorm, {}, {writes(sum), reads(a)});
  EXPECT_EQ(sum[0], 5.0);
}

Vector after_loss_scale(double sum_of_squares, Vector control, const engine::StepContext& context) {
  Vector sum = {sum_of_squares};
  run_kernel<double>(schedule::OpKind::kLossScale, {}, {reads(sum), updates(control)}, 1.0, context);
  return control;
}

TEST(LossScaleKernel, ClipsToTheLargestNorm) {
  const engine::StepContext clips{.gradient_clipping = 0.5};
  EXPECT_EQ(after_loss_scale(4.0, {1, 7, 1, 3, 0}, clips), (Vector{1, 8, 0.25, 4, 2}));
  EXPECT_EQ(after_loss_scale(0.04, {1, 7, 1, 3, 0}, clips)[schedule::kFactorElement], 1.0);
  EXPECT_EQ(after_loss_scale(4.0, {1, 7, 1, 3, 0}, {}), (Vector{1, 8, 1, 4, 2}));
}

TEST(LossScaleKernel, HalvesOnOverflowAndDoublesAfterTwoThousandGoodSteps) {
  const engine::StepContext fp16{.first_loss_scale = 65536.0};
  EXPECT_EQ(after_loss_scale(256.0, {16, 0, 0, 0, 0}, fp16), (Vector{16, 1, 1.0 / 16, 1, 1}));
  EXPECT_EQ(after_loss_scale(256.0, {16, 1999, 0, 5, 0}, fp16), (Vector{32, 0, 1.0 / 16, 6, 1}));
  EXPECT_EQ(after_loss_scale(256.0, {16, 1999, 0, 5, 0}, {})[schedule::kLossScaleElement], 16.0);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    const Vector after = after_loss_scale(bad, {16, 1999, 1, 5, 0}, fp16);
    EXPECT_EQ((Vector{after.begin(), after.begin() + 4}), (Vector{8, 0, 0, 5}));
    EXPECT_FALSE(std::isfinite(after[schedule::kNormElement]));
    EXPECT_EQ(after_loss_scale(bad, {1, 0, 1, 5, 0}, fp16)[schedule::kLossScaleElement], 1.0);
  }
}

TEST(OptimizerKernels, CountUpdatesScaleGradientsAndLeaveOutOverflows) {
  engine::StepContext context{.step = 40};
  context.options.learning_rate = 0.1;
  context.options.weight_decay = 0.5;
  for (const schedule::OpKind kind : {schedule::OpKind::kAdamW, schedule::OpKind::kSgd}) {
    const auto run = [&](double gradient, Vector control, std::int64_t step) {
      Vector p = {1.0}, g = {gradient}, m = {0.2}, v = {0.3};
      std::vector<engine::OperandView> operands = {updates(p), reads(g), updates(m)};
      if (kind == schedule::OpKind::kAdamW) operands.push_back(updates(v));
      if (!control.empty()) operands.push_back(reads(control));
      context.step = step;
      run_kernel<double>(kind, {}, operands, 1.0, context);
      return Vector{p[0], m[0], v[0]};
    };
    EXPECT_EQ(run(8.0, {4, 0, 0.25, 3, 0}, 40), run(2.0, {}, 2));
    EXPECT_EQ(run(std::nan(""), {4, 0, 0, 3, 0}, 40), (Vector{1.0, 0.2, 0.3}));
  }
}

// Two steps with g = 1, then 2, and momentum 0.9 give m = 1, then 2.9.
TEST(SgdKernel, FollowsItsRecursion) {
  engine::StepContext context;
  context.options.learning_rate = 0.1;
  context.options.weight_decay = 0.5;
  Vector p = {1.0}, g = {1.0}, m = {0.0};
  run_kernel<double>(schedule::OpKind::kSgd, {}, {updates(p), reads(g), updates(m)}, 1.0, context);
  EXPECT_LE(std::abs(p[0] - 0.85), 1e-15);
  g = {2.0};
  run_kernel<double>(schedule::OpKind::kSgd, {}, {updates(p), reads(g), updates(m)}, 1.0, context);
  EXPECT_LE(std::abs(m[0] - 2.9), 1e-15);
  EXPECT_LE(std::abs(p[0] - (0.85 - 0.1 * (2.9 + 0.5 * 0.85))), 1e-15);
}

TEST(KernelUnits, AgreeUpToRounding) {
  const plan::Shape s{.batch = 2, .seq = 70, .heads = 2, .kv_heads = 1, .rows = 140, .inner = 12, .outer = 31};
  const Vector start = random_vector(140 * 24, 1), matrix = random_vector(31 * 12, 2);
  std::vector<std::vector<float>> results;
  for (const engine::KernelUnit* unit : engine::available_kernel_units()) {
    std::vector<float> qkv(start.begin(), start.end()), weight(matrix.begin(), matrix.end()), out(1680), stats(280);
    std::vector<float> scratch(static_cast<std::size_t>(engine::scratch_elems(schedule::OpKind::kAttentionForward, s))),
        y(4340);
    plan::Operation operation;
    operation.shape = s;
    const auto run = [&](schedule::OpKind kind, const std::vector<engine::OperandView>& operands) {
      engine::kernel_for<float>(kind, *unit)({operation, operands, engine::StepContext{}, scratch.data()});
    };
    run(schedule::OpKind::kAttentionForward, {reads(qkv), writes(out), writes(stats)});
    run(schedule::OpKind::kLinearForward, {reads(out), reads(weight), writes(y)});
    run(schedule::OpKind::kGeluForward, {reads(y), updates(out)});
    results.push_back(out);
    for (std::size_t i = 0; i < out.size(); ++i) EXPECT_LE(std::abs(out[i] - results[0][i]), 1e-5F) << unit->name;
  }
}

}  // namespace krigtune::kernel_training_test
