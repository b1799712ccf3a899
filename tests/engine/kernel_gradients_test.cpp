// Every backward kernel against central differences of its forward kernel, in double precision. The loss is the inner
// product of the output with fixed random weights, which are therefore the output's gradient.
#include <map>
#include <set>
#include <string_view>

#include "kernel_harness.h"

namespace krigtune::kernel_gradients_test {

using Vector = std::vector<double>;

/// One forward operation with the backward operations that the table of op_table.cpp names for it.
class Gradients {
 public:
  /// Uses the first `count` operands. `stddev` is that of the first one.
  Gradients(schedule::OpKind forward, const plan::Shape& shape, std::size_t count, double stddev = 1.0)
      : traits_(plan::traits_of(forward)), shape_(shape), before_(traits_, shape, count, stddev), after_(before_) {
    for (int k = 0; k < schedule::kOpKindCount; ++k) {
      const plan::OpTraits& traits = plan::traits_of(static_cast<schedule::OpKind>(k));
      if (traits.backward_of == forward) backwards_.push_back(&traits);
    }
    for (const plan::OpTraits* backward : backwards_) {
      for (const plan::OperandTraits& operand : backward->operands) {
        const bool is_read = operand.role == plan::Role::kInput || operand.role == plan::Role::kInPlace;
        const plan::ForwardOperand is = *plan::find_forward(traits_, operand.name);
        if (is_read && is.is_derivative) derivatives_.try_emplace(is.operand, random(is.operand));
      }
    }
  }

  /// Runs the forward operation and returns the loss.
  double loss() {
    after_ = before_;
    run_kernel<double>(traits_.kind, shape_, after_.views());
    double sum = 0.0;
    for (const auto& [operand, derivative] : derivatives_) sum += dot(after_.numbers(operand), derivative);
    return sum;
  }

  void expect_right() {
    loss();
    const KernelOperands kept = after_;
    for (const plan::OpTraits* backward : backwards_) expect_right(*backward, kept);
  }

  const Vector& result(std::size_t operand) { return after_.numbers(operand); }

 private:
  Vector random(std::size_t operand) { return random_vector(traits_.operands[operand].elems(shape_), 100 + operand); }

  void expect_right(const plan::OpTraits& backward, KernelOperands kept) {
    // Operands that the forward operation did not get are missing in the backward operation, too.
    std::size_t count = 0;
    while (count < backward.operands.size() && forward_operand(backward, count) < kept.size()) ++count;
    KernelOperands operands(backward, shape_, count);
    for (std::size_t i = 0; i < count; ++i) {
      const plan::ForwardOperand is = *plan::find_forward(traits_, backward.operands[i].name);
      if (!is.is_derivative) {
        operands.take(i, kept, is.operand);
      } else if (const auto given = derivatives_.find(is.operand); given != derivatives_.end()) {
        operands.numbers(i) = given->second;
      }
    }
    run_kernel<double>(backward.kind, shape_, operands.views());
    for (std::size_t i = 0; i < count; ++i) {
      const plan::OperandTraits& operand = backward.operands[i];
      if (operand.role == plan::Role::kInput || operand.role == plan::Role::kHeld) continue;
      const std::string_view name = operand.becomes.empty() ? operand.name : operand.becomes;
      const std::size_t of = plan::find_forward(traits_, name)->operand;
      expect_gradient([this] { return loss(); }, before_.numbers(of), operands.numbers(i),
                      std::string(backward.name) + ", " + std::string(name));
    }
  }

  std::size_t forward_operand(const plan::OpTraits& backward, std::size_t i) const {
    return plan::find_forward(traits_, backward.operands[i].name)->operand;
  }

