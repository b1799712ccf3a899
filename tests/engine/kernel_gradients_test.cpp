// Every backward kernel against central differences of its forward kernel, in double precision. The loss is the inner
// product of the output with fixed random weights, which are therefore the output's gradient.
#include "kernel_harness.h"

namespace krigtune::kernel_gradients_test {

using Vector = std::vector<double>;

void expect_linear_gradients(const Shape& s) {
  Vector x = random_vector(s.rows * s.inner, 1);
  Vector weight = random_vector(s.outer * s.inner, 2);
  Vector bias = random_vector(s.outer, 3);
  Vector dy = random_vector(s.rows * s.outer, 4);
  Vector y(dy.size());
  const auto loss = [&] {
    run_kernel<double>(OpKind::kLinearForward, s, {reads(x), reads(weight), writes(y), reads(bias)});
    return dot(y, dy);
  };
  Vector dx(x.size());
  Vector dweight(weight.size());
  Vector dbias(bias.size());
  run_kernel<double>(OpKind::kLinearBackwardInput, s, {reads(dy), reads(weight), writes(dx)});
  run_kernel<double>(OpKind::kLinearBackwardWeight, s, {reads(dy), reads(x), writes(dweight), writes(dbias)});
  expect_gradient(loss, x, dx, "dx");
  expect_gradient(loss, weight, dweight, "dweight");
  expect_gradient(loss, bias, dbias, "dbias");
}

TEST(LinearKernel, HasTheGradientsOfItsForward) { expect_linear_gradients({.rows = 6, .inner = 16, .outer = 12}); }
TEST(LinearKernel, HasTheGradientsOfItsForwardWhereSizesAreTiny) {
  expect_linear_gradients({.rows = 3, .inner = 4, .outer = 5});
}
TEST(LinearKernel, HasTheGradientsOfItsForwardForOneRow) {
  expect_linear_gradients({.rows = 1, .inner = 20, .outer = 9});
}

TEST(LayerNormKernel, HasTheGradientsOfItsForward) {
  const Shape s{.rows = 5, .inner = 19};
  Vector x = random_vector(s.rows * s.inner, 1, 2.0);
  Vector gain = random_vector(s.inner, 2);
  Vector bias = random_vector(s.inner, 3);
  Vector dy = random_vector(s.rows * s.inner, 4);
  Vector y(x.size());
  Vector stats(static_cast<std::size_t>(2 * s.rows));
  const auto loss = [&] {
    run_kernel<double>(OpKind::kLayerNormForward, s, {reads(x), reads(gain), reads(bias), writes(y), writes(stats)});
    return dot(y, dy);
  };
  loss();
  Vector dx(x.size());
  Vector dgain(gain.size());
  Vector dbias(bias.size());
  run_kernel<double>(OpKind::kLayerNormBackward, s,
                     {reads(dy), reads(x), reads(gain), reads(stats), writes(dx), writes(dgain), writes(dbias)});
  expect_gradient(loss, x, dx, "dx");
  expect_gradient(loss, gain, dgain, "dgain");
  expect_gradient(loss, bias, dbias, "dbias");
}

TEST(RmsNormKernel, HasTheGradientsOfItsForward) {
  const Shape s{.rows = 5, .inner = 19};
  Vector x = random_vector(s.rows * s.inner, 1, 2.0);
  Vector gain = random_vector(s.inner, 2);
  Vector dy = random_vector(s.rows * s.inner, 4);
  Vector y(x.size());
  Vector stats(static_cast<std::size_t>(s.rows));
  const auto loss = [&] {
    run_kernel<double>(OpKind::kRmsNormForward, s, {reads(x), reads(gain), writes(y), writes(stats)});
    return dot(y, dy);
  };
  loss();
  Vector dx(x.size());
  Vector dgain(gain.size());
  run_kernel<double>(OpKind::kRmsNormBackward, s,
                     {reads(dy), reads(x), reads(gain), reads(stats), writes(dx), writes(dgain)});
  expect_gradient(loss, x, dx, "dx");
  expect_gradient(loss, gain, dgain, "dgain");
}

TEST(BiasKernels, HaveTheGradientsOfTheirForward) {
  const Shape s{.rows = 5, .inner = 19};
  Vector y = random_vector(s.rows * s.inner, 1);
  Vector bias = random_vector(s.inner, 2);
  Vector dy = random_vector(s.rows * s.inner, 3);
  const auto loss = [&] {
    Vector sum = y;
    run_kernel<double>(OpKind::kAddBias, s, {updates(sum), reads(bias)});
    return dot(sum, dy);
  };
  Vector dbias(bias.size(), 7.0);
  run_kernel<double>(OpKind::kBiasBackward, s, {reads(dy), writes(dbias)});
  expect_gradient(loss, bias, dbias, "dbias");
}

TEST(RotaryKernel, HasTheGradientOfItsForward) {
  const Shape s{.batch = 2, .seq = 5, .heads = 4, .kv_heads = 2, .inner = 16};
  Vector qkv = random_vector(s.batch * s.seq * 32, 1);
  Vector dy = random_vector(s.batch * s.seq * 32, 2);
  const auto loss = [&] {
    Vector turned = qkv;
    run_kernel<double>(OpKind::kRotaryForward, s, {updates(turned)});
    return dot(turned, dy);
  };
  Vector dqkv = dy;
  run_kernel<double>(OpKind::kRotaryBackward, s, {updates(dqkv)});
  expect_gradient(loss, qkv, dqkv, "dqkv");
}

TEST(SwigluKernel, HasTheGradientOfItsForward) {
  const Shape s{.rows = 3, .inner = 17};
  Vector gate_up = random_vector(s.rows * 2 * s.inner, 1, 2.0);
  Vector dy = random_vector(s.rows * s.inner, 2);
  Vector y(dy.size());
  const auto loss = [&] {
    run_kernel<double>(OpKind::kSwigluForward, s, {reads(gate_up), writes(y)});
    return dot(y, dy);
  };
  Vector dgate_up(gate_up.size());
  run_kernel<double>(OpKind::kSwigluBackward, s, {reads(gate_up), reads(dy), writes(dgate_up)});
  expect_gradient(loss, gate_up, dgate_up, "dgate_up");
}

TEST(DropoutKernel, HasTheGradientOfItsForward) {
  const Shape s{.batch = 2, .seq = 3, .rows = 6, .inner = 7, .dropout = 0.4};
  Vector x = random_vector(s.rows * s.inner, 1);
  Vector dx = random_vector(s.rows * s.inner, 2);
  const Vector dy = dx;
  std::vector<std::uint8_t> mask(x.size());
  const auto loss = [&] {
    Vector y = x;
    run_kernel<double>(OpKind::kDropoutForward, s, {updates(y), writes(mask)});
    return dot(y, dy);
  };
  loss();
  run_kernel<double>(OpKind::kDropoutBackward, s, {updates(dx), reads(mask)});
  expect_gradient(loss, x, dx, "dx");
}

/// How much attention keeps: nothing, its probabilities, or these, the mask and what the mask left of them.
enum class Keeps { kNothing, kProbabilities, kAll };

Vector expect_attention_gradients(const Shape& s, Keeps keeps = Keeps::kNothing) {
  const std::int64_t width = s.inner + 2 * s.kv_heads * (s.inner / s.heads);
  Vector qkv = random_vector(s.batch * s.seq * width, 1);
  Vector dout = random_vector(s.batch * s.seq * s.inner, 2);
  Vector out(dout.size());
  Vector logsumexp(static_cast<std::size_t>(s.batch * s.heads * s.seq));
  Vector probabilities(static_cast<std::size_t>(s.batch * s.heads * s.seq * s.seq), 99.0);
  Vector dropped = probabilities;
  std::vector<std::uint8_t> mask(probabilities.size(), 99);
  const auto with_kept = [&](std::vector<OperandView> operands, auto&& mode) {
    if (keeps != Keeps::kNothing) operands.push_back(mode(probabilities));
    if (keeps != Keeps::kAll) return operands;
    operands.push_back(mode(mask));
    operands.push_back(mode(dropped));
    return operands;
  };
  const auto loss = [&] {
    run_kernel<double>(OpKind::kAttentionForward, s,
                       with_kept({reads(qkv), writes(out), writes(logsumexp)}, [](auto& v) { return writes(v); }));
    return dot(out, dout);
  };
  loss();
  Vector dqkv(qkv.size(), 7.0);
  run_kernel<double>(OpKind::kAttentionBackward, s,
                     with_kept({reads(dout), reads(qkv), reads(out), reads(logsumexp), writes(dqkv)},
                               [](auto& v) { return reads(v); }));
  expect_gradient(loss, qkv, dqkv, "dqkv");
  return out;
}

TEST(AttentionKernel, HasTheGradientsOfItsForward) {
  expect_attention_gradients({.batch = 2, .seq = 7, .heads = 2, .kv_heads = 2, .inner = 16});
}
TEST(AttentionKernel, HasTheGradientsOfItsForwardWhereSizesAreTiny) {
  expect_attention_gradients({.batch = 1, .seq = 4, .heads = 3, .kv_heads = 3, .inner = 6});
}
TEST(AttentionKernel, HasTheGradientsOfItsForwardOverSeveralTiles) {
  expect_attention_gradients({.batch = 1, .seq = 101, .heads = 1, .kv_heads = 1, .inner = 2});
}
TEST(AttentionKernel, HasTheGradientsOfItsForwardWhereHeadsShareKeys) {
  expect_attention_gradients({.batch = 2, .seq = 6, .heads = 4, .kv_heads = 2, .inner = 12});
}
TEST(AttentionKernel, HasTheSameOutputAndGradientsWhateverItKeeps) {
  const Shape plain{.batch = 2, .seq = 6, .heads = 4, .kv_heads = 2, .inner = 12};
  const Vector out = expect_attention_gradients(plain);
  EXPECT_EQ(expect_attention_gradients(plain, Keeps::kProbabilities), out);
  Shape drops = plain;
  drops.dropout = 0.3;
  const Vector dropped = expect_attention_gradients(drops);
  EXPECT_NE(dropped, out);
  EXPECT_EQ(expect_attention_gradients(drops, Keeps::kProbabilities), dropped);
  EXPECT_EQ(expect_attention_gradients(drops, Keeps::kAll), dropped);
}

TEST(AttentionKernel, EqualsItsDefinition) {
  const Shape s{.batch = 2, .seq = 5, .heads = 2, .inner = 6};
  const std::int64_t d = s.inner / s.heads;
  Vector qkv = random_vector(s.batch * s.seq * 3 * s.inner, 1);
  Vector out(static_cast<std::size_t>(s.batch * s.seq * s.inner));
  Vector logsumexp(static_cast<std::size_t>(s.batch * s.heads * s.seq));
  run_kernel<double>(OpKind::kAttentionForward, s, {reads(qkv), writes(out), writes(logsumexp)});
  // part 0, 1, 2: q, k, v
  const auto at = [&](std::int64_t b, std::int64_t t, std::int64_t part, std::int64_t head, std::int64_t j) {
    return qkv[static_cast<std::size_t>((b * s.seq + t) * 3 * s.inner + part * s.inner + head * d + j)];
  };
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      for (std::int64_t t = 0; t < s.seq; ++t) {
        double sum = 0.0;
        Vector mixed(static_cast<std::size_t>(d), 0.0);
        for (std::int64_t u = 0; u <= t; ++u) {  // causal: nothing after t
          double score = 0.0;
          for (std::int64_t j = 0; j < d; ++j) score += at(b, t, 0, head, j) * at(b, u, 1, head, j);
          const double weight = std::exp(score / std::sqrt(static_cast<double>(d)));
          sum += weight;
          for (std::int64_t j = 0; j < d; ++j) mixed[static_cast<std::size_t>(j)] += weight * at(b, u, 2, head, j);
        }
        const double l = logsumexp[static_cast<std::size_t>((b * s.heads + head) * s.seq + t)];
        EXPECT_LE(std::abs(l - std::log(sum)), 1e-13);
        for (std::int64_t j = 0; j < d; ++j) {
          const double got = out[static_cast<std::size_t>((b * s.seq + t) * s.inner + head * d + j)];
          EXPECT_LE(std::abs(got - mixed[static_cast<std::size_t>(j)] / sum), 1e-13);
        }
      }
    }
  }
}

