// Plans with state-space layers and linear attention: FLOPs of their scans against loops over tokens, parameters and
// products against closed forms, and what is kept.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "plan/check/check_plan.h"
#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"
#include "plan/random_hybrids.h"

namespace krigtune::mixers_test {
namespace {

using plan::StepPlan;
using schedule::OpKind;

constexpr std::int64_t kTokens = 11, kHidden = 32, kVocab = 50;

workload::Workload hybrid(const workload::LayerCounts& layers) {
  workload::Workload workload;
  workload.model = {.layers = layers.sum(),
                    .hidden = kHidden,
                    .heads = 4,
                    .kv_heads = 2,
                    .ffn_hidden = 64,
                    .vocab = kVocab,
                    .seq_len = kTokens};
  workload::ModelSpec& model = workload.model;
  model.gated_mlp = true;
  model.norm = workload::Norm::kRmsNorm;
  model.positions = workload::Positions::kRotary;
  model.layer_kinds = layers;
  if (model.layers_with(workload::Mixer::kMamba) > 0) model.mamba = {4, 6, 5, 2, 4, 4};
  if (model.layers_with(workload::Mixer::kDelta) > 0) model.delta = {2, 4, 6, 7, 4, 4};
  if (model.layers_with(workload::FeedForward::kExperts) > 0) model.experts = {4, 2, 24, 16};
  workload.precision = workload::Precision::kBf16;
  return workload;
}
workload::LayerCounts mamba_alone() { return {.mamba = 1}; }
workload::LayerCounts delta_alone() { return {.delta = 1}; }

// Multiplications and additions of products of vectors of a width, counted one by one.
struct Count {
  double flops = 0.0;
  void product(std::int64_t width) { flops += 2.0 * static_cast<double>(width); }
};

// Calls visit(first, end) for each chunk.
template <class Visit>
void for_each_chunk(std::int64_t chunk, const Visit& visit) {
  for (std::int64_t first = 0; first < kTokens; first += chunk) visit(first, std::min(kTokens, first + chunk));
}

TEST(Mixers, MambasScanHasTheFlopsOfItsLoops) {
  const workload::Workload workload = hybrid(mamba_alone());
  const workload::MambaSpec& mamba = workload.model.mamba;
  Count forward, backward;
  for_each_chunk(mamba.chunk, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      for (std::int64_t j = first; j <= i; ++j) {
        for (std::int64_t g = 0; g < mamba.groups; ++g) {
          forward.product(mamba.state);   // C_i B_j
          backward.product(mamba.state);  // again
          backward.product(mamba.state);  // dC_i of the pair
          backward.product(mamba.state);  // dB_j
        }
        for (std::int64_t h = 0; h < mamba.heads; ++h) {
          forward.product(mamba.head_dim);   // y_i += the pair's weight times x_j
          backward.product(mamba.head_dim);  // of the weight: dy_i x_j
          backward.product(mamba.head_dim);  // dx_j
        }
      }
      for (std::int64_t h = 0; h < mamba.heads; ++h) {
        for (std::int64_t p = 0; p < mamba.head_dim; ++p) {
          forward.product(mamba.state);                                        // state += B_i x_i
          forward.product(mamba.state);                                        // y_i += C_i state
          backward.product(mamba.state);                                       // the states again
          for (int part = 0; part < 4; ++part) backward.product(mamba.state);  // of state before, C, x and B
        }
      }
    }
    for (std::int64_t h = 0; h < mamba.heads * mamba.head_dim; ++h) {
      forward.product(mamba.state);  // the state that passes on
      backward.product(mamba.state);
      backward.product(mamba.state);
    }
  });
  const StepPlan plan = plan_of(workload);
  EXPECT_DOUBLE_EQ(flops_of(plan, OpKind::kMambaForward), forward.flops);
  EXPECT_DOUBLE_EQ(flops_of(plan, OpKind::kMambaBackward), backward.flops);
}

