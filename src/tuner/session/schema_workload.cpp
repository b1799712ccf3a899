// The blocks "workload", "cluster" and "memory", as workload/*.cpp read them.
#include "krigtune/cost/framework.h"
#include "krigtune/workload/workload.h"
#include "session/schema_blocks.h"
#include "session/schema_words.h"

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

// An id of the table, or of the user's own.
Json link(const std::string& meaning) {
  return either(meaning, {word("a known link", network_names()), text("one of \"hardware\"")});
}

Json network() {
  return either(
      "imitates a network between CPU ranks: each collective is held for latency + bytes / bandwidth; with nodes, for "
      "what a ring over them takes",
      {word("a known network (upper and lower case are alike)", network_names()),
       block("A network by its numbers", {{"latency_us", at_least(number("microseconds a collective"), 0), true},
                                          {"bytes_per_s", above(number("bytes a second"), 0), true}}),
       block("Links within nodes and between them",
             {{"intra", link("within a node"), true}, {"inter", link("between nodes"), true}}),
       text("a link of \"hardware\"")});
}

Json fraction_above_zero(const char* meaning) { return at_most(above(number(meaning), 0), 1); }

Json own_gpu() {
  return block("A GPU; what is left out is that of \"like\"",
               {{"like", text("an id to begin with (default: the known one of this name)")},
                {"memory_gib", at_most(above(number("GiB that a program sees"), 0), 1e6)},
                {"fp32_flops_per_s", above(number("dense, at the most"), 0)},
                {"fp16_flops_per_s", at_least(number("likewise; 0: not supported"), 0)},
                {"bf16_flops_per_s", at_least(number("likewise; 0: not supported"), 0)},
                {"memory_bytes_per_s", above(number("of its memory"), 0)},
                {"gemm_fraction", fraction_above_zero("of the peak that large matrix products reach (default 0.7)")},
                {"gemm_half_flops", at_least(number("a product of so many reaches half of that (default 5e9)"), 0)},
                {"attention_fraction", fraction_above_zero("of the peak that flash attention reaches (default 0.5)")},
                {"memory_fraction", fraction_above_zero("of the memory's rate that kernels reach (default 0.85)")},
                {"launch_us", at_least(number("of one kernel (default 5)"), 0)},
                {"host_bytes_per_s", above(number("between device and host memory, a direction"), 0)},
                {"interconnect", text("the link within a node where the cluster names none")}});
}

Json own_link() {
  return block("A link; what is left out is that of \"like\"",
               {{"like", text("an id to begin with (default: the known one of this name)")},
                {"kind", with_default(word("what it is", {"nvlink", "pci", "network"}), "network")},
                {"latency_us", at_least(number("of a collective's launch (default 0)"), 0)},
                {"bytes_per_s", above(number("line rate, a direction and GPU"), 0)},
                {"reached", with_default(fraction_above_zero("of the line rate, by collectives"), 1)}});
}

Json hardware() {
  return either(
      "your own GPUs and links, and changes to those known: a JSON file, relative to this one, or its contents",
      {text("the file"), block("GPUs and links by their ids, which may be named wherever known ones may",
                               {{"gpus", map("by id", own_gpu())}, {"links", map("by id", own_link())}})});
}

std::vector<std::string> gpu_names() {
  std::vector<std::string> names = device_names();
  names.insert(names.begin(), "local");
  return names;
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
  const Json fields = block(
      "The machines",
      {{"nodes", with_default(size("machines"), defaults.nodes)},
       {"gpus_per_node",
        with_default(size("GPUs of one machine, a rank each; with gpu \"local\" and none: CPU ranks. To "
                          "be written where a GPU is named"),
                     defaults.gpus_per_node)},
       {"gpu",
        with_default(either("the device", {word("\"local\": this machine; else a known GPU (upper and lower case "
                                                "are alike)",
                                                gpu_names()),
                                           text("one of \"hardware\"")}),
                     defaults.gpu)},
       {"interconnect", text("links within a node, an id that \"emulate_network\" knows (default: what the GPU usually "
                             "comes with); not with gpu \"local\"")},
       {"network", text("links between nodes, likewise; needed with several nodes; not with gpu \"local\"")},
       {"emulate_network", network()},
       {"hardware", hardware()}});
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
                              "krigtune")},
       {"peak_factor",
        with_default(at_most(at_least(number("measured over planned peak memory, as earlier runs have shown; not where "
                                             "the plan is exact, as with the runner bench"),
                                      0.1),
                             10),
                     defaults.peak_factor)}});
}

}  // namespace krigtune::schema
