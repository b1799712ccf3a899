// Properties of kernels besides gradients: overwriting or adding, published values, precision in float, determinism.
#include <array>
#include <numbers>
#include <set>

#include "engine/host/kernels/elementary.h"
#include "engine/host/kernels/kernel_unit.h"
#include "kernel_harness.h"
#include "plan/op_traits.h"

namespace krigtune::kernel_values_test {

using engine::KRIGTUNE_KERNELS::exponential;
using Vector = std::vector<double>;

// Runs with kWrite over garbage and with kReadWrite over 10. The results must differ by 10.
void expect_overwrites_or_adds(schedule::OpKind kind, const plan::Shape& s, const KernelOperands& given,
                               const std::vector<std::size_t>& outputs) {
  std::vector<Vector> written;
  for (const double start : {-99.0, 10.0}) {
    KernelOperands made = given;  // what is replaced in place starts the same
    std::vector<engine::OperandView> operands = made.views();
    for (const std::size_t o : outputs) {
      auto* out = static_cast<double*>(operands[o].data);
      std::fill(out, out + operands[o].elems, start);
      operands[o].access = start < 0.0 ? plan::Access::kWrite : plan::Access::kReadWrite;
    }
    run_kernel<double>(kind, s, operands);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto* out = static_cast<const double*>(operands[outputs[i]].data);
      const Vector now(out, out + operands[outputs[i]].elems);
      if (start < 0.0) {
        written.push_back(now);
        continue;
      }
      for (std::size_t j = 0; j < now.size(); ++j) EXPECT_LE(std::abs(now[j] - written[i][j] - 10.0), 1e-12);
    }
  }
}

TEST(Kernels, OverwriteWhereAccessIsWriteAndAddWhereItIsReadWrite) {
  const plan::Shape sizes = {.batch = 2, .seq = 4, .heads = 3, .kv_heads = 1, .rows = 8, .inner = 6, .outer = 10};
  for (int k = 0; k < schedule::kOpKindCount; ++k) {
    const plan::OpTraits& traits = plan::traits_of(static_cast<schedule::OpKind>(k));
    if (traits.predicted_only) continue;
    for (const plan::Shape& shape : shapes_for(traits.kind, sizes)) {
      KernelOperands made(traits, shape, traits.operands.size() + traits.group.size());
      std::vector<std::size_t> outputs;
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (made.traits(i).role == plan::Role::kOutput) outputs.push_back(i);
      }
      if (traits.kind == schedule::OpKind::kSwigluForward) outputs = {1};  // it can, although no plan adds to it
      SCOPED_TRACE(traits.name);
      if (!outputs.empty()) expect_overwrites_or_adds(traits.kind, shape, made, outputs);
    }
  }
}

TEST(Kernels, AreThereForEveryOperationThatIsNoCollectiveAndNotOnlyPredicted) {
  for (int k = 0; k < schedule::kOpKindCount; ++k) {
    const auto kind = static_cast<schedule::OpKind>(k);
    if (plan::is_collective(kind) || plan::traits_of(kind).predicted_only) {
      EXPECT_THROW(engine::kernel_for<float>(kind), std::logic_error) << plan::to_string(kind);
    } else {
      for (const engine::KernelUnit* unit : engine::available_kernel_units()) {
        EXPECT_NE(engine::kernel_for<float>(kind, *unit), nullptr) << plan::to_string(kind);
        EXPECT_NE(engine::kernel_for<double>(kind, *unit), nullptr) << plan::to_string(kind);
      }
    }
  }
}

TEST(Kernels, ZeroAndAddDoWhatTheySay) {
  Vector a = {1, 2, 3}, b = {4, 5, 6}, c = {7};
  run_kernel<double>(schedule::OpKind::kAdd, {}, {updates(a), reads(b)});
  EXPECT_EQ(a, (Vector{5, 7, 9}));
  run_kernel<double>(schedule::OpKind::kZero, {}, {writes(b), writes(c)});
  EXPECT_EQ(b, (Vector{0, 0, 0}));
  EXPECT_EQ(c, (Vector{0}));
}