// The forward pass of one head: A, its inverse by substitution, W and U, then what reads and writes the state.
double delta_forward_flops(const workload::DeltaSpec& delta) {
  Count count;
  for_each_chunk(delta.chunk, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      for (std::int64_t j = first; j < i; ++j) {
        count.product(delta.key_dim);                               // A_ij = K_i K_j
        for (std::int64_t k = j + 1; k < i; ++k) count.product(1);  // of the inverse: A_ik T_kj
      }
      for (std::int64_t j = first; j <= i; ++j) {
        count.product(delta.key_dim);    // W_i += T_ij K_j
        count.product(delta.value_dim);  // U_i += T_ij V_j
        count.product(delta.key_dim);    // Q_i K_j
        count.product(delta.value_dim);  // o_i += the pair's weight times V'_j
      }
      for (std::int64_t v = 0; v < delta.value_dim; ++v) {
        count.product(delta.key_dim);  // W_i S
        count.product(delta.key_dim);  // S += K_i V'_i
        count.product(delta.key_dim);  // Q_i S
      }
    }
  });
  return count.flops;
}

double delta_backward_flops(const workload::DeltaSpec& delta) {
  Count count;
  for_each_chunk(delta.chunk, [&](std::int64_t first, std::int64_t end) {
    for (std::int64_t i = first; i < end; ++i) {
      for (std::int64_t j = first; j <= i; ++j) {
        for (int k = 0; k < 2; ++k) count.product(delta.key_dim);    // again: W_i and Q_i K_j
        count.product(delta.value_dim);                              // again: U_i
        for (int k = 0; k < 2; ++k) count.product(delta.key_dim);    // dQ_i and dK_j of the pair
        for (int k = 0; k < 2; ++k) count.product(delta.value_dim);  // of the pair's weight, and dV'_j
        for (int k = 0; k < 2; ++k) count.product(delta.key_dim);    // of the inverse, from W, and dK_j
        for (int k = 0; k < 2; ++k) count.product(delta.value_dim);  // of the inverse, from U, and dV_j
        // dA = T^T dT T^T: two products of triangles.
        for (std::int64_t k = j; k <= i; ++k) count.flops += 4.0;
      }
      for (std::int64_t j = first; j < i; ++j) {
        for (int k = 0; k < 2; ++k) count.product(delta.key_dim);  // dK_i and dK_j of A_ij
      }
      for (std::int64_t v = 0; v < delta.value_dim; ++v) {
        for (int part = 0; part < 2; ++part) count.product(delta.key_dim);  // again: W_i S, K_i V'_i
        for (int part = 0; part < 2; ++part) count.product(delta.key_dim);  // dQ_i and dS from do_i
        for (int part = 0; part < 4; ++part) count.product(delta.key_dim);  // dV'_i, dK_i, dW_i, dS
      }
    }
  });
  return count.flops;
}

TEST(Mixers, TheDeltaRuleHasTheFlopsOfItsLoops) {
  const workload::Workload workload = hybrid(delta_alone());
  const auto heads = static_cast<double>(workload.model.delta.value_heads);
  const StepPlan plan = plan_of(workload);
  EXPECT_DOUBLE_EQ(flops_of(plan, OpKind::kDeltaForward), heads * delta_forward_flops(workload.model.delta));
  EXPECT_DOUBLE_EQ(flops_of(plan, OpKind::kDeltaBackward), heads * delta_backward_flops(workload.model.delta));
}

TEST(Mixers, ScansAreLinearInTheBatchAndSplitByTensorRanks) {
  for (const auto& [layers, forward, backward] :
       {std::tuple(mamba_alone(), OpKind::kMambaForward, OpKind::kMambaBackward),
        std::tuple(delta_alone(), OpKind::kDeltaForward, OpKind::kDeltaBackward)}) {
    workload::Workload workload = hybrid(layers);
    workload.model.seq_len = 12;
    const StepPlan plan = plan_of(workload);
    for (const OpKind kind : {forward, backward}) {
      EXPECT_DOUBLE_EQ(flops_of(plan_of(workload, 1, false, "none", 3), kind), 3.0 * flops_of(plan, kind));
      EXPECT_DOUBLE_EQ(flops_of(plan_of(workload, 2, true), kind), 0.5 * flops_of(plan, kind));
    }
    EXPECT_DOUBLE_EQ(flops_of(plan_of(workload, 1, false, "full"), forward), 2.0 * flops_of(plan, forward));
  }
}

