// Bytes of activations compared with measured and published ones. Those of a layer are the difference between plans of
// two layers and of one.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "core/csv.h"
#include "core/files.h"
#include "plan/plan_fixtures.h"

namespace krigtune::activations_test {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

workload::Workload gpt(std::int64_t hidden, std::int64_t heads, std::int64_t seq_len, double dropout) {
  workload::Workload workload;
  workload.model = {.hidden = hidden, .heads = heads, .kv_heads = heads, .ffn_hidden = 4 * hidden, .vocab = 51200};
  workload.model.seq_len = seq_len;
  workload.model.dropout = dropout;
  workload.precision = workload::Precision::kBf16;
  return workload;
}

workload::Workload llama(const char* preset, std::int64_t seq_len) {
  workload::Workload workload;
  workload.model = workload::model_preset(preset);
  workload.model.seq_len = seq_len;
  workload.precision = workload::Precision::kBf16;
  return workload;
}

space::Configuration run(std::int64_t micro_batch, std::int64_t tensor_parallel, bool sequence_parallel,
                         const char* checkpointing) {
  return {{"micro_batch", micro_batch},
          {"tensor_parallel", tensor_parallel},
          {"sequence_parallel", sequence_parallel},
          {"activation_checkpointing", std::string(checkpointing)}};
}

plan::StepPlan plan_of(workload::Workload workload, std::int64_t layers, const space::Configuration& configuration) {
  workload.model.layers = layers;
  return plan::build_plan(workload, cpu_ranks(configuration.integer("tensor_parallel", 1)), configuration);
}

/// Returns the bytes that are kept in buffers with these names; if there are no names, in all buffers.
double kept_bytes(const plan::StepPlan& plan, const std::set<std::string>& names) {
  double bytes = 0.0;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.term != schedule::Term::kActivations || (!names.empty() && names.count(buffer.name) == 0)) continue;
    bytes += static_cast<double>(buffer.bytes());
  }
  return bytes;
}

double layer_bytes(const workload::Workload& workload, const space::Configuration& configuration,
                   const std::set<std::string>& names = {}) {
  return kept_bytes(plan_of(workload, 2, configuration), names) -
         kept_bytes(plan_of(workload, 1, configuration), names);
}

/// A row of act_bytes_measured.csv: an A100's memory profile of two layers minus that of one.
struct Row {
  std::string family, profile, flags;
  std::int64_t hidden, heads, seq_len, tensor_parallel, micro_batch;
  double measured_mib;

  std::int64_t elems() const { return micro_batch * seq_len * hidden; }
  double measured() const { return measured_mib * kGib / 1024.0 / static_cast<double>(elems()); }

  bool has(const char* flag) const {
    return ("_" + flags + "_").find(std::string("_") + flag + "_") != std::string::npos;
  }
  bool profiled(const char* part) const { return profile.find(part) != std::string::npos; }
  bool of_llama() const { return family.starts_with("llama") || profiled("llama"); }
};

std::vector<Row> measured_rows() {
  const std::string path = std::string(KRIGTUNE_EXPERIMENTS_DATA) + "/act_bytes_measured.csv";
  const CsvTable table = parse_csv(read_text(path), path);
  std::vector<Row> rows;
  for (const auto& fields : table.rows) {
    const auto text = [&](const char* column) { return fields.at(static_cast<std::size_t>(table.column(column))); };
    const auto integer = [&](const char* column) { return static_cast<std::int64_t>(std::stod(text(column))); };
    rows.push_back({text("family"), text("profile"), text("flags"), integer("hidden"), integer("heads"),
                    integer("seq_len"), integer("tp"), integer("micro_batch"),
                    std::stod(text("act_MiB_per_layer_measured"))});
  }
  return rows;
}

/// Rows of implementations that keep something else, as these data show: heads of width 50 are padded, a checkpointed
/// variant keeps half a state more, and Hugging Face's RMS norm keeps copies in fp32.
bool is_named_exception(const Row& row) {
  const bool padded_heads = row.hidden / row.heads == 50;
  const bool checkpointed_variant = !row.of_llama() && row.has("c") && row.has("sp");
  const bool fp32_norm = row.family == "llama_hf" && row.profiled("hidden4096") && row.has("sp") && !row.has("c");
  return padded_heads || checkpointed_variant || fp32_norm;
}