  const plan::OpTraits& traits_;
  plan::Shape shape_;
  KernelOperands before_, after_;
  std::vector<const plan::OpTraits*> backwards_;
  std::map<std::size_t, Vector> derivatives_;  ///< of the loss, by operand of the forward operation
};

/// Checks the operation with and without its optional operands.
void expect_gradients(schedule::OpKind forward, const plan::Shape& shape, double stddev = 1.0) {
  const plan::OpTraits& traits = plan::traits_of(forward);
  std::size_t least = 0;
  while (!traits.takes(least)) ++least;
  for (const std::size_t count : std::set{least, traits.operands.size()}) {
    SCOPED_TRACE(std::string(traits.name) + " with " + std::to_string(count) + " operands");
    Gradients(forward, shape, count, stddev).expect_right();
  }
}

// A new operation is tested here as soon as the table names its backward operation.
TEST(Kernels, HaveTheGradientsOfTheirForward) {
  const plan::Shape sizes = {.batch = 2, .seq = 3, .heads = 4, .kv_heads = 2, .rows = 6, .inner = 16, .outer = 12};
  for (int k = 0; k < schedule::kOpKindCount; ++k) {
    const plan::OpTraits& traits = plan::traits_of(static_cast<schedule::OpKind>(k));
    if (!traits.backward_of || traits.predicted_only) continue;
    plan::Shape shape = sizes;
    if (plan::traits_of(*traits.backward_of).draws) shape.dropout = 0.4;
    for (const plan::Shape& one : shapes_for(traits.kind, shape)) {
      for (const double stddev : {1.0, 2.0}) expect_gradients(*traits.backward_of, one, stddev);
    }
  }
}

TEST(LinearKernel, HasTheGradientsOfItsForwardWhereSizesAreTiny) {
  expect_gradients(schedule::OpKind::kLinearForward, {.rows = 3, .inner = 4, .outer = 5});
}
TEST(LinearKernel, HasTheGradientsOfItsForwardForOneRow) {
  expect_gradients(schedule::OpKind::kLinearForward, {.rows = 1, .inner = 20, .outer = 9});
}
TEST(RowKernels, HaveTheGradientsOfTheirForwardWhereRowsAreOdd) {
  for (const schedule::OpKind kind :
       {schedule::OpKind::kLayerNormForward, schedule::OpKind::kRmsNormForward, schedule::OpKind::kAddBias,
        schedule::OpKind::kGeluForward, schedule::OpKind::kSwigluForward}) {
    expect_gradients(kind, {.rows = 5, .inner = 19}, 2.0);
  }
}

TEST(LayerNormKernel, HasTheGradientsOfItsForwardWithoutABias) {
  Gradients(schedule::OpKind::kLayerNormForward, {.rows = 5, .inner = 19}, 4, 2.0).expect_right();
}

// Without the gradients of gain and bias, which come last.
TEST(NormKernels, HaveTheSameInputGradientWhereTheirParametersAreFrozen) {
  const auto input_gradient = [](schedule::OpKind kind, plan::Shape shape, std::size_t count, std::size_t gradient) {
    KernelOperands operands(plan::traits_of(kind), shape, count);
    run_kernel<double>(kind, shape, operands.views());
    return operands.numbers(gradient);
  };
  const plan::Shape rows{.rows = 5, .inner = 19};
  EXPECT_EQ(input_gradient(schedule::OpKind::kLayerNormBackward, rows, 5, 3),
            input_gradient(schedule::OpKind::kLayerNormBackward, rows, 7, 3));
  EXPECT_EQ(input_gradient(schedule::OpKind::kRmsNormBackward, rows, 5, 3),
            input_gradient(schedule::OpKind::kRmsNormBackward, rows, 6, 3));
  const plan::Shape heads{.batch = 2, .seq = 3, .heads = 4, .kv_heads = 2, .inner = 16, .outer = 4};
  EXPECT_EQ(input_gradient(schedule::OpKind::kQkNormBackward, heads, 5, 0),
            input_gradient(schedule::OpKind::kQkNormBackward, heads, 7, 0));
}

// Columns 3 to 8 of rows of 11, as if they were a matrix of their own.
TEST(LinearKernel, ComputesSomeColumnsOfWiderRows) {
  const plan::Shape dense{.rows = 7, .inner = 6, .outer = 5};
  plan::Shape wide = dense;
  wide.begin = 3;
  wide.width = 11;
  Vector x = random_vector(7 * 6, 1), weight = random_vector(5 * 6, 2), y = random_vector(7 * 5, 3);
  Vector rows = random_vector(7 * 11, 4), dx(42), dx_of_rows(42), dw(30), dw_of_rows(30);
  const Vector before = rows;
  for (std::size_t i = 0; i < 35; ++i) rows[i / 5 * 11 + 3 + i % 5] = y[i];
  run_kernel<double>(schedule::OpKind::kLinearForward, dense, {reads(x), reads(weight), updates(y)});
  run_kernel<double>(schedule::OpKind::kLinearForward, wide, {reads(x), reads(weight), updates(rows)});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_own = i % 11 >= 3 && i % 11 < 8;
    EXPECT_EQ(rows[i], is_own ? y[i / 11 * 5 + i % 11 - 3] : before[i]) << i;
  }
  run_kernel<double>(schedule::OpKind::kLinearBackwardInput, dense, {reads(y), reads(weight), writes(dx)});
  run_kernel<double>(schedule::OpKind::kLinearBackwardInput, wide, {reads(rows), reads(weight), writes(dx_of_rows)});
  EXPECT_EQ(dx_of_rows, dx);
  run_kernel<double>(schedule::OpKind::kLinearBackwardWeight, dense, {reads(y), reads(x), writes(dw)});
  run_kernel<double>(schedule::OpKind::kLinearBackwardWeight, wide, {reads(rows), reads(x), writes(dw_of_rows)});
  EXPECT_EQ(dw_of_rows, dw);
}