// Of one token and layer: matrices, and what convolutions, norms and heads have.
TEST(Mixers, APlanHasTheParametersAndTheProductsOfTheModel) {
  for (const workload::LayerCounts& layers :
       {workload::LayerCounts{.mamba = 2}, workload::LayerCounts{.delta = 2}, workload::LayerCounts{.mlp = 2},
        workload::LayerCounts{.attention_mlp = 1, .mamba_mlp = 2, .attention_experts = 1},
        workload::LayerCounts{.mamba = 2, .attention = 1, .experts = 2},
        workload::LayerCounts{.delta_mlp = 1, .delta_experts = 2, .attention_experts = 1}}) {
    for (const std::int64_t latent : {0, 12}) {
      workload::Workload workload = hybrid(layers);
      if (workload.model.has_experts()) workload.model.experts.latent = latent;
      const workload::ModelSpec& model = workload.model;
      const StepPlan plan = plan_of(workload);
      std::int64_t elems = 0;
      for (const schedule::ParameterTensor& tensor : plan.tensors) elems += tensor.elems;
      EXPECT_EQ(elems, parameter_count(model));
      double products = 0.0;
      for (const plan::Operation& operation : plan.operations)
        if (plan::is_matrix_product(operation.kind)) products += operation.flops;
      const auto states = static_cast<double>(model.layers_with(workload::Mixer::kMamba) * model.mamba.state_elems() +
                                              model.layers_with(workload::Mixer::kDelta) * model.delta.state_elems());
      const double attention = palm_attention_flops(model, 1) * (kTokens + 1.0) / (2.0 * kTokens);
      EXPECT_DOUBLE_EQ(products, model_flops(model, 1) - attention - 21.0 * kTokens * states);
    }
  }
}

// Bytes of a token and a layer: its input's norm, what the product made, the input of the product of the output, the
// layer's output, and what the kernels keep.
TEST(Mixers, KeepWhatTheirKernelsDo) {
  const auto kept = [](const workload::LayerCounts& one, const workload::LayerCounts& two) {
    return kept_bytes(plan_of(hybrid(two))) - kept_bytes(plan_of(hybrid(one)));
  };
  const std::int64_t ends = 2 * kHidden + 4 + 2 * kHidden;  // the norm's output and its number, the layer's output
  const workload::MambaSpec mamba = hybrid(mamba_alone()).model.mamba;
  const std::int64_t of_mamba = 2 * mamba.in_width() + 2 * mamba.inner() + 2 * 2 * mamba.inner();
  EXPECT_EQ(kept({.mamba = 1}, {.mamba = 2}), kTokens * (ends + of_mamba));
  const workload::DeltaSpec delta = hybrid(delta_alone()).model.delta;
  const std::int64_t of_rule = 2 * delta.value_heads * (2 * delta.key_dim + 2 * delta.value_dim + delta.chunk);
  EXPECT_EQ(kept({.delta = 1}, {.delta = 2}), kTokens * (ends + 2 * delta.in_width() + 2 * delta.values() + of_rule));
}

// Tensor ranks have equal parts of all that is split, and every rank the norm of a head.
TEST(Mixers, TensorRanksSplitHeads) {
  for (const workload::LayerCounts& layers : {mamba_alone(), delta_alone()}) {
    const workload::Workload workload = hybrid(layers);
    const auto elems = [&](std::int64_t ranks) {
      std::int64_t split = 0;
      std::int64_t whole = 0;
      const StepPlan plan = plan_of(workload, ranks);
      for (const schedule::ParameterTensor& tensor : plan.tensors)
        (tensor.split == schedule::Split::kNone ? whole : split) += tensor.elems;
      return std::pair(split, whole);
    };
    EXPECT_EQ(elems(1).first, 2 * elems(2).first);
    EXPECT_EQ(elems(1).second, elems(2).second);
    const std::int64_t of_heads = layers.delta > 0 ? workload.model.delta.value_dim : 0;
    EXPECT_EQ(elems(1).second, 2 * kHidden + of_heads);
  }
}

std::int64_t bytes_of(const StepPlan& plan, OpKind kind) {
  std::int64_t bytes = 0;
  for (const plan::Operation& operation : plan.operations)
    if (operation.kind == kind) bytes += operation.bytes_read + operation.bytes_written;
  return bytes;
}

