// The FLOPs of one micro-step and the bytes sent in the tensor group, in closed form.
#include <gtest/gtest.h>

#include <cmath>

#include "plan/build_plan.h"
#include "plan/op_traits.h"
#include "plan/plan_fixtures.h"

namespace krigtune::transformer_step_test {

// Sizes that 2 and 4 ranks divide, including the vocabulary.
workload::Workload gpt() {
  workload::Workload workload = small_workload();
  workload.model.vocab = 48;
  workload.precision = workload::Precision::kBf16;
  return workload;
}

workload::Workload llama() {
  workload::Workload workload = gpt();
  workload.model.ffn_hidden = 96;
  workload.model.gated_mlp = true;
  workload.model.tied_embeddings = false;
  workload.model.positions = workload::Positions::kRotary;
  workload.model.norm = workload::Norm::kRmsNorm;
  return workload;
}

space::Configuration step(std::int64_t tensor_parallel, bool sequence_parallel, const char* checkpointing,
                          std::int64_t layers = 1) {
  return {{"micro_batch", std::int64_t{2}},
          {"gradient_accumulation_steps", std::int64_t{3}},
          {"tensor_parallel", tensor_parallel},
          {"sequence_parallel", sequence_parallel},
          {"activation_checkpointing", std::string(checkpointing)},
          {"activation_checkpointing_layers", layers}};
}

/// Returns the bytes that the model itself sends in the tensor group.
plan::WireBytes tensor_bytes(const plan::StepPlan& plan) {
  plan::WireBytes sent;
  for (const plan::Operation& operation : plan.operations) {
    if (operation.group != schedule::Group::kTensor || operation.stream != schedule::Stream::kCompute) continue;
    if (operation.kind == schedule::OpKind::kAllReduce || operation.kind == schedule::OpKind::kAllReduceMax) {
      sent.all_reduce += operation.wire_bytes;
    }
    if (operation.kind == schedule::OpKind::kReduceScatter) sent.reduce_scatter += operation.wire_bytes;
    if (operation.kind == schedule::OpKind::kAllGather) sent.all_gather += operation.wire_bytes;
  }
  return sent;
}

/// One pass of the residual stream over the wire, (t - 1) / t * 2 s b h bytes in 16 bits, and the loss's three
/// all-reduces of one fp32 number per token.
struct Passes {
  std::int64_t stream_bytes, loss_bytes;
  Passes(const plan::StepPlan& plan, std::int64_t hidden) {
    const std::int64_t t = plan.tensor_ranks;
    const std::int64_t tokens = plan.micro_batch * plan.seq_len;
    stream_bytes = 2 * tokens * hidden * (t - 1) / t;
    loss_bytes = 3 * 2 * 4 * tokens * (t - 1) / t;
  }
};

// Shoeybi et al. 2019: a layer all-reduces twice in forward and twice in backward, 16 (t - 1) / t s b h bytes, and its
// forward once more under full checkpointing. The embedding all-reduces once in forward, the head's input once in
// backward.
TEST(TensorParallelism, SendsTheBytesOfMegatron) {
  for (const workload::Workload& workload : {gpt(), llama()}) {
    for (const std::int64_t t : {2, 4}) {
      for (const char* kind : {"none", "selective", "full"}) {
        for (const std::int64_t layers : {1, 2}) {
          const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(4), step(t, false, kind, layers));
          const Passes pass(plan, workload.model.hidden);
          const std::int64_t a_layer = std::string(kind) == "full" ? 6 : 4;
          const plan::WireBytes sent = tensor_bytes(plan);
          const std::int64_t all_reduces = a_layer * workload.model.layers + 2;
          EXPECT_EQ(sent.all_reduce, 3 * (all_reduces * 2 * pass.stream_bytes + pass.loss_bytes)) << t << kind;
          EXPECT_EQ(sent.reduce_scatter, 0);
          EXPECT_EQ(sent.all_gather, 0);
        }
      }
    }
  }
}

// Korthikanti et al. 2022: each all-reduce becomes a reduce-scatter and an all-gather, with the same bytes. A layer
// also gathers the inputs of its two column-parallel products once more for the gradients of their weights, because
// only a part is kept. The embedding is reduce-scattered and its gradient gathered; the head's input is gathered and
// its gradient reduce-scattered.
TEST(SequenceParallelism, SendsTheSameBytesAndGathersTwoInputsOfALayerAgain) {
  for (const workload::Workload& workload : {gpt(), llama()}) {
    for (const std::int64_t t : {2, 4}) {
      for (const char* kind : {"none", "selective", "full"}) {
        const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(4), step(t, true, kind, 2));
        const Passes pass(plan, workload.model.hidden);
        const std::int64_t a_layer = std::string(kind) == "full" ? 6 : 4;
        const std::int64_t exchanges = a_layer * workload.model.layers + 2;
        const plan::WireBytes sent = tensor_bytes(plan);
        EXPECT_EQ(sent.all_reduce, 3 * pass.loss_bytes) << t << kind;
        EXPECT_EQ(sent.reduce_scatter, 3 * exchanges * pass.stream_bytes) << t << kind;
        EXPECT_EQ(sent.all_gather, 3 * (exchanges + 2 * workload.model.layers) * pass.stream_bytes) << t << kind;
      }
    }
  }
}

TEST(TensorParallelism, IsAbsentOnOneRank) {
  const plan::StepPlan plan = plan::build_plan(gpt(), cpu_ranks(2), step(1, true, "none"));
  for (const plan::Operation& operation : plan.operations) EXPECT_EQ(operation.group, schedule::Group::kData);
}

