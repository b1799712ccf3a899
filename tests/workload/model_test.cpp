#include "workload/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/json.h"
#include "user_error.h"

namespace krigtune::model_test {

workload::ModelSpec read(const std::string& json) {
  return workload::read_model(parse_json(json, "s.json"), "s.json", "/workload/model");
}

std::string error_of(const std::string& json) {
  return user_error_of([&] { read(json); });
}

// Published sizes: the sums over the tensors of released checkpoints.
TEST(ParameterCount, IsThatOfTheReleasedCheckpoints) {
  const std::pair<const char*, std::int64_t> kPublished[] = {
      {"gpt2-124m", 124'439'808},    {"gpt2-350m", 354'823'168},      {"gpt2-774m", 774'030'080},
      {"gpt2-1.5b", 1'557'611'200},  {"llama-7b", 6'738'415'616},     {"llama-13b", 13'015'864'320},
      {"llama-2-7b", 6'738'415'616}, {"llama-2-13b", 13'015'864'320}, {"llama-2-70b", 68'976'648'192},
      {"llama-3-8b", 8'030'261'248}, {"llama-3-70b", 70'553'706'496},
  };
  for (const auto& [name, count] : kPublished)
    EXPECT_EQ(workload::parameter_count(workload::model_preset(name)), count) << name;
  EXPECT_EQ(std::size(kPublished), workload::model_preset_names().size());
}

// Tensor by tensor, as a checkpoint of a small GPT lists them.
TEST(ParameterCount, IsTheSumOverTheTensors) {
  const workload::ModelSpec model = read(R"({"layers": 3, "hidden": 8, "heads": 2, "vocab": 11, "seq_len": 5})");
  std::int64_t sum = 11 * 8 + 5 * 8;  // token and position tables
  for (int layer = 0; layer < 3; ++layer) {
    sum += 8 + 8;        // norm
    sum += 8 * 24 + 24;  // q, k, v
    sum += 8 * 8 + 8;    // output of attention
    sum += 8 + 8;        // norm
    sum += 8 * 32 + 32;  // up
    sum += 32 * 8 + 8;   // down
  }
  sum += 8 + 8;  // final norm; the head is the token table
  EXPECT_EQ(workload::parameter_count(model), sum);
}

TEST(ParameterCount, FollowsEveryChoice) {
  workload::ModelSpec model = read(R"({"layers": 2, "hidden": 8, "heads": 4, "vocab": 11, "seq_len": 5})");
  const std::int64_t plain = workload::parameter_count(model);
  workload::ModelSpec other = model;
  other.tied_embeddings = false;
  EXPECT_EQ(workload::parameter_count(other) - plain, 11 * 8);
  other = model;
  other.positions = workload::Positions::kRotary;
  EXPECT_EQ(workload::parameter_count(other) - plain, -5 * 8);
  other = model;
  other.gated_mlp = true;
  EXPECT_EQ(workload::parameter_count(other) - plain, 2 * (8 * 32 + 32));
  other = model;
  other.kv_heads = 1;  // k and v shrink from 8 to 2 rows each
  EXPECT_EQ(workload::parameter_count(other) - plain, -2 * 2 * (6 * 8 + 6));
}

// Norms tensor by tensor; heads of 2, queries of 8 and keys of 4.
TEST(ParameterCount, CountsTheNormsThatABlockHas) {
  workload::ModelSpec model =
      read(R"({"layers": 3, "hidden": 8, "heads": 4, "kv_heads": 2, "vocab": 11, "seq_len": 5, "norm": "rmsnorm"})");
  const auto more = [plain = workload::parameter_count(model)](const workload::ModelSpec& other) {
    return workload::parameter_count(other) - plain;
  };
  workload::ModelSpec other = model;
  other.norm_places = workload::NormPlaces::kPost;
  EXPECT_EQ(more(other), 0);
  other.norm_places = workload::NormPlaces::kSandwich;
  EXPECT_EQ(more(other), 3 * 2 * 8);
  other.norm_places = workload::NormPlaces::kShared;
  EXPECT_EQ(more(other), -3 * 8);
  other = model;
  other.qk_norm = workload::QkNorm::kHead;
  EXPECT_EQ(more(other), 3 * (2 + 2));
  other.qk_norm = workload::QkNorm::kFull;
  EXPECT_EQ(more(other), 3 * (8 + 4));
  other = model;
  other.others = {5, 100};
  EXPECT_EQ(more(other), 3 * 5 + 100);
}

// Latent attention matrix by matrix: 3 layers, 4 heads, queries of 2 + 4, values of 3, latents of 5 and 6.
TEST(ParameterCount, CountsTheMatricesOfLatents) {
  workload::ModelSpec model = read(
      R"({"layers": 3, "hidden": 8, "heads": 4, "vocab": 11, "seq_len": 5, "norm": "rmsnorm", "positions": "rotary"})");
  const std::int64_t plain = workload::parameter_count(model) - 3 * 4 * 8 * 8;
  model.latent = {5, 6, 2, 4, 3};
  const std::int64_t others = 8 * (6 + 4) + 6 + 6 * 4 * (2 + 3) + 4 * 3 * 8;
  EXPECT_EQ(workload::parameter_count(model), plain + 3 * (8 * 5 + 5 + 5 * 4 * 6 + others));
  EXPECT_EQ(model.query_width(), 4 * 6);
  EXPECT_EQ(model.output_width(), 4 * 3);
  model.qkv_bias = true;
  EXPECT_EQ(workload::parameter_count(model), plain + 3 * (8 * 5 + 5 + 5 * 4 * 6 + others + 5 + 6 + 4));
  model.qkv_bias = false;
  model.latent.q_rank = 0;
  EXPECT_EQ(workload::parameter_count(model), plain + 3 * (8 * 4 * 6 + others));
  model.norm_gain = false;
  EXPECT_EQ(workload::parameter_count(model), plain + 3 * (8 * 4 * 6 + others) - 7 * 8);
}

TEST(Model, ReadsAndChecksLatentAttention) {
  const std::string sizes = R"("layers": 2, "hidden": 64, "heads": 4, "vocab": 100, "seq_len": 16)";
  const std::string latents = R"("kv_rank": 32, "nope_dim": 16, "rope_dim": 8, "value_dim": 12)";
  const workload::ModelSpec model = read("{" + sizes + R"(, "latent_attention": {"q_rank": 24, )" + latents + "}}");
  EXPECT_EQ(model.latent, (workload::LatentSpec{24, 32, 16, 8, 12}));
  EXPECT_EQ(read(workload::to_json(model).dump()), model);
  EXPECT_EQ(read("{" + sizes + R"(, "latent_attention": {)" + latents + "}}").latent.q_rank, 0);
  EXPECT_FALSE(workload::to_json(read("{" + sizes + "}")).contains("latent_attention"));
  EXPECT_EQ(error_of("{" + sizes + R"(, "latent_attention": {"kv_rank": 32, "nope_dim": 16, "value_dim": 12}})"),
            "s.json: /workload/model/latent_attention: \"rope_dim\" is missing; add it, or leave the block out");
  EXPECT_EQ(error_of("{" + sizes + R"(, "kv_heads": 2, "latent_attention": {)" + latents + "}}"),
            "s.json: /workload/model/kv_heads: latent attention makes keys and values for every head; leave it out");
  EXPECT_EQ(error_of("{" + sizes + R"(, "qk_norm": "head", "latent_attention": {)" + latents + "}}"),
            "s.json: /workload/model/qk_norm: latent attention has norms of its latents instead; leave it out");
}

TEST(Model, KeepsItsNormsInWords) {
  const std::string sizes = R"("layers": 2, "hidden": 64, "heads": 4, "vocab": 100, "seq_len": 16)";
  const workload::ModelSpec model =
      read("{" + sizes +
           R"(, "norm_places": "sandwich", "qk_norm": "head", "norm_bias": false, "others": {"of_block": 3}})");
  EXPECT_EQ(model.norm_places, workload::NormPlaces::kSandwich);
  EXPECT_EQ(model.qk_norm, workload::QkNorm::kHead);
  EXPECT_FALSE(model.has_norm_bias());
  EXPECT_EQ(model.others, (workload::OtherParameters{3, 0}));
  EXPECT_EQ(read(workload::to_json(model).dump()), model);
  EXPECT_FALSE(workload::to_json(read("{" + sizes + "}")).contains("norm_places"));  // as most have it
  EXPECT_EQ(error_of("{" + sizes + R"(, "norm_places": "sandwhich"})"),
            "s.json: /workload/model/norm_places: unknown value 'sandwhich'; did you mean 'sandwich'?");
}

// Counts multiply-adds one matrix and one position at a time, with backward twice the forward.
double counted_flops(const workload::ModelSpec& m) {
  const double kv = static_cast<double>(m.hidden / m.heads * m.kv_heads);
  const auto h = static_cast<double>(m.hidden);
  const auto f = static_cast<double>(m.ffn_hidden);
  double forward = 0.0;
  for (std::int64_t position = 1; position <= m.seq_len; ++position) {
    for (std::int64_t layer = 0; layer < m.layers; ++layer) {
      forward += 2.0 * h * (h + 2.0 * kv) + 2.0 * h * h;         // projections
      forward += 2.0 * h * static_cast<double>(position) * 2.0;  // scores, and the weighted sum over the past
      forward += 2.0 * h * f * (m.gated_mlp ? 3.0 : 2.0);        // MLP
    }
    forward += 2.0 * h * static_cast<double>(m.vocab);  // head
  }
  return 3.0 * forward;
}

TEST(ModelFlops, AreTheCausalMatrixProductsForwardAndBackward) {
  for (const char* name : {"gpt2-124m", "llama-2-70b", "llama-3-8b"}) {
    const workload::ModelSpec model = workload::model_preset(name);
    EXPECT_NEAR(workload::model_flops(model, 3) / (3.0 * counted_flops(model)), 1.0, 1e-9) << name;
  }
}

// Narayanan et al. 2021, eq. 3 without recomputation: 72 B s L h^2 (1 + s / (6 h) + V / (12 L h)), full attention.
TEST(ModelFlops, DifferFromTheFullAttentionFormulaByTheUpperTriangle) {
  const workload::ModelSpec m = workload::model_preset("gpt2-1.5b");
  const auto s = static_cast<double>(m.seq_len), l = static_cast<double>(m.layers), h = static_cast<double>(m.hidden);
  const double full = 72.0 * s * l * h * h * (1.0 + s / (6.0 * h) + static_cast<double>(m.vocab) / (12.0 * l * h));
  const double upper_triangle = 12.0 * l * h * s * (s - 1.0) / 2.0;
  EXPECT_NEAR(workload::model_flops(m, 1) / (full - upper_triangle), 1.0, 1e-12);
}

TEST(Model, TakesTheDefaultsOfTheSessionFile) {
  const workload::ModelSpec model = read(R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 100, "seq_len": 16})");
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.ffn_hidden, 256);
  EXPECT_FALSE(model.gated_mlp);
  EXPECT_TRUE(model.tied_embeddings);
  EXPECT_EQ(model.positions, workload::Positions::kLearned);
  EXPECT_EQ(model.norm, workload::Norm::kLayerNorm);
}

TEST(Model, OfAPresetMayBeOverridden) {
  const workload::ModelSpec model = read(R"({"preset": "GPT2-XL", "seq_len": 512, "hidden": 800})");
  EXPECT_EQ(model.layers, 48);
  EXPECT_EQ(model.seq_len, 512);
  EXPECT_EQ(model.ffn_hidden, 3200) << "derived from the width that was given";
  EXPECT_EQ(read(R"({"preset": "llama-7b", "heads": 64})").ffn_hidden, 11008);
}

TEST(Model, SurvivesWritingAndReading) {
  for (const std::string& name : workload::model_preset_names()) {
    EXPECT_EQ(read(workload::to_json(workload::model_preset(name)).dump()), workload::model_preset(name)) << name;
  }
}

TEST(Model, IsRefusedInOneClearLine) {
  EXPECT_EQ(error_of(R"({"preset": "llama-7c"})"),
            "s.json: /workload/model/preset: unknown model preset 'llama-7c'; did you mean 'llama-7b'?");
  EXPECT_EQ(error_of(R"({"layers": 2, "hidden": 64, "heads": 4, "vocab": 100})"),
            "s.json: /workload/model/seq_len: is missing; add it, or name a \"preset\"");
  EXPECT_EQ(error_of(R"({"preset": "gpt2", "layers": 0})"),
            "s.json: /workload/model/layers: 0 is out of range; write an integer from 1 to 100000");
  EXPECT_EQ(
      error_of(R"({"preset": "gpt2", "heads": 7})"),
      "s.json: /workload/model/heads: hidden 768 is not a multiple of 7 heads; fix one of them, or give \"head_dim\"");
  EXPECT_EQ(error_of(R"({"preset": "gpt2", "kv_heads": 5})"),
            "s.json: /workload/model/kv_heads: 12 heads are not a multiple of 5 kv_heads; fix one of them");
  EXPECT_EQ(error_of(R"({"preset": "gpt2", "positions": "rotaty"})"),
            "s.json: /workload/model/positions: unknown value 'rotaty'; did you mean 'rotary'?");
  EXPECT_EQ(error_of(R"({"preset": "gpt2", "layer": 3})"),
            "s.json: /workload/model/layer: unknown key; did you mean 'layers'?");
}

// The released config.json of openai-community/gpt2, meta-llama/Llama-3.1-8B and mistralai/Mistral-7B-v0.1, without
// keys that do not affect the cost.
constexpr const char* kGpt2Config = R"({"model_type": "gpt2", "activation_function": "gelu_new", "attn_pdrop": 0.1,
  "embd_pdrop": 0.1, "resid_pdrop": 0.1, "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
  "n_positions": 1024, "vocab_size": 50257, "architectures": ["GPT2LMHeadModel"]})";