TEST(Exponential, IsWithinTwoUnitsInTheLastPlaceInFloat) {
  for (int i = 0; i <= 20'000; ++i) {
    const float x = -86.0F + 174.0F * static_cast<float>(i) / 20'000.0F;
    const double exact = std::exp(static_cast<double>(x));
    EXPECT_LE(std::abs(static_cast<double>(exponential(x)) - exact) / exact, 2.4e-7) << x;
  }
  EXPECT_EQ(exponential(0.0F), 1.0F);
  EXPECT_TRUE(std::isnan(exponential(std::nanf(""))));  // a diverged loss must be visible
  EXPECT_LE(exponential(-1e30F), 1e-37F);
}

// PyTorch: torch.nn.functional.gelu(x, approximate="tanh") has 0.841192 at 1 and -0.158808 at -1.
TEST(GeluKernel, HasThePublishedValues) {
  Vector x = {1.0, -1.0, 0.0, 30.0, -30.0};
  Vector y(5);
  run_kernel<double>(schedule::OpKind::kGeluForward, {.rows = 1, .inner = 5}, {reads(x), writes(y)});
  EXPECT_LE(std::abs(y[0] - 0.841192), 5e-7);
  EXPECT_LE(std::abs(y[1] + 0.158808), 5e-7);
  EXPECT_EQ(y[2], 0.0);
  EXPECT_EQ(y[3], 30.0);
  EXPECT_LE(std::abs(y[4]), 1e-30);
}

TEST(CrossEntropyKernel, OfEqualLogitsIsTheLogarithmOfTheVocabulary) {
  std::vector<float> logits(3 * 7, 0.25F);
  std::vector<std::int32_t> targets = {0, 3, 6};
  std::vector<float> loss(1);
  run_kernel<float>(schedule::OpKind::kCrossEntropy, {.rows = 3, .outer = 7},
                    {updates(logits), reads(targets), writes(loss)});
  EXPECT_LE(std::abs(loss[0] - std::log(7.0F)), 1e-6F);
}

TEST(CrossEntropyKernel, RefusesATargetOutsideTheVocabulary) {
  std::vector<float> logits(7);
  std::vector<std::int32_t> targets = {7};
  std::vector<float> loss(1);
  EXPECT_THROW(run_kernel<float>(schedule::OpKind::kCrossEntropy, {.rows = 1, .outer = 7},
                                 {updates(logits), reads(targets), writes(loss)}),
               std::runtime_error);
}

// Computed by hand for two steps with g = 1, then g = 2: m = 0.1, 0.29; v = 0.05, 0.2475 (b1 = 0.9, b2 = 0.95).
TEST(AdamWKernel, FollowsThePublishedRecursion) {
  engine::StepContext context;
  context.options.learning_rate = 0.1;
  context.options.weight_decay = 0.5;
  context.options.epsilon = 0.0;
  Vector p = {1.0}, g = {1.0}, m = {0.0}, v = {0.0};
  run_kernel<double>(schedule::OpKind::kAdamW, {}, {updates(p), reads(g), updates(m), updates(v)}, 1.0, context);
  // The corrected moments are 1 and 1: p = 1 - 0.1 (1 + 0.5).
  EXPECT_LE(std::abs(p[0] - 0.85), 1e-14);
  context.step = 1;
  g = {2.0};
  run_kernel<double>(schedule::OpKind::kAdamW, {}, {updates(p), reads(g), updates(m), updates(v)}, 1.0, context);
  EXPECT_LE(std::abs(m[0] - 0.29), 1e-14);
  EXPECT_LE(std::abs(v[0] - 0.2475), 1e-14);
  const double direction = (0.29 / 0.19) / std::sqrt(0.2475 / 0.0975);
  EXPECT_LE(std::abs(p[0] - (0.85 - 0.1 * (direction + 0.5 * 0.85))), 1e-14);
}