/// Numbers that kernels read and write for a token: in bf16, and in fp32.
struct Numbers {
  std::int64_t narrow = 0, wide = 0;
  void add(std::int64_t more_narrow, std::int64_t more_wide = 0) {
    narrow += more_narrow;
    wide += more_wide;
  }
  std::int64_t bytes() const { return 2 * narrow + 4 * wide; }
};

// By kernel of mamba_ssm; in fp32 are states before they are passed on, and pairs of a chunk. 12 tokens are three
// chunks.
TEST(Mixers, MambasKernelsReadAndWriteTheirOperands) {
  workload::Workload workload = hybrid(mamba_alone());
  workload.model.seq_len = 12;
  const workload::MambaSpec& mamba = workload.model.mamba;
  const std::int64_t values = mamba.inner();
  const std::int64_t group = mamba.groups * mamba.state;
  const std::int64_t conv = mamba.conv_width();
  const std::int64_t states = mamba.state_elems() / mamba.chunk;
  const std::int64_t pairs = mamba.groups * mamba.chunk;
  Numbers forward;
  forward.add(2 * conv);
  forward.add(values + group, states);                           // chunk_state
  forward.add(states, states);                                   // state_passing
  forward.add(2 * group, pairs);                                 // bmm_chunk
  forward.add(2 * values + group + states + 2 * values, pairs);  // chunk_scan: with the gate, and two outputs
  forward.add(2 * values + mamba.heads);                         // norm; the time steps
  Numbers backward;
  backward.add(2 * conv);                                 // again, as the next three
  backward.add(values + group, states);                   // chunk_state
  backward.add(0, 2 * states);                            // state_passing
  backward.add(2 * group, pairs);                         // bmm_chunk
  backward.add(3 * values + 2 * values);                  // of the gate and of the scan's output
  backward.add(group + values, states);                   // of the states
  backward.add(2 * states, 2 * states);                   // state_passing, which reads both and writes both in bf16
  backward.add(3 * values + group + states, pairs);       // dx
  backward.add(values + states + group);                  // dB
  backward.add(values + states + group);                  // dC
  backward.add(2 * values, pairs);                        // d(C B^T)
  backward.add(4 * group, 2 * pairs);                     // its two products
  backward.add(2 * values, pairs);                        // decays
  backward.add(3 * conv + 3 * values + 2 * mamba.heads);  // convolution, norm, time steps
  const StepPlan plan = plan_of(workload);
  const std::int64_t small = mamba.small_params();
  EXPECT_EQ(bytes_of(plan, OpKind::kMambaForward), 12 * forward.bytes() + 2 * small);
  EXPECT_NEAR(static_cast<double>(bytes_of(plan, OpKind::kMambaBackward)),
              static_cast<double>(12 * backward.bytes() + 6 * small),
              0.02 * static_cast<double>(12 * backward.bytes()));
}

// Attention and MLPs of a hybrid may have adapters, and nothing else has.
TEST(Mixers, HaveNoAdapters) {
  workload::Workload workload = hybrid({.attention_mlp = 1, .mamba_mlp = 2, .delta = 1, .attention_experts = 1});
  workload.training.lora.rank = 4;
  workload.training.lora.targets.fill(true);
  const StepPlan plan = plan_of(workload);
  std::int64_t trained = 0;
  for (const schedule::ParameterTensor& tensor : plan.tensors) trained += tensor.trained ? tensor.elems : 0;
  EXPECT_EQ(trained, workload::adapter_parameter_count(workload));
  EXPECT_DOUBLE_EQ(flops_of(plan, OpKind::kMambaBackward),
                   flops_of(plan_of(hybrid({.mamba = 2})), OpKind::kMambaBackward));
}

// See check_plan_test.cpp for what the checker does not know.
TEST(Mixers, TheCheckerFindsNothingInRandomHybrids) {
  RandomHybrids draws(21);
  int checked = 0;
  for (int i = 0; i < sweep(300); ++i) {
    const PlanCase drawn = draws.next();
    if (drawn.workload.model.others != workload::OtherParameters{}) continue;
    const plan::PlanFindings findings = plan::check_plan(drawn.plan());
    EXPECT_TRUE(findings.empty()) << drawn.text() << "\n" << findings.front();
    ++checked;
  }
  EXPECT_GT(checked, sweep(100));
}

}  // namespace
}  // namespace krigtune::mixers_test