// Returns the FLOPs of all ranks in matrix products and attention, including recomputation.
double samples_flops(const plan::StepPlan& plan) {
  double flops = 0.0;
  for (const plan::Operation& operation : plan.operations) {
    if (plan::is_product(operation.kind)) flops += operation.flops;
  }
  return flops * static_cast<double>(plan.world());
}

// Eager attention keeps its probabilities, so the hardware computes exactly what the model needs, on any number of
// ranks.
TEST(HardwareFlops, AreTheModelsWhereNothingIsComputedAgain) {
  for (workload::Workload workload : {gpt(), llama()}) {
    workload.model.attention = workload::Attention::kEager;
    for (const std::int64_t t : {1, 2, 4}) {
      const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(4), step(t, t == 4, "none"));
      EXPECT_DOUBLE_EQ(samples_flops(plan), workload::model_flops(workload.model, plan.samples())) << t;
    }
  }
}

// The recomputed FLOPs of a layer per token: flash attention's scores in backward, 2 s h c; eager attention's core, 4 s
// h c; full checkpointing's forward, 24 h^2 + 4 s h c (h^2 as in a GPT with f = 4 h).
TEST(HardwareFlops, CountWhatIsComputedAgain) {
  workload::Workload workload = gpt();
  const workload::ModelSpec& model = workload.model;
  const auto h = static_cast<double>(model.hidden);
  const double causal_seq = (static_cast<double>(model.seq_len) + 1.0) / 2.0;
  const auto again = [&](workload::Attention attention, const char* checkpointing, std::int64_t layers) {
    workload.model.attention = attention;
    const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(2), step(2, false, checkpointing, layers));
    const double tokens = static_cast<double>(plan.samples() * model.seq_len * model.layers);
    return (samples_flops(plan) - workload::model_flops(model, plan.samples())) / tokens;
  };
  const double scores = 2.0 * h * causal_seq;
  const double forward = 24.0 * h * h + 2.0 * scores;
  EXPECT_DOUBLE_EQ(again(workload::Attention::kFlash, "none", 1), scores);
  EXPECT_DOUBLE_EQ(again(workload::Attention::kFlash, "selective", 1), scores)
      << "norms and GELU are no matrix products";
  EXPECT_DOUBLE_EQ(again(workload::Attention::kFlash, "full", 1), scores + forward);
  EXPECT_DOUBLE_EQ(again(workload::Attention::kFlash, "full", 2), scores + forward);
  EXPECT_DOUBLE_EQ(again(workload::Attention::kEager, "selective", 1), 2.0 * scores);
  EXPECT_DOUBLE_EQ(again(workload::Attention::kEager, "full", 1), forward);
}

// Korthikanti et al. 2022, appendix A: 72 B L s h^2 (1 + s / (6 h) + V / (12 h L)).
TEST(PalmFlops, AreThoseOfThePaperOnRecomputation) {
  const workload::ModelSpec m = workload::model_preset("gpt2-1.5b");
  const auto s = static_cast<double>(m.seq_len), l = static_cast<double>(m.layers), h = static_cast<double>(m.hidden);
  const double v = static_cast<double>(m.vocab);
  const double expected = 72.0 * 5.0 * l * s * h * h * (1.0 + s / (6.0 * h) + v / (12.0 * h * l));
  EXPECT_NEAR(workload::palm_flops(m, 5) / expected, 1.0, 1e-12);
}

// Table 5 of the same paper: model FLOPs utilization of A100s (312 TFLOP/s) at the published iteration times.
TEST(PalmFlops, GiveThePublishedUtilisations) {
  struct Row {
    std::int64_t layers, hidden, heads, batch;
    double gpus, iteration_s, utilisation;
  };
  for (const Row& row : {Row{96, 12288, 96, 64, 64, 13.75, 0.514}, Row{105, 20480, 128, 280, 280, 37.83, 0.560},
                         Row{128, 25600, 160, 512, 512, 71.49, 0.563}}) {
    workload::ModelSpec model = gpt().model;
    model.layers = row.layers;
    model.hidden = row.hidden;
    model.ffn_hidden = 4 * row.hidden;
    model.heads = model.kv_heads = row.heads;
    model.vocab = 51200;
    model.seq_len = 2048;
    const double flops_per_s = workload::palm_flops(model, row.batch) / row.iteration_s / row.gpus;
    EXPECT_LE(std::abs(flops_per_s / 312e12 - row.utilisation), 0.001) << row.hidden;
  }
}

TEST(ParameterTable, SplitsTensorsOverTheRanksAndKeepsTheirSum) {
  for (workload::Workload workload : {gpt(), llama()}) {
    workload.model.vocab = 50;  // 13 rows on each of 4 ranks, of which 2 are padding
    for (const std::int64_t t : {1, 2, 4}) {
      const plan::StepPlan plan = plan::build_plan(workload, cpu_ranks(4), step(t, false, "none"));
      std::int64_t held = 0;
      for (const schedule::ParameterTensor& tensor : plan.tensors) {
        for (std::int64_t rank = 0; rank < t; ++rank) {
          for (std::int64_t i = 0; i < tensor.elems; ++i) {
            const bool counts = tensor.split != schedule::Split::kNone || rank == 0;
            held += counts && schedule::whole_element(tensor, rank, t, i) >= 0 ? 1 : 0;
          }
        }
        // Each data rank's shard begins at a multiple of 64 bytes, with 16-bit numbers.
        EXPECT_EQ(tensor.padded_elems % (plan.ranks * schedule::kAlignmentBytes / 2), 0) << tensor.name;
      }
      EXPECT_EQ(held, workload::parameter_count(workload.model)) << t;
    }
  }
}

}  // namespace krigtune::transformer_step_test
