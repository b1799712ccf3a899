#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace krigtune::workload {

enum class Positions { kLearned, kRotary };
enum class Norm { kLayerNorm, kRmsNorm };
/// Flash attention keeps the log-sum-exp of its scores (Dao et al. 2022), eager attention all probabilities.
enum class Attention { kFlash, kEager };

/// Sizes of a decoder-only transformer. Defaults as in the session file: 0 means "derived" only before `resolve`.
struct ModelSpec {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;    ///< default: heads
  std::int64_t ffn_hidden = 0;  ///< default: 4 hidden
  std::int64_t vocab = 0;
  std::int64_t seq_len = 0;
  bool gated_mlp = false;
  bool tied_embeddings = true;
  Positions positions = Positions::kLearned;
  Norm norm = Norm::kLayerNorm;
  Attention attention = Attention::kFlash;
  double dropout = 0.0;  ///< probability: of the embedding, both branches of a block, and attention's probabilities

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Exact number of trainable parameters (elements). Layer-norm models carry biases in their linear layers (GPT-2),
/// RMS-norm models do not (Llama).
std::int64_t parameter_count(const ModelSpec& model);

/// Model FLOPs of one optimizer step over `sequences` sequences, forward and backward, causal-exact, embedding look-ups
/// free: per token 6 P_mat + 12 L s h c with c = (s + 1) / (2 s), P_mat the matrix parameters with the head
/// (Narayanan et al. 2021, eq. 3, with the causal half counted).
double model_flops(const ModelSpec& model, std::int64_t sequences);

/// Likewise with c = 1, as if every token met every other one: the convention of PaLM, Megatron and Korthikanti et al.
double palm_flops(const ModelSpec& model, std::int64_t sequences);

/// What of it is attention's core, 12 L s h a token: what the parameters' share, 6 P_mat a token, leaves out.
double palm_attention_flops(const ModelSpec& model, std::int64_t sequences);
/// What the forward pass of all blocks computes, attention's core counted as in palm_flops: what full recomputation
/// computes once more. The head is not recomputed.
double forward_block_flops(const ModelSpec& model, std::int64_t sequences);

/// Sizes of a published model, e.g. "gpt2-124m", "llama-7b". Throws UserError with the nearest name.
ModelSpec model_preset(const std::string& name);
std::vector<std::string> model_preset_names();

/// {"layers": ...}, {"preset": name, overrides...} or {"hf_config": path or object, overrides...}; paths are relative
/// to `base_dir`. Throws UserError with the JSON pointer.
ModelSpec read_model(const nlohmann::ordered_json& json, const std::string& source, const std::string& pointer,
                     const std::filesystem::path& base_dir = {});
nlohmann::ordered_json to_json(const ModelSpec& model);
nlohmann::ordered_json model_schema();  ///< the block as a JSON Schema

}  // namespace krigtune::workload