TEST(AttentionKernel, HasTheGradientsOfItsForward) {
  expect_gradients(schedule::OpKind::kAttentionForward, {.batch = 2, .seq = 7, .heads = 2, .kv_heads = 2, .inner = 16});
}
TEST(AttentionKernel, HasTheGradientsOfItsForwardWhereSizesAreTiny) {
  expect_gradients(schedule::OpKind::kAttentionForward, {.batch = 1, .seq = 4, .heads = 3, .kv_heads = 3, .inner = 6});
}
TEST(AttentionKernel, HasTheGradientsOfItsForwardOverSeveralTiles) {
  expect_gradients(schedule::OpKind::kAttentionForward,
                   {.batch = 1, .seq = 101, .heads = 1, .kv_heads = 1, .inner = 2});
}
TEST(AttentionKernel, HasTheGradientsOfItsForwardWhereHeadsShareKeys) {
  expect_gradients(schedule::OpKind::kAttentionForward, {.batch = 2, .seq = 6, .heads = 4, .kv_heads = 2, .inner = 12});
}

// It keeps nothing, its probabilities, or these with the mask and the probabilities after the mask.
TEST(AttentionKernel, HasTheSameOutputAndGradientsWhateverItKeeps) {
  const auto output = [](const plan::Shape& shape, std::size_t operands) {
    Gradients gradients(schedule::OpKind::kAttentionForward, shape, operands);
    gradients.expect_right();
    gradients.loss();
    return gradients.result(1);
  };
  const plan::Shape plain{.batch = 2, .seq = 6, .heads = 4, .kv_heads = 2, .inner = 12};
  const Vector out = output(plain, 3);
  EXPECT_EQ(output(plain, 4), out);
  plan::Shape drops = plain;
  drops.dropout = 0.3;
  const Vector dropped = output(drops, 3);
  EXPECT_NE(dropped, out);
  EXPECT_EQ(output(drops, 4), dropped);
  EXPECT_EQ(output(drops, 6), dropped);
}

TEST(AttentionKernel, EqualsItsDefinition) {
  const plan::Shape s{.batch = 2, .seq = 5, .heads = 2, .inner = 6};
  const std::int64_t d = s.inner / s.heads;
  Vector qkv = random_vector(s.batch * s.seq * 3 * s.inner, 1);
  Vector out(static_cast<std::size_t>(s.batch * s.seq * s.inner));
  Vector logsumexp(static_cast<std::size_t>(s.batch * s.heads * s.seq));
  run_kernel<double>(schedule::OpKind::kAttentionForward, s, {reads(qkv), writes(out), writes(logsumexp)});
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

TEST(CrossEntropyKernel, LeavesTheScaledGradientOfTheSumOfTheRows) {
  const plan::Shape s{.rows = 4, .outer = 11};
  constexpr double kScale = 0.375;
  Vector logits = random_vector(s.rows * s.outer, 1, 2.0);
  std::vector<std::int32_t> targets = {3, 0, 10, 3};
  Vector work;
  Vector loss(1);
  const auto scaled_sum = [&] {
    work = logits;
    run_kernel<double>(schedule::OpKind::kCrossEntropy, s, {updates(work), reads(targets), writes(loss)}, kScale);
    return loss[0] * static_cast<double>(s.rows) * kScale;
  };
  scaled_sum();
  const Vector gradient = work;
  expect_gradient(scaled_sum, logits, gradient, "dlogits");
}

}  // namespace krigtune::kernel_gradients_test