TEST(AdamWKernel, LeavesPaddingZero) {
  std::vector<float> p(4), g(4), m(4), v(4);
  run_kernel<float>(schedule::OpKind::kAdamW, {}, {updates(p), reads(g), updates(m), updates(v)});
  EXPECT_EQ(p, std::vector<float>(4, 0.0F));
}

// Sizes around those of tiles and of the parts into which sums are cut.
void expect_products(const engine::KernelUnit& unit, std::int64_t m, std::int64_t n, std::int64_t k) {
  Vector a = random_vector(m * k, 1), b = random_vector(k * n, 2), bias = random_vector(n, 3);
  Vector at(a.size()), bt(b.size()), c(static_cast<std::size_t>(m * n)), scratch(engine::kGemmScratchElems);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t q = 0; q < k; ++q)
      at[static_cast<std::size_t>(q * m + i)] = a[static_cast<std::size_t>(i * k + q)];
  for (std::int64_t q = 0; q < k; ++q)
    for (std::int64_t j = 0; j < n; ++j)
      bt[static_cast<std::size_t>(j * k + q)] = b[static_cast<std::size_t>(q * n + j)];
  for (int variant = 0; variant < 16; ++variant) {
    engine::Product<double> product;
    product.c = engine::dense(c.data(), m, n);
    product.a_transposed = (variant & 1) != 0;
    product.b_transposed = (variant & 2) != 0;
    product.adds = (variant & 4) != 0;
    if ((variant & 8) != 0) product.bias = bias.data();
    product.a = product.a_transposed ? engine::dense<const double>(at.data(), k, m)
                                     : engine::dense<const double>(a.data(), m, k);
    product.b = product.b_transposed ? engine::dense<const double>(bt.data(), n, k)
                                     : engine::dense<const double>(b.data(), k, n);
    std::fill(c.begin(), c.end(), 1.0);
    unit.multiply_doubles(product, scratch.data());
    for (std::int64_t i = 0; i < m * n; ++i) {
      double sum = (product.adds ? 1.0 : 0.0) + (product.bias != nullptr ? bias[static_cast<std::size_t>(i % n)] : 0.0);
      for (std::int64_t q = 0; q < k; ++q) {
        sum += a[static_cast<std::size_t>(i / n * k + q)] * b[static_cast<std::size_t>(q * n + i % n)];
      }
      ASSERT_LE(std::abs(c[static_cast<std::size_t>(i)] - sum), 1e-11) << unit.name << m << " " << n << " " << k;
    }
  }
}

TEST(Gemm, EqualsTheTripleLoopForAllShapesOnEveryVectorUnit) {
  for (const engine::KernelUnit* unit : engine::available_kernel_units()) {
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                          {1, 30, 9},
                                                                          {30, 1, 9},
                                                                          {9, 30, 1},
                                                                          {6, 7, 7},
                                                                          {17, 33, 65},
                                                                          {24, 48, 8},
                                                                          {99, 5, 4},
                                                                          {7, 517, 6},
                                                                          {8, 24, 515}}) {
      expect_products(*unit, m, n, k);
    }
  }
}

// The sum of an element does not depend on its neighbours.
TEST(Gemm, GivesAnElementTheSameBitsWhereverItStands) {
  constexpr std::int64_t kDepth = 300;
  std::vector<float> a(21 * kDepth), b(70 * kDepth), c(21 * 70), part(5 * 7), scratch(engine::kGemmScratchElems);
  Rng rng(6, 0);
  for (auto* values : {&a, &b}) {
    for (float& value : *values) value = static_cast<float>(rng.normal());
  }
  const auto multiply = engine::kernel_unit().multiply_floats;
  multiply({.a = engine::dense<const float>(a.data(), 21, kDepth),
            .b = engine::dense<const float>(b.data(), 70, kDepth),
            .c = engine::dense(c.data(), 21, 70),
            .b_transposed = true},
           scratch.data());
  multiply({.a = engine::dense<const float>(a.data() + 13 * kDepth, 5, kDepth),
            .b = engine::dense<const float>(b.data() + 60 * kDepth, 7, kDepth),
            .c = engine::dense(part.data(), 5, 7),
            .b_transposed = true},
           scratch.data());
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 7; ++j) EXPECT_EQ(part[i * 7 + j], c[(13 + i) * 70 + 60 + j]);
  }
}

