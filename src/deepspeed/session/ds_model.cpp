// The model of a DeepSpeed job: from the config.json of Hugging Face transformers, or from the sizes among the script's
// flags in the spellings of Megatron-LM (arguments.py), transformers' examples and nanoGPT.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "core/environment.h"
#include "core/error.h"
#include "core/text.h"
#include "deepspeed/session/ds_job.h"
#include "jobs/recipe/published_model.h"
#include "schedule/knobs.h"
#include "space/well_known.h"
#include "workload/model.h"

namespace krigtune::deepspeed {
namespace {

// Flags with the same meaning, separated by blanks, with underscores for dashes.
struct SizeFlags {
  const char* key;  ///< in the workload's block "model"
  std::string_view flags;
};
constexpr std::array<SizeFlags, 7> kSizes = {{
    {"layers", "num_layers num_hidden_layers n_layer n_layers"},
    {"hidden", "hidden_size n_embd d_model hidden_dim"},
    {"heads", "num_attention_heads n_head n_heads num_heads"},
    {"kv_heads", "num_key_value_heads num_query_groups"},
    {"ffn_hidden", "ffn_hidden_size intermediate_size"},
    {"vocab", "vocab_size"},
    {"seq_len",
     "seq_length seq_len max_seq_length max_seq_len block_size sequence_length model_max_length cutoff_len "
     "max_length"},
}};
constexpr std::string_view kModelFlags = "config_name model_name_or_path bert_model";

bool contains_word(std::string_view words, std::string_view word) {
  const std::size_t at = words.find(word);
  if (word.empty() || at == std::string_view::npos) return false;
  const std::size_t end = at + word.size();
  const bool is_whole = (at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ');
  return is_whole || (end < words.size() && contains_word(words.substr(end), word));
}

std::string plain_name(std::string word) {
  if (word.rfind("--", 0) != 0) return "";
  word = word.substr(2, word.find('=') == std::string::npos ? std::string::npos : word.find('=') - 2);
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

}  // namespace

// The last one counts, as in argparse. "" means a flag without a value.
std::optional<std::string> flag_text(const DsJob& job, std::string_view names) {
  std::optional<std::string> text;
  if (!job.inputs.command) return text;
  const std::vector<std::string>& words = job.inputs.command->argv;
  for (std::size_t i = job.inputs.command->script + 1; i < words.size(); ++i) {
    if (!contains_word(names, plain_name(words[i]))) continue;
    const std::size_t joined = words[i].find('=');
    const bool has_next = i + 1 < words.size() && words[i + 1].rfind("--", 0) != 0;
    text = joined != std::string::npos ? words[i].substr(joined + 1) : has_next ? words[i + 1] : std::string();
  }
  return text;
}

namespace {

std::optional<std::int64_t> flag_size(const DsJob& job, std::string_view names) {
  const std::optional<std::string> text = flag_text(job, names);
  if (!text) return std::nullopt;
  const space::Value value = space::value_from_text(*text);
  const auto* size = std::get_if<std::int64_t>(&value);
  return size != nullptr && *size >= 1 ? std::optional(*size) : std::nullopt;
}

jobs::ModelSource source_of_models(const DsJob& job) {
  const auto variable = [](const std::string& name) { return environment_variable(name).value_or(""); };
  return {job.inputs.directory, variable};
}

Json model_of_job(const DsJob& job) {
  Json model = Json::object();
  if (!job.inputs.model.hf_config.empty()) {
    model["hf_config"] = std::filesystem::absolute(job.inputs.model.hf_config).string();
  } else if (const std::string name = flag_text(job, kModelFlags).value_or(""); !name.empty()) {
    const Json published = jobs::published_model(name, source_of_models(job));
    if (!published.is_null()) model = published;
  }
  if (!model.empty()) {
    // With a published model, the script's own --hidden_size belongs to another model or to none.
    if (const auto length = flag_size(job, kSizes.back().flags)) model["seq_len"] = *length;
    return model;
  }
  for (const SizeFlags& size : kSizes) {
    if (const auto number = flag_size(job, size.flags)) model[size.key] = *number;
  }
  return model;
}

// Returns whether the section is on; for "auto" the Trainer's flag of that name decides.
bool is_on(const DsJob& job, const char* section) {
  const Json& config = job.inputs.config;
  if (!config.contains(section) || !config[section].is_object()) return false;
  const Json enabled = config[section].value("enabled", Json(false));
  if (enabled != "auto") return enabled == true;
  const std::optional<std::string> flag = flag_text(job, section);
  return flag && *flag != "False" && *flag != "false";
}

}  // namespace

std::string precision_of(const DsJob& job) {
  if (is_on(job, "bf16") || is_on(job, "bfloat16")) return "bf16";
  return is_on(job, "fp16") ? "fp16" : "fp32";
}

namespace {

std::string optimizer_of(const DsJob& job) {
  const Json section = job.inputs.config.value("optimizer", Json::object());
  const Json type = section.is_object() ? section.value("type", Json()) : Json();
  if (!type.is_string()) return job.gaps.trained.optimizer.empty() ? "adamw" : job.gaps.trained.optimizer;
  const std::string name = lower_case(type.get<std::string>());
  return name == "sgd" || name == "lion" || name == "muon" ? name : "adamw";
}

void assume_length(Json& workload) {
  Json& model = workload["model"];
  if (model.contains("seq_len") || (!model.contains("preset") && !model.contains("hf_config"))) return;
  model["seq_len"] = jobs::at_most_the_models(jobs::kUsualLength, model);
  workload["assumed"].push_back(
      fmt::format("tokens of a sequence: {}: the command does not say it", model["seq_len"].get<std::int64_t>()));
  workload["not_modelled"].push_back(jobs::kRealLength);
}

void add_caveats(const DsJob& job, Json& workload) {
  assume_length(workload);
  for (const std::string& assumed : job.gaps.trained.assumed) workload["assumed"].push_back(assumed);
  for (const std::string& gap : job.gaps.named) workload["not_modelled"].push_back(gap);
  for (const std::string& gap : job.gaps.of_time) workload["also_not_modelled"].push_back(gap);
  for (const std::string& named : job.unmodelled.named) workload["not_modelled"].push_back(named);
}

Json workload_block(const DsJob& job) {
  Json workload = {{"model", model_of_job(job)}, {"precision", precision_of(job)}};
  job.gaps.trained.put_into(workload);
  workload["optimizer"] = optimizer_of(job);
  if (job.batch) workload["train_batch_size"] = *job.batch;
  workload["framework"] = "deepspeed";
  workload["dialect"] = "deepspeed";
  add_caveats(job, workload);
  const Json clipping = job.inputs.config.value("gradient_clipping", Json(0));
  if (clipping.is_number() && clipping.get<double>() > 0.0) workload["gradient_clipping"] = clipping;
  return workload;
}

// Properties that the plan does not know would make its predictions wrong.
std::string not_modelled(const DsJob& job) {
  if (!job.can_change(space::kMicroBatch) || !job.can_change(space::kAccumulation)) {
    return "the micro-batch is the script's own";
  }
  for (const char* name : {space::kOffloadOptimizer, space::kOffloadParam}) {
    const DsTunable* tunable = job.find(name);
    if (tunable == nullptr) continue;
    for (const space::Value& device : tunable->values) {
      if (space::to_string(device) == "nvme") return "offload to NVMe is not modelled";
    }
  }
  return "";
}

// Returns why the ranks cannot share the sequences of this model; "" if they can. DeepSpeed's own layers refuse other
// heads too (runtime/sequence_parallel/ulysses_sp.py).
std::string cannot_share(const DsJob& job, const workload::Workload& workload) {
  if (job.sequence == 1) return "";
  workload::Workload of_any_batch = workload;
  of_any_batch.train_batch_size.reset();
  space::Configuration split = shared_sequences(job);
  split.set(space::kTensorParallel, job.tensor);
  const auto knobs = schedule::knobs_of(of_any_batch, job.cluster, split);
  const auto* problem = std::get_if<schedule::NotModelled>(&knobs);
  if (problem == nullptr) return "";
  return fmt::format("{} ranks share a sequence (sequence_parallel_size): {}", job.sequence, problem->what);
}

// Adds sizes that no flag states, using the number of parameters. Returns false if nothing can be added.
bool complete(const DsJob& job, Json& model) {
  const bool is_named = model.contains("hf_config") || model.contains("layers") || model.contains("hidden");
  if (is_named || !job.num_params || !model.contains("seq_len")) return false;
  constexpr std::int64_t kGpt2Vocabulary = 50257;
  Json shape = usual_shape(*job.num_params, model.value("vocab", kGpt2Vocabulary));
  if (shape.is_null()) return false;
  shape["seq_len"] = model["seq_len"];
  model = std::move(shape);
  return true;
}

// `guess`: the assumed model; nullptr if it is not assumed.
void remark_on_assumptions(DsJob& job, const workload::ModelSpec* guess) {
  if (guess != nullptr) {
    job.remarks.push_back(
        fmt::format("predictions take the model for a GPT of {} layers of width {}, the usual shape of its {} "
                    "parameters; edit \"workload\" if it is another, or name its config.json with --hf-config",
                    guess->layers, guess->hidden, *job.num_params));
  } else if (!job.workload["model"].contains("hf_config") && !job.workload["model"].contains("preset")) {
    job.remarks.emplace_back(
        "predictions take the model for a GPT-2 of the sizes among the flags; edit \"workload\" if "
        "it is another, or name its config.json");
  }
  if (!job.inputs.config.contains("optimizer") && !job.gaps.trained.says("optimizer")) {
    job.remarks.emplace_back("predictions take the optimizer for AdamW: the file names none");
  }
}

}  // namespace

namespace {

// Of one parameter. SGD has no momentum unless its parameters say so. Muon has one moment of nearly all weights.
double moment_bytes(const std::string& optimizer) {
  for (const workload::OptimizerTraits& traits : workload::kOptimizers) {
    if (optimizer == traits.word && traits.kind != workload::OptimizerKind::kSgd)
      return (traits.orthogonalizes ? 1 : traits.moments) * (traits.in_8_bits ? 1.0 : 4.0);
  }
  return 0.0;
}

}  // namespace

space::Configuration shared_sequences(const DsJob& job) {
  return {{space::kContextParallel, job.sequence}, {space::kContextKind, std::string("alltoall")}};
}

double model_state_bytes(const DsJob& job, std::int64_t stage) {
  const bool is_mixed = precision_of(job) != "fp32";
  const auto params = static_cast<double>(job.num_params.value_or(0));
  const auto ranks = static_cast<double>(job.replicas() * job.sequence);  // they shard the states together
  constexpr double kFrozenWeight = 0.5;
  if (job.gaps.freezes || job.gaps.trained.says("lora") || !job.unmodelled.lighter.empty())
    return params * kFrozenWeight / (stage >= 3 ? ranks : 1.0) / static_cast<double>(job.tensor);
  const double weight = is_mixed ? 2.0 : 4.0;
  const double states = moment_bytes(optimizer_of(job)) + (is_mixed ? 4.0 : 0.0);
  return params *
         (weight / (stage >= 3 ? ranks : 1.0) + weight / (stage >= 2 ? ranks : 1.0) +
          states / (stage >= 1 ? ranks : 1.0)) /
         static_cast<double>(job.tensor);
}

double least_bytes(const DsJob& job, std::int64_t stage) {
  constexpr double kLargestBucket = 5e8;  // DeepSpeed's default; the search goes down to a 64th of the model
  constexpr double kSpan = 64.0;
  const auto params = static_cast<double>(job.num_params.value_or(0));
  const bool is_kept = job.is_kept(space::kReduceBucket);
  double bucket = std::min(params, kLargestBucket) / kSpan;
  if (is_kept) bucket = static_cast<double>(job.own_count_or(space::kReduceBucket, 0));
  const std::optional<space::Value> overlap = job.own(space::kOverlap);
  if (is_kept && job.is_kept(space::kOverlap) && overlap == space::Value(true)) bucket *= 2.0;
  const double element = precision_of(job) == "fp32" ? 4.0 : 2.0;
  const DsModelFacts& model = job.inputs.model;
  double activations = job.autotuning.model.activation_mem_per_gpu.value_or(0.0);
  if (model.activation_slope_bytes) activations = *model.activation_slope_bytes + model.activation_offset_bytes;
  return model_state_bytes(job, stage) + (stage >= 1 ? bucket * element : 0.0) + activations;
}

void read_ds_model(DsJob& job) {
  const DsModelInfo& info = job.autotuning.model;
  job.num_params = job.inputs.model.num_params ? job.inputs.model.num_params : info.num_params;
  job.hidden = job.inputs.model.hidden_size ? job.inputs.model.hidden_size : info.hidden_size;
  if (!job.hidden) job.hidden = flag_size(job, kSizes[1].flags);
  Json block = workload_block(job);
  std::string why = not_modelled(job);
  bool is_modelled = why.empty();
  const bool is_guess = is_modelled && complete(job, block["model"]);
  if (is_modelled && block["model"].empty()) why = "the model's sizes are not known";
  if (!block["model"].empty()) {
    try {
      const workload::Workload workload = workload::read_workload(block, job.source, "/workload");
      if (!job.num_params) job.num_params = workload::parameter_count(workload.model);
      if (!job.hidden && !is_guess) job.hidden = workload.model.hidden;
      if (is_modelled) why = cannot_share(job, workload);
      is_modelled = is_modelled && why.empty();
      if (is_modelled) {
        job.workload = block;
        return remark_on_assumptions(job, is_guess ? &workload.model : nullptr);
      }
    } catch (const UserError& error) {
      if (is_modelled) why = error.what();
    }
  }
  const std::string known =
      job.num_params ? fmt::format(" (of its {} parameters only stages are judged)", *job.num_params) : std::string();
  job.remarks.push_back(fmt::format("time and memory are not predicted: {}{}{}", why, known,
                                    is_modelled ? "; the model's config.json (--hf-config FILE), or "
                                                  "\"workload\" in the session, would help"
                                                : ""));
}

}  // namespace krigtune::deepspeed