TEST(GeluKernel, HasTheGradientOfItsForward) {
  const Shape s{.rows = 3, .inner = 17};
  Vector x = random_vector(s.rows * s.inner, 1, 2.0);
  Vector dy = random_vector(s.rows * s.inner, 2);
  Vector y(x.size());
  const auto loss = [&] {
    run_kernel<double>(OpKind::kGeluForward, s, {reads(x), writes(y)});
    return dot(y, dy);
  };
  Vector dx = dy;
  run_kernel<double>(OpKind::kGeluBackward, s, {reads(x), updates(dx)});
  expect_gradient(loss, x, dx, "dx");
}

TEST(CrossEntropyKernel, LeavesTheScaledGradientOfTheSumOfTheRows) {
  const Shape s{.rows = 4, .outer = 11};
  constexpr double kScale = 0.375;
  Vector logits = random_vector(s.rows * s.outer, 1, 2.0);
  std::vector<std::int32_t> targets = {3, 0, 10, 3};
  Vector work;
  Vector loss(1);
  const auto scaled_sum = [&] {
    work = logits;
    run_kernel<double>(OpKind::kCrossEntropy, s, {updates(work), reads(targets), writes(loss)}, kScale);
    return loss[0] * static_cast<double>(s.rows) * kScale;
  };
  scaled_sum();
  const Vector gradient = work;
  expect_gradient(scaled_sum, logits, gradient, "dlogits");
}

