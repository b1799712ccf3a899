#include "workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/block.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "workload/hardware_tables.h"

namespace krigtune::workload {
namespace {

constexpr EnumWords<OptimizerKind, kOptimizerCount> kOptimizerWords = [] {
  EnumWords<OptimizerKind, kOptimizerCount> words;
  for (const OptimizerTraits& traits : kOptimizers)
    words[static_cast<std::size_t>(traits.kind)] = {traits.word, traits.kind};
  return words;
}();

struct NumberFormat {
  Precision precision{};
  ProductFormat products{};
  friend bool operator==(const NumberFormat&, const NumberFormat&) = default;
};
constexpr EnumWords<NumberFormat, 8> kNumberWords = {
    {{to_string(Precision::kFp32), {Precision::kFp32, ProductFormat::kAsModel}},
     {to_string(Precision::kFp16), {Precision::kFp16, ProductFormat::kAsModel}},
     {to_string(Precision::kBf16), {Precision::kBf16, ProductFormat::kAsModel}},
     {"fp8-delayed", {Precision::kBf16, ProductFormat::kFp8Delayed}},
     {"fp8-tensorwise", {Precision::kBf16, ProductFormat::kFp8Tensorwise}},
     {"fp8-blockwise", {Precision::kBf16, ProductFormat::kFp8Blockwise}},
     {"mxfp8", {Precision::kBf16, ProductFormat::kMxFp8}},
     {"nvfp4", {Precision::kBf16, ProductFormat::kNvFp4}}}};

constexpr EnumWords<Dialect, 2> kDialectWords = {
    {{"canonical", Dialect::kCanonical}, {"deepspeed", Dialect::kDeepSpeed}}};

// Adds what is new, because a model that is read again says again what it takes for granted.
void add_new(std::vector<std::string>& list, const std::vector<std::string>& more) {
  for (const std::string& text : more) add_once(text, list);
}

void add_caveats(Block<Workload>& block) {
  const auto add = [&](const char* key, std::vector<std::string> Caveats::*list, const char* meaning) {
    block
        .custom(
            key, schema::list(schema::text()), meaning,
            [key, list](JsonObject& object, Workload& workload) {
              if (object.has(key)) add_new(workload.caveats.*list, object.texts(key));
            },
            [list](const Workload& workload) { return Json(workload.caveats.*list); })
        .written_where_changed();
  };
  add("assumed", &Caveats::assumed, "what nothing stated and predictions take for granted, for people to read");
  add("not_modelled", &Caveats::not_modelled,
      "what the job has and the models do not know: predictions are then rough, and exclude nothing");
  add("also_not_modelled", &Caveats::also_not_modelled,
      "the same for what changes time, or memory only within the bounds of predictions: they exclude as usual");
}

void add_precision(Block<Workload>& block) {
  const Codec<NumberFormat> numbers = one_of(kNumberWords);
  block.custom(
      "precision", numbers.schema,
      "number format of weights and activations; fp8 and fp4: of the blocks' matrix products, beside bf16",
      [read = numbers.read](JsonObject& object, Workload& workload) {
        if (object.find("precision") == nullptr) return;
        const NumberFormat said = read(object, "precision");
        workload.precision = said.precision;
        workload.training.products = said.products;
      },
      [](const Workload& workload) { return Json(precision_word(workload)); });
}

void check_training(JsonObject& object, const Workload& workload) {
  if (workload.training.freezes() && adapter_parameter_count(workload) == 0)
    object.fail("training/lora/targets", "names no layer that this model has", "name for example q and v");
  if (workload.training.has_narrow_products()) return;
  constexpr const char* kAdvice = "add for example \"precision\": \"mxfp8\", or leave the key out";
  if (workload.training.precise != PreciseProducts{})
    object.fail("training/precise", "no product is in fp8 or fp4 that others could be more precise than", kAdvice);
  if (workload.training.fp8_attention)
    object.fail("training/fp8_attention", "belongs to a model whose products are in fp8 or fp4", kAdvice);
}

Block<Workload> workload_block(const std::filesystem::path& base_dir) {
  Block<Workload> block(
      "The training job; without it krigtune optimises what the runner measures, without predictions");
  block
      .custom(
          "model", model_schema(), "",
          [base_dir](JsonObject& object, Workload& workload) {
            workload.model = read_model(object.require("model"), object.source(), object.pointer("model"), base_dir,
                                        &workload.caveats);
          },
          [](const Workload& workload) { return to_json(workload.model); })
      .required();
  add_precision(block);
  block.check(check_training);
  block.key("optimizer", &Workload::optimizer, one_of(kOptimizerWords), "the optimizer");
  block.block("training", &Workload::training, training_block()).written_where_changed();
  block
      .key("framework", &Workload::framework, one_of(kFrameworkWords),
           "the framework that trains, which determines predicted memory and schedule (default: krigtune, which is "
           "krigtune-bench, with the runner bench; otherwise deepspeed)")
      .no_default();
  block.key("dialect", &Workload::dialect, one_of(kDialectWords),
            "the schedule that krigtune-bench runs: reduce-scatter as in the ZeRO paper, Megatron and FSDP "
            "(canonical), or as in DeepSpeed's code");
  block.key("gradient_clipping", &Workload::gradient_clipping, number(at_least(0)),
            "largest norm of the gradient; 0: no clipping");
  block
      .key("train_batch_size", &Workload::train_batch_size, integer_or_null(at_least(1)),
           "sequences per step, kept constant; leave it out to let the batch vary")
      .written_where_changed();
  add_caveats(block);
  return block;
}

}  // namespace

std::string precision_word(const Workload& workload) {
  return std::string(word_of(NumberFormat{workload.precision, workload.training.products}, kNumberWords));
}

bool has_eager_kernels(const Workload& workload) {
  if (workload.training.compile) return false;
  if (workload.training.kernels) return *workload.training.kernels == Kernels::kEager;
  return workload.framework == Framework::kDeepSpeed || workload.framework == Framework::kFsdp;
}

StateType kept_gradients(const Workload& workload) {
  const bool in_fp16 = workload.framework == Framework::kMegatron && workload.precision == Precision::kFp16;
  return workload.training.state_types.gradients.value_or(in_fp16 ? StateType::kFp16 : StateType::kFp32);
}

const char* training_predicted_only(const Workload& workload) {
  const TrainingSpec& training = workload.training;
  if (training.freezes() && training.base_bits()) return "a quantised model";
  if (training.has_narrow_products()) return "products in 8 or 4 bits";
  if (traits_of(workload.optimizer).predicted_only) return traits_of(workload.optimizer).name;
  if (training.loss == LossKind::kFused) return "a fused loss";
  if (training.compile) return "a compiled model";
  if (has_eager_kernels(workload)) return "eager kernels";
  if (training.state_types != StateTypes{}) return "optimizer states of other types";
  return training.states == OptimizerStates::kAsModel ? "optimizer states in the model's type" : "";
}

namespace {

// Adapters of one layer's attention, if it has one, and of an MLP of that width; 0: there is none.
std::int64_t adapters_of_layer(const Workload& workload, bool attends, std::int64_t ffn) {
  const ModelSpec& model = workload.model;
  const AdapterSpec& adapter = workload.training.lora;
  std::int64_t elems = 0;
  const auto add = [&](AdaptedLayer layer, std::int64_t inputs, std::int64_t outputs) {
    if (inputs > 0 && outputs > 0 && adapter.targets_layer(layer)) elems += adapter.rank * (inputs + outputs);
  };
  // Joined ones share the matrix that reads the inputs.
  const auto joined = [&](std::int64_t others) { elems -= adapter.rank * others * model.hidden; };
  if (attends && !model.has_latents()) {
    add(AdaptedLayer::kQuery, model.hidden, model.query_width());
    add(AdaptedLayer::kKey, model.hidden, model.key_width());
    add(AdaptedLayer::kValue, model.hidden, model.value_width());
    if (adapter.joins({AdaptedLayer::kQuery, AdaptedLayer::kKey, AdaptedLayer::kValue})) joined(2);
  }
  if (attends) add(AdaptedLayer::kOutput, model.output_width(), model.hidden);
  if (model.gated_mlp) add(AdaptedLayer::kGate, model.hidden, ffn);
  add(AdaptedLayer::kUp, model.hidden, ffn);
  if (model.gated_mlp && ffn > 0 && adapter.joins({AdaptedLayer::kGate, AdaptedLayer::kUp})) joined(1);
  add(AdaptedLayer::kDown, ffn, model.hidden);
  return elems;
}

}  // namespace

std::int64_t adapter_parameter_count(const Workload& workload) {
  const ModelSpec& model = workload.model;
  std::int64_t elems = 0;
  for (const LayersOfKind& of : model.kinds()) {
    const std::int64_t ffn = of.kind.feed_forward == FeedForward::kExperts ? model.experts.shared_ffn_hidden
                             : of.kind.feed_forward == FeedForward::kMlp   ? model.ffn_hidden
                                                                           : 0;
    elems += of.layers * adapters_of_layer(workload, of.kind.mixer == Mixer::kAttention, ffn);
  }
  return elems;
}

double spared_flops(const Workload& workload, std::int64_t sequences) {
  if (!workload.training.freezes()) return 0.0;
  const double of_matrices = palm_flops(workload.model, sequences) - palm_attention_flops(workload.model, sequences);
  const double tokens = static_cast<double>(sequences) * static_cast<double>(workload.model.seq_len);
  return of_matrices / 3.0 - 6.0 * static_cast<double>(adapter_parameter_count(workload)) * tokens;
}

Workload read_workload(const Json& json, const std::string& source, const std::string& pointer,
                       const std::filesystem::path& base_dir) {
  return workload_block(base_dir).value_of(&json, source, pointer);
}

Json to_json(const Workload& workload) { return workload_block({}).written(workload); }
Json workload_schema() { return workload_block({}).schema(); }

Json framework_schema() {
  return schema::with_meaning("the framework that trains, if there is no \"workload\" that says it",
                              one_of(kFrameworkWords).schema);
}

namespace {

constexpr const char* kLocal = "local";
constexpr EnumWords<MemoryModelKind, 2> kMemoryModelWords = {
    {{"krigtune", MemoryModelKind::kKrigtune}, {"deepspeed-autotuner", MemoryModelKind::kDeepSpeedAutotuner}}};

void read_local(JsonObject& object, const Hardware& hardware, ClusterSpec& cluster) {
  for (const char* key : {"interconnect", "network", "gpus_per_domain"}) {
    if (object.find(key) != nullptr) {
      object.fail(key, "is not supported with gpu \"local\"", "\"emulate_network\" emulates a network");
    }
  }
  if (const Json* network = object.find("emulate_network")) {
    cluster.emulated_network =
        read_network(*network, object.source(), object.pointer("emulate_network"), cluster.gpus_per_node, hardware);
  }
}

// The usual links of a GB200 join 72 GPUs, which are 18 nodes.
std::int64_t usual_domain(const ClusterSpec& cluster, const std::string& interconnect) {
  if (!cluster.device || interconnect != cluster.device->interconnect) return cluster.gpus_per_node;
  const std::int64_t domain = cluster.device->domain;
  return domain % cluster.gpus_per_node == 0 ? std::max(domain, cluster.gpus_per_node) : cluster.gpus_per_node;
}

void read_domain(JsonObject& object, const std::string& interconnect, ClusterSpec& cluster) {
  if (cluster.gpus_per_domain == 0) cluster.gpus_per_domain = usual_domain(cluster, interconnect);
  if (cluster.gpus_per_domain % cluster.gpus_per_node != 0) {
    object.fail("gpus_per_domain",
                fmt::format("{} GPUs are not whole nodes of {}", cluster.gpus_per_domain, cluster.gpus_per_node),
                "write a multiple of \"gpus_per_node\"");
  }
  if (cluster.gpus_per_domain == cluster.gpus_per_node) cluster.gpus_per_domain = 0;
}

// By default a node has the usual links of its GPUs; there is no default between nodes.
void read_gpus(JsonObject& object, const Hardware& hardware, ClusterSpec& cluster) {
  const auto where = [&](const char* key) { return object.source() + ": " + object.pointer(key); };
  std::vector<std::string> ids = hardware.device_ids();
  if (std::find(ids.begin(), ids.end(), cluster.gpu) == ids.end() && device_id_named(cluster.gpu).empty()) {
    ids.insert(ids.begin(), kLocal);
    object.fail("gpu", fmt::format("the GPU '{}' is not known", cluster.gpu), suggestion(cluster.gpu, ids));
  }
  cluster.device = hardware.device(cluster.gpu, where("gpu"));
  cluster.gpu = cluster.device->id;
  if (object.find("emulate_network") != nullptr) {
    object.fail("emulate_network", "emulates a network between CPU ranks",
                "name the real one as \"network\", or write \"gpu\": \"local\"");
  }
  const std::string interconnect = object.text("interconnect", cluster.device->interconnect);
  if (interconnect.empty()) object.fail("interconnect", "is missing", "write for example \"pcie4\"");
  read_domain(object, interconnect, cluster);
  const std::string network = object.text("network", "");
  if (network.empty() && cluster.ranks() > cluster.domain()) {
    object.fail("network", fmt::format("is missing, and there are {} nodes", cluster.nodes),
                "write for example \"ib-ndr-400\"");
  }
  if (!object.has("gpus_per_node")) object.fail("gpus_per_node", "is missing", "write how many GPUs a node has");
  NodeNetwork links;
  links.intra = hardware.link(interconnect, where("interconnect")).level();
  links.inter = network.empty() ? links.intra : hardware.link(network, where("network")).level();
  links.ranks_per_node = cluster.domain();
  cluster.network = links;
}

// Reads "MemTotal:       12345 kB" (proc(5)); the kernel's kB are 1024 bytes.
std::optional<Bytes> total_memory(std::string_view meminfo) {
  constexpr std::string_view kKey = "MemTotal:";
  const std::size_t key = meminfo.find(kKey);
  if (key == std::string_view::npos) return std::nullopt;
  const std::size_t digits = meminfo.find_first_not_of(' ', key + kKey.size());
  if (digits == std::string_view::npos) return std::nullopt;
  std::int64_t kib = 0;
  const auto [end, error] = std::from_chars(meminfo.data() + digits, meminfo.data() + meminfo.size(), kib);
  if (error != std::errc()) return std::nullopt;
  return Bytes{kib * 1024};
}

std::vector<std::string> gpu_words() {
  std::vector<std::string> names = device_names();
  names.insert(names.begin(), kLocal);
  return names;
}

void add_counts(Block<ClusterSpec>& block) {
  constexpr double kMostRanks = 1e6;  // so that products with them fit into 64 bits
  block.key("nodes", &ClusterSpec::nodes, integer(from_to(1, kMostRanks)), "number of nodes");
  block.key("gpus_per_node", &ClusterSpec::gpus_per_node, integer(from_to(1, kMostRanks)),
            "GPUs per node, one rank each; with gpu \"local\" on a machine without GPUs: CPU ranks. Required if "
            "\"gpu\" names a GPU");
  block
      .key("gpus_per_domain", &ClusterSpec::gpus_per_domain, integer(from_to(1, kMostRanks)),
           "GPUs that the links within a node join, if these links join several nodes: 72 in a GB200 NVL72 (default: "
           "as usual for the GPU, else gpus_per_node); not with gpu \"local\"")
      .no_default();
  block
      .key("ranks_assumed", &ClusterSpec::assumes_ranks, boolean(),
           "gpus_per_node is only an assumption: without a workload the search also weighs other numbers of ranks "
           "(default: true if gpus_per_node is not given)")
      .no_default();
}

// Which keys go with which GPU is decided by read_local and read_gpus.
Block<ClusterSpec> cluster_block(const std::filesystem::path& base_dir) {
  Block<ClusterSpec> block("The machines that train");
  add_counts(block);
  Codec<std::string> gpu = hardware_id();
  gpu.schema = schema::either(
      {schema::word(gpu_words(), "\"local\": this machine; else a known GPU (upper and lower case are alike)"),
       schema::text("one of \"hardware\"")});
  block.key("gpu", &ClusterSpec::gpu, gpu, "the device");
  block.noted("interconnect", schema::text(),
              "links within a node, one of the ids of \"emulate_network\" (default: the usual link of the GPU); not "
              "with gpu \"local\"");
  block.noted("network", schema::text(),
              "links between nodes, one of the ids of \"emulate_network\"; required with several nodes; not with gpu "
              "\"local\"");
  block.noted("emulate_network", network_schema(),
              "emulates a network between CPU ranks: each collective takes latency + bytes / bandwidth; with several "
              "nodes, the time of a ring over them");
  block.noted("hardware", hardware_schema(),
              "your own GPUs and links, and changes to known ones: a JSON file, relative to this one, or its contents");
  block.check([base_dir](JsonObject& object, ClusterSpec& cluster) {
    if (!object.has("ranks_assumed")) cluster.assumes_ranks = !object.has("gpus_per_node");
    const Hardware hardware =
        read_hardware(object.find("hardware"), object.source(), object.pointer("hardware"), base_dir);
    if (cluster.is_local() && object.has("hardware")) cluster.hardware = std::make_shared<const Hardware>(hardware);
    cluster.is_local() ? read_local(object, hardware, cluster) : read_gpus(object, hardware, cluster);
  });
  return block;
}

Block<MemorySpec> memory_block() {
  constexpr double kMostGib = 1e6;  // a pebibyte per rank
  Block<MemorySpec> block("How much memory a rank may use");
  block.key("limit_gib", &MemorySpec::limit_gib, number_or_null(above_up_to(0, kMostGib)),
            "memory limit of a rank in GiB (default: the machine's memory)");
  block.key("host_limit_gib", &MemorySpec::host_limit_gib, number_or_null(above_up_to(0, kMostGib)),
            "host memory of a node that offloading may use, in GiB (default: no limit)");
  block.key("reserve_fraction", &MemorySpec::reserve_fraction, number(from_to_below(0, 1)),
            "fraction of the memory that is kept free; not used if the plan is exact, as with the runner bench");
  block.key("model", &MemorySpec::model, one_of(kMemoryModelWords),
            "how memory is predicted: by krigtune's model or, for comparison, by the formula of DeepSpeed's autotuner");
  block
      .key("peak_factor", &MemorySpec::peak_factor, number(from_to(0.1, 10)),
           "ratio of measured to planned peak memory in earlier runs; not used if the plan is exact, as with the "
           "runner bench")
      .written_where_changed();
  return block;
}

}  // namespace

ClusterSpec read_cluster(const Json& json, const std::string& source, const std::string& pointer,
                         const std::filesystem::path& base_dir) {
  if (json.is_string()) {
    ClusterSpec local;
    local.assumes_ranks = true;
    if (json.get<std::string>() == kLocal) return local;
    throw UserError(fmt::format("{}: {}: the cluster {} is not known", source, pointer, json.dump()),
                    "write \"local\" or an object like {\"gpus_per_node\": 2}");
  }
  return cluster_block(base_dir).value_of(&json, source, pointer);
}

Json to_json(const ClusterSpec& cluster) {
  Json json = {{"nodes", cluster.nodes}, {"gpus_per_node", cluster.gpus_per_node}, {"gpu", cluster.gpu}};
  if (!cluster.is_local()) {
    json["interconnect"] = cluster.network->intra.name;
    const bool has_network = cluster.nodes > 1 || cluster.network->inter.name != cluster.network->intra.name;
    if (has_network) json["network"] = cluster.network->inter.name;
    const bool is_usual = cluster.domain() == usual_domain(cluster, cluster.network->intra.name);
    if (!is_usual) json["gpus_per_domain"] = cluster.domain();
  }
  if (cluster.assumes_ranks) json["ranks_assumed"] = true;
  if (cluster.emulated_network) json["emulate_network"] = to_json(*cluster.emulated_network);
  if (Json hardware = own_hardware(cluster); !hardware.is_null()) json["hardware"] = std::move(hardware);
  return json;
}

Json cluster_schema() {
  Json schema = schema::either({schema::word({kLocal}, "this machine"), cluster_block({}).schema()},
                               "The machines: \"local\", or an object");
  return schema::with_default(std::move(schema), kLocal);
}

MemorySpec read_memory(const Json& json, const std::string& source, const std::string& pointer) {
  return memory_block().value_of(&json, source, pointer);
}

Json to_json(const MemorySpec& memory) { return memory_block().written(memory); }
Json memory_schema() { return memory_block().schema(); }

Bytes memory_limit_per_rank(const MemorySpec& memory, const ClusterSpec& cluster) {
  if (memory.limit_gib) return from_gib(*memory.limit_gib);
  if (!cluster.is_local() && cluster.device) return cluster.device->memory;
  constexpr const char* kMeminfo = "/proc/meminfo";
  const std::optional<Bytes> total = total_memory(read_text(kMeminfo));
  if (!total) {
    throw EnvironmentError(fmt::format("{} does not say how much memory there is", kMeminfo),
                           "set \"limit_gib\" in the session's block \"memory\"");
  }
  // Emulated nodes are all on this machine.
  return {total->count / (cluster.emulated_network ? cluster.ranks() : cluster.gpus_per_node)};
}

}  // namespace krigtune::workload
