// The blocks "workload", "cluster" and "memory", as workload/*.cpp read them.
#include "krigtune/cost/framework.h"
#include "krigtune/workload/workload.h"
#include "schema_blocks.h"
#include "schema_words.h"

namespace krigtune::schema {
namespace {

Json size(const char* meaning) { return at_least(integer(meaning), 1); }

Json model_block() {
  return block(
      "Sizes of a decoder-only transformer; with a preset, only what differs from it",
      {{"preset", word("a published model", model_preset_names())},
       {"layers", size("transformer blocks")},
       {"hidden", size("width of the model, a multiple of heads")},
       {"heads", size("attention heads")},
       {"kv_heads", size("key and value heads, a divisor of heads (default: heads)")},
       {"ffn_hidden", size("width of the MLP (default: 4 hidden)")},
       {"vocab", size("tokens of the vocabulary")},
       {"seq_len", size("tokens of a sequence")},
       {"gated_mlp", with_default(boolean("an MLP with a gate, as Llama's"), false)},
       {"tied_embeddings", with_default(boolean("the head is the token table"), true)},
       {"positions", with_default(word("position embeddings", {"learned", "rotary"}), "learned")},
       {"norm",
        with_default(word("normalisation; rmsnorm goes without biases", {"layernorm", "rmsnorm"}), "layernorm")},
       {"attention",
        with_default(word("flash keeps the log-sum-exp of its scores, eager all probabilities", {"flash", "eager"}),
                     "flash")},
       {"dropout", with_default(below(at_least(number("probability"), 0), 1), 0.0)},
       {"hf_config", either("config.json of a gpt2, llama or mistral model of Hugging Face transformers: the file, "
                            "relative to this one, or its contents",
                            {Json{{"type", "string"}}, Json{{"type", "object"}}})}});
}

Json network() {
  return either(
      "imitates a network between CPU ranks: each collective is held for latency + bytes / bandwidth; with nodes, for "
      "what a ring over them takes",
      {word("a known network (upper and lower case are alike)", network_names()),
       block("A network by its numbers", {{"latency_us", at_least(number("microseconds a collective"), 0), true},
                                          {"bytes_per_s", above(number("bytes a second"), 0), true}}),
       block("Links within nodes and between them", {{"intra", word("within a node", network_names()), true},
                                                     {"inter", word("between nodes", network_names()), true}})});
}

}  // namespace

Json workload_block() {
  return block(
      "What is trained; without it krigtune is a plain optimiser of what its runner measures",
      {{"model", model_block(), true},
       {"precision", with_default(word("of weights and activations", {"fp32", "fp16", "bf16"}), "fp32")},
       {"optimizer", with_default(word("the optimizer", {"adamw", "sgd"}), "adamw")},
       {"framework",
        word("whose program trains: what it keeps in memory and how it issues work (default: krigtune, that is "
             "krigtune-bench, with the runner bench; else deepspeed)",
             framework_names())},
       {"dialect", with_default(word("whose schedule krigtune-bench runs: reduce-scatter as in the ZeRO paper, "
                                     "Megatron and FSDP, or what DeepSpeed's code does",
                                     {"canonical", "deepspeed"}),
                                "canonical")},
       {"gradient_clipping", with_default(at_least(number("largest norm of all gradients; 0: not clipped"), 0), 0.0)},
       {"train_batch_size", size("sequences a step, kept; leave it out to let it vary")}});
}

Json cluster_block() {
  const ClusterSpec defaults;
  const Json fields =
      block("The machines",
            {{"nodes", with_default(size("machines"), defaults.nodes)},
             {"gpus_per_node",
              with_default(size("ranks of one machine; with gpu \"local\": CPU ranks"), defaults.gpus_per_node)},
             {"gpu", with_default(word("the device", {"local"}), defaults.gpu)},
             {"interconnect", Json{{"description", "not supported yet with gpu \"local\""}, {"type", "null"}}},
             {"network", Json{{"description", "not supported yet with gpu \"local\""}, {"type", "null"}}},
             {"emulate_network", network()}});
  return with_default(either("Where it is trained: \"local\", or an object", {word("this machine", {"local"}), fields}),
                      "local");
}

Json memory_block() {
  const MemorySpec defaults;
  return block(
      "How much memory a rank may use",
      {{"limit_gib", at_most(above(number("GiB a rank (default: what the machine has)"), 0), 1e6)},
       {"host_limit_gib", at_most(above(number("GiB of host memory of a node, which offloading takes (default: no "
                                               "constraint)"),
                                        0),
                                  1e6)},
       {"reserve_fraction",
        with_default(below(at_least(number("held back; not where the plan is exact, as with the runner bench"), 0), 1),
                     defaults.reserve_fraction)},
       {"model", with_default(word("how memory is predicted: krigtune's own way, or by the formula of DeepSpeed's "
                                   "autotuner, to compare with",
                                   {"krigtune", "deepspeed-autotuner"}),
                              "krigtune")}});
}

}  // namespace krigtune::schema