TEST(EmbeddingKernels, HaveTheGradientsOfTheirForward) {
  const Shape s{.batch = 2, .seq = 3, .rows = 6, .inner = 4, .outer = 5};
  std::vector<std::int32_t> tokens = {1, 4, 1, 0, 1, 4};  // repeated ones add up
  Vector table = random_vector(5 * s.inner, 1);
  Vector positions = random_vector(s.seq * s.inner, 2);
  Vector dx = random_vector(s.rows * s.inner, 3);
  Vector x(dx.size());
  const auto loss = [&] {
    run_kernel<double>(OpKind::kEmbeddingForward, s, {reads(tokens), reads(table), writes(x)});
    run_kernel<double>(OpKind::kPositionsForward, s, {updates(x), reads(positions)});
    return dot(x, dx);
  };
  Vector dtable(table.size(), 7.0);
  Vector dpositions(positions.size(), 7.0);
  run_kernel<double>(OpKind::kEmbeddingBackward, s, {reads(tokens), reads(dx), writes(dtable)});
  run_kernel<double>(OpKind::kPositionsBackward, s, {reads(dx), writes(dpositions)});
  expect_gradient(loss, table, dtable, "dtable");
  expect_gradient(loss, positions, dpositions, "dpositions");
}

}  // namespace krigtune::kernel_gradients_test