/// Returns the additional bytes that those implementations keep per token and element: silu(gate) if SwiGLU is not
/// fused, and with sequence parallelism some of them 2 h / t in attention.
double kept_besides(const Row& row, const workload::ModelSpec& model) {
  if (row.has("c")) return 0.0;
  const auto t = static_cast<double>(row.tensor_parallel);
  const bool unfused = row.of_llama() && row.profiled("hidden4096");
  const bool with_llama_configs = row.profiled("llama") && !row.profiled("mlp");
  const bool more = row.tensor_parallel > 1 && row.has("sp") &&
                    (with_llama_configs || (row.family == "gpt_hf" && row.profiled("hidden4096")));
  const double silu = 2.0 * static_cast<double>(model.ffn_hidden) / static_cast<double>(model.hidden);
  return (unfused ? silu / t : 0.0) + (more ? 2.0 / t : 0.0);
}

std::set<std::string> buffers_of(const Row& row) {
  if (row.has("c")) return {};
  if (row.profiled("attention")) return {"block output", "norm1", "norm1 stats", "qkv", "attention", "logsumexp"};
  if (row.profiled("mlp")) return {"middle", "norm2", "norm2 stats", "up", "activated"};
  return {};
}

TEST(ActivationBytes, AreThoseMeasuredOnA100s) {
  const std::vector<Row> rows = measured_rows();
  ASSERT_EQ(rows.size(), 128U);
  int reproduced = 0;
  for (const Row& row : rows) {
    if (is_named_exception(row)) continue;
    const workload::Workload workload =
        row.of_llama() ? llama("llama-7b", row.seq_len) : gpt(row.hidden, row.heads, row.seq_len, 0.1);
    ASSERT_EQ(workload.model.hidden, row.hidden);
    const space::Configuration configuration =
        run(row.micro_batch, row.tensor_parallel, row.has("sp"), row.has("c") ? "full" : "none");
    const double bytes = layer_bytes(workload, configuration, buffers_of(row)) / static_cast<double>(row.elems());
    // 1 %: allocators round, and the profiles' own figures vary as much.
    EXPECT_LE(std::abs((bytes + kept_besides(row, workload.model)) / row.measured() - 1.0), 0.01)
        << row.family << " " << row.profile << " " << row.flags << " t = " << row.tensor_parallel << ": " << bytes;
    ++reproduced;
  }
  EXPECT_EQ(reproduced, 103);
}

struct PaperModel {
  const char* name;
  std::int64_t hidden, heads, layers, stages,
      interleave;                           ///< of its pipeline, which belongs to the paper and is not planned
  double none_gib, sequence_selective_gib;  ///< figure 1: activations of the first stage
  double sequence, selective, sequence_selective, full;  ///< figure 7: % of tensor parallelism alone
};
// Korthikanti et al. 2022 (arXiv:2205.05198), figures 1 and 7, as encoded in calculon's validation.py (Apache-2.0):
// tensor parallelism 8, sequences of 2048, micro-batch 1, 16 bit, dropout, eager attention.
constexpr PaperModel kPaperModels[] = {
    {"175B", 12288, 96, 96, 8, 3, 66.84375, 12.3515625, 62.04, 56.53, 18.49, 8.71},
    {"530B", 20480, 128, 105, 35, 3, 114.0234375, 23.076171875, 58.31, 62.04, 20.27, 9.42},
    {"1T", 25600, 160, 128, 64, 1, 131.25, 26.5625, 58.31, 62.04, 20.27, 9.42},
};

// In addition to the paper's tensors, a plan keeps the log-sum-exp (4 a) and the norms' statistics (16 bytes per
// token), which is less than 0.1 % here. The paper's percentages were read off its bars, to about 1 %.
TEST(ActivationBytes, AreThoseOfThePaperOnRecomputation) {
  for (const PaperModel& paper : kPaperModels) {
    workload::Workload workload = gpt(paper.hidden, paper.heads, 2048, 0.1);
    workload.model.attention = workload::Attention::kEager;
    const auto bytes = [&](bool sequence_parallel, const char* checkpointing) {
      return layer_bytes(workload, run(1, 8, sequence_parallel, checkpointing));
    };
    const double none = bytes(false, "none");
    const auto expect_percent = [&](double part, double percent, double tolerance) {
      EXPECT_LE(std::abs(100.0 * part / none - percent), tolerance * percent) << paper.name << " " << percent;
    };
    expect_percent(bytes(true, "none"), paper.sequence, 0.005);
    expect_percent(bytes(false, "selective"), paper.selective, 0.005);
    expect_percent(bytes(true, "selective"), paper.sequence_selective, 0.005);
    expect_percent(bytes(false, "full"), paper.full, 0.012);
    // 1F1B: the first stage has the activations of as many micro-steps as make up all layers, plus those of the
    // interleaving.
    const auto p = static_cast<double>(paper.stages);
    const double held = paper.interleave == 1 ? 1.0 : 1.0 + (p - 1.0) / (p * static_cast<double>(paper.interleave));
    const double layers = static_cast<double>(paper.layers) * held / kGib;
    EXPECT_LE(std::abs(layers * none / paper.none_gib - 1.0), 0.001) << paper.name;
    EXPECT_LE(std::abs(layers * bytes(true, "selective") / paper.sequence_selective_gib - 1.0), 0.005) << paper.name;
  }
}