// Each kernel gets the same data at two addresses that differ modulo every vector width.
TEST(Kernels, GiveTheSameBitsAtEveryAddress) {
  const plan::Shape s{.rows = 3, .inner = 37, .outer = 29};
  std::vector<std::vector<float>> results;
  for (const std::size_t shift : {0U, 1U, 3U}) {
    std::vector<float> memory(shift + 37 * 3 + 37 * 29 + 29 * 3 + 64);
    float* x = memory.data() + shift;
    float* weight = x + 37 * 3;
    float* y = weight + 37 * 29;
    Rng rng(5, 0);
    for (float* at = x; at != y; ++at) *at = static_cast<float>(rng.normal());
    const std::vector<engine::OperandView> linear = {
        {x, 111, plan::Access::kRead}, {weight, 1073, plan::Access::kRead}, {y, 87, plan::Access::kWrite}};
    run_kernel<float>(schedule::OpKind::kLinearForward, s, linear);
    std::vector<std::int32_t> targets = {1, 2, 3};
    std::vector<float> loss(1);
    run_kernel<float>(schedule::OpKind::kCrossEntropy, s,
                      {{y, 87, plan::Access::kReadWrite}, reads(targets), writes(loss)});
    results.emplace_back(y, y + 87);
    results.back().push_back(loss[0]);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

struct Batch {
  std::vector<std::int32_t> tokens, targets;
};

Batch load(const engine::StepContext& context, std::int32_t micro_step, std::int64_t batch, std::int64_t vocabulary) {
  constexpr std::int64_t kSeq = 50;
  Batch loaded{std::vector<std::int32_t>(static_cast<std::size_t>(batch * kSeq)),
               std::vector<std::int32_t>(static_cast<std::size_t>(batch * kSeq))};
  plan::Operation operation;
  operation.kind = schedule::OpKind::kLoadBatch;
  operation.micro_step = micro_step;
  operation.shape = {.batch = batch, .seq = kSeq, .outer = vocabulary};
  const std::vector<engine::OperandView> operands = {writes(loaded.tokens), writes(loaded.targets)};
  engine::kernel_for<float>(schedule::OpKind::kLoadBatch)({operation, operands, context});
  return loaded;
}

TEST(LoadBatchKernel, MakesTheSameGlobalBatchHoweverItIsCut) {
  engine::StepContext two_ranks{.step = 3, .rank = 0, .ranks = 2, .micro_steps = 2};
  std::vector<std::int32_t> cut;
  for (std::int32_t micro_step = 0; micro_step < 2; ++micro_step) {
    for (two_ranks.rank = 0; two_ranks.rank < 2; ++two_ranks.rank) {
      const Batch part = load(two_ranks, micro_step, 2, 100);
      cut.insert(cut.end(), part.tokens.begin(), part.tokens.end());
    }
  }
  EXPECT_EQ(load({.step = 3}, 0, 8, 100).tokens, cut);
}

TEST(LoadBatchKernel, MostlyFollowsItsRuleAndStaysInTheVocabulary) {
  const Batch batch = load({}, 0, 40, 64);
  int follow = 0;
  for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
    ASSERT_GE(batch.targets[i], 0);
    ASSERT_LT(batch.targets[i], 64);
    if (batch.targets[i] == (5 * batch.tokens[i] + 3) % 64) ++follow;
  }
  // Binomial(2000, 1 - 26/256 * 63/64 = 0.900); five standard deviations.
  EXPECT_LE(std::abs(follow - 1800.0), 5.0 * std::sqrt(2000 * 0.9 * 0.1));
  EXPECT_EQ(std::set<std::int32_t>(batch.tokens.begin(), batch.tokens.end()).size(), 64U);
  EXPECT_NE(load({.step = 1}, 0, 40, 64).tokens, batch.tokens);
}

}  // namespace krigtune::kernel_values_test
