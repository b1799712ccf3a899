// Parameters read from the default configurations of Hugging Face's families, compared with what PyTorch counts.
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <fstream>
#include <map>
#include <string>

#include "core/json.h"
#include "workload/model.h"

namespace krigtune::families_test {
namespace {

// Families with norms, biases or other small parts that no key says, each with what is special about it.
constexpr const char* kExact[] = {
    "gpt2",          // the plain one
    "llama",         // the plain one
    "qwen3",         // norms of queries and keys, by head
    "qwen3_moe",     // the same with experts
    "olmo2",         // norms of queries and keys over all heads, and norms after the branches
    "olmoe",         // the first of these with experts
    "gemma2",        // norms before and after the branches
    "gemma3_text",   // both kinds
    "glm4",          // norms around the branches, biases of queries, keys and values alone
    "cohere",        // one norm for both branches, without a bias
    "falcon",        // one norm for both branches, one key and value head
    "gptj",          // the same, and a bias of the head
    "codegen",       // the same; rotary positions beside n_positions
    "phimoe",        // layer norms beside rms_norm_eps
    "mpt",           // no biases at all
    "stablelm",      // layer norms are all that has biases
    "persimmon",     // layer norms of queries and keys
    "gpt_oss",       // attention sinks, and biases of the router
    "opt",           // two more positions
    "bloom",         // a norm of the embeddings
    "bitnet",        // norms within the branches
    "bert",          // the head of a masked language model
    "ernie4_5_moe",  // layers without experts, and biases of the routers
    "glm4_moe",      // heads that do not divide the width
    "llama4_text",   // a shared expert that no key says
    "deepseek_v2",   // latent attention with experts
    "deepseek_v3",   // the same with dense layers
    "deepseek_v32",  // the same with an index of the tokens to attend to
    "sarvam_mla",    // without a latent of the queries
    "minicpm3",      // latent attention with an MLP
    "youtu",         // the same, from a latent wider than queries need
    "olmo",          // norms without gains
    "qwen3_next",    // linear attention in most layers, and gates
    "nemotron_h",    // layers with one part alone: a state-space layer, attention, an MLP or experts
    "bamba",         // state-space layers with an MLP
    "bart",          // a decoder that attends to an encoder
    "whisper",       // the same without biases of keys
    // state-space layers with experts
    "granitemoehybrid",
};

TEST(Families, HaveTheParametersThatPyTorchCounts) {
  std::ifstream file(KRIGTUNE_ROOT "/experiments/data/hf_configs.jsonl");
  std::map<std::string, bool> is_exact;
  int exact = 0;
  for (std::string line; std::getline(file, line);) {
    const Json family = parse_json(line, "hf_configs.jsonl");
    const Json& config = family.at("config");
    Json model{{"hf_config", config}};
    const bool says_length = config.contains("max_position_embeddings") || config.contains("n_positions") ||
                             config.contains("max_target_positions");
    if (!says_length) model["seq_len"] = 2048;
    workload::Caveats caveats;
    std::int64_t counted = 0;
    try {
      counted = parameter_count(workload::read_model(model, "s.json", "", {}, &caveats));
    } catch (const std::exception&) {
      continue;  // encoder-decoders, and models without attention
    }
    const auto name = family.at("model_type").get<std::string>();
    is_exact[name] = counted == family.at("parameters").get<std::int64_t>();
    exact += is_exact[name] ? 1 : 0;
  }
  for (const char* name : kExact) EXPECT_TRUE(is_exact[name]) << name;
  EXPECT_GE(exact, 137);
}

}  // namespace
}  // namespace krigtune::families_test