// Llama-3.1-8B at 32768 tokens (S. Bekman, "Machine Learning Engineering Open Book", performance/README.md): a hidden
// state of 0.25 GiB, 8 GiB of checkpoints, 15.7 GiB of logits in fp32.
TEST(ActivationBytes, AreThoseOfALongSequence) {
  const workload::Workload workload = llama("llama-3-8b", 32768);
  EXPECT_DOUBLE_EQ(layer_bytes(workload, run(1, 1, false, "full")), 0.25 * kGib);
  const plan::StepPlan plan = plan_of(workload, 32, run(1, 1, false, "full"));
  // The embedding, 32 outputs (the last is the final norm's input), and the final norm with one number per token.
  const double final_norm = 0.25 * kGib + 4.0 * 32768.0;
  EXPECT_DOUBLE_EQ(kept_bytes(plan, {}) - final_norm, (8.0 + 0.25) * kGib);
  workload::Workload in_fp32 = workload;
  in_fp32.precision = workload::Precision::kFp32;
  double logits = 0.0;
  for (const plan::Buffer& buffer : plan_of(in_fp32, 1, run(1, 1, false, "full")).buffers) {
    if (buffer.term == schedule::Term::kLogits) logits += static_cast<double>(buffer.bytes());
  }
  EXPECT_LE(std::abs(logits / kGib - 15.7), 0.05);
}

// GPT-2 1.5B, 32 sequences of 1024: with full checkpointing the inputs of 48 layers and one layer are alive, which
// needs 34 s b h + 5 a s^2 b bytes as in the paper on recomputation: 11.0 GB (the ZeRO paper, section 3.2, says "about
// 8").
TEST(ActivationBytes, WithCheckpointsAreTheInputsAndOneLayer) {
  workload::Workload workload = gpt(1600, 25, 1024, 0.1);
  workload.model.attention = workload::Attention::kEager;
  const double layer = layer_bytes(workload, run(32, 1, false, "none"));
  const double inputs = 48.0 * layer_bytes(workload, run(32, 1, false, "full"));
  EXPECT_LE(std::abs((inputs + layer) / 11.01005e9 - 1.0), 0.002);
  // When the plan recomputes a layer, it needs a layer's memory in addition to the inputs.
  const plan::MemoryReport deep = plan::explain(plan_of(workload, 4, run(32, 1, false, "full")));
  const double workspace = static_cast<double>(deep.term_bytes[static_cast<std::size_t>(schedule::Term::kWorkspace)]);
  EXPECT_GE(workspace, layer);
}

// Groups of k layers keep one input per group instead of one per layer.
TEST(ActivationBytes, WithSparserCheckpointsAreFewer) {
  const workload::Workload workload = gpt(1024, 16, 512, 0.0);
  const auto kept = [&](std::int64_t every) {
    space::Configuration configuration = run(2, 1, false, "full");
    configuration.set("activation_checkpointing_layers", every);
    return kept_bytes(plan_of(workload, 12, configuration), {});
  };
  const double input = layer_bytes(workload, run(2, 1, false, "full"));
  EXPECT_DOUBLE_EQ(kept(1) - kept(2), 6.0 * input);
  EXPECT_DOUBLE_EQ(kept(1) - kept(4), 9.0 * input);
  EXPECT_DOUBLE_EQ(kept(1) - kept(5), 9.0 * input);  // groups of 5, 5 and 2
}

// llm.c's recompute = 2: of 32 s b h bytes (no dropout), the outputs of the two norms and of GELU are recomputed.
TEST(ActivationBytes, OfSelectiveCheckpointingWithFlashAttentionAreThoseOfLlmC) {
  const workload::Workload workload = gpt(1024, 16, 512, 0.0);
  const double elems = 2.0 * 512.0 * 1024.0;
  const double saved =
      layer_bytes(workload, run(2, 1, false, "none")) - layer_bytes(workload, run(2, 1, false, "selective"));
  EXPECT_DOUBLE_EQ(saved, (32.0 - 20.0) * elems);
}

}  // namespace krigtune::activations_test