constexpr const char* kLlamaConfig = R"({"model_type": "llama", "attention_bias": false, "attention_dropout": 0.0,
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 131072,
  "mlp_bias": false, "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "rope_scaling": {"factor": 8.0}, "tie_word_embeddings": false, "vocab_size": 128256})";
constexpr const char* kMistralConfig = R"({"model_type": "mistral", "hidden_act": "silu", "hidden_size": 4096,
  "intermediate_size": 14336, "max_position_embeddings": 32768, "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000})";

std::string with_config(const std::string& config, const std::string& beside = "") {
  return R"({"hf_config": )" + config + beside + "}";
}

TEST(HfConfig, GivesThePublishedModels) {
  workload::ModelSpec gpt2 = workload::model_preset("gpt2-124m");
  gpt2.dropout = 0.1;
  EXPECT_EQ(read(with_config(kGpt2Config)), gpt2);
  EXPECT_EQ(read(with_config(kLlamaConfig, R"(, "seq_len": 8192)")), workload::model_preset("llama-3-8b"));
  EXPECT_EQ(read(with_config(kLlamaConfig)).seq_len, 131072);
  // 7,241,732,096 parameters, as in the released checkpoint.
  EXPECT_EQ(workload::parameter_count(read(with_config(kMistralConfig, R"(, "seq_len": 4096)"))), 7'241'732'096);
}

TEST(HfConfig, IsAFileBesideTheSession) {
  const std::filesystem::path dir = testing::TempDir();
  std::ofstream(dir / "llama.json") << kLlamaConfig;
  const Json json = parse_json(R"({"hf_config": "llama.json", "seq_len": 8192, "layers": 2})", "s.json");
  workload::ModelSpec expected = workload::model_preset("llama-3-8b");
  expected.layers = 2;
  EXPECT_EQ(workload::read_model(json, "s.json", "/workload/model", dir), expected);
  EXPECT_NE(user_error_of([&] { workload::read_model(json, "s.json", "/workload/model", dir / "nowhere"); }), "");
}

TEST(HfConfig, IsRefusedInOneClearLineWhereItCostsSomethingElse) {
  EXPECT_EQ(error_of(with_config(R"({"model_type": "mixtral"})")),
            "s.json: /workload/model/hf_config/model_type: 'mixtral' is not supported; gpt2, llama and mistral are; "
            "a dense model of another type is described by its sizes");
  EXPECT_EQ(
      error_of(with_config("{}")),
      "s.json: /workload/model/hf_config/model_type: is missing; gpt2, llama and mistral are; a dense model of another "
      "type is described by its sizes");
  EXPECT_EQ(error_of(with_config(kMistralConfig)),
            "s.json: /workload/model/hf_config/sliding_window: attention over a window (4096 of 32768 tokens) is not "
            "supported; write \"seq_len\": 4096 or less beside \"hf_config\"");
  EXPECT_EQ(error_of(with_config(kGpt2Config, R"(, "preset": "gpt2")")),
            "s.json: /workload/model/hf_config: there is a \"preset\" too; remove one of them");
  const auto changed = [](std::string config, const std::string& from, const std::string& to) {
    return error_of(with_config(config.replace(config.find(from), from.size(), to)));
  };
  EXPECT_NE(changed(kLlamaConfig, R"("attention_bias": false)", R"("attention_bias": true)"), "");
  EXPECT_NE(changed(kLlamaConfig, "silu", "gelu"), "");
  EXPECT_NE(changed(kLlamaConfig, R"("vocab_size": 128256)", R"("head_dim": 64, "vocab_size": 128256)"), "");
  EXPECT_NE(changed(kGpt2Config, R"("resid_pdrop": 0.1)", R"("resid_pdrop": 0.2)"), "");
  EXPECT_NE(changed(kGpt2Config, R"("n_layer": 12,)", ""), "");
  EXPECT_EQ(changed(kGpt2Config, R"("n_layer": 12,)", R"("n_layer": 12, "n_inner": -4,)"),
            "s.json: /workload/model/hf_config/n_inner: must be at least 1; leave it out for four times n_embd");
}

}  // namespace krigtune::model_test
