// Settings of DeepSpeed's file and of the Trainer that change memory or traffic, but that the plan does not know.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/text.h"
#include "deepspeed/session/ds_job.h"
#include "jobs/recipe/caveats.h"

namespace krigtune::deepspeed {
namespace {

struct Setting {
  std::string_view pointer;
  const char* effect;
  bool takes_less = false;  ///< memory
};

// Each counts if it is there and neither false, 0, 1 nor off by another key of its section.
constexpr std::array<Setting, 12> kSettings = {{
    {"/zero_optimization/zero_quantized_weights", "less traffic"},
    {"/zero_optimization/zero_quantized_gradients", "less traffic"},
    {"/zero_optimization/zenflow", "a faster update"},
    {"/zero_optimization/offload_optimizer/ratio", "more memory of the device, a faster update"},
    {"/data_types/grad_accum_dtype", "other memory"},
    {"/torch_autocast", "more memory"},
    {"/compile/deepcompile", "other times and memory"},
    {"/bf16/bf16_master_weights_and_grads", "less memory", true},
    {"/bf16/bf16_optimizer_states", "less memory", true},
    {"/fp16/fp16_master_weights_and_grads", "less memory", true},
    {"/fp16_master_weights_and_gradients", "less memory", true},
    {"/bfloat16/bf16_optimizer_states", "less memory", true},
}};

bool is_on(const Json& value) {
  if (value.is_object()) return value.value("enabled", true);
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value != 0 && value != 1;  // a ratio of 1
  return value.is_string() && value != "auto";
}

// Optimizers whose states are smaller than those of AdamW.
constexpr std::array<std::string_view, 9> kSmall = {"8bit",      "4bit", "paged",   "anyprecision", "galore",
                                                    "adafactor", "lomo", "adagrad", "apollo"};
// DeepSpeed's optimizers that exchange signs instead of gradients after a warm-up, and keep what they cut off
// (Tang et al. 2021).
constexpr std::array<std::string_view, 2> kCompressing = {"onebit", "zeroone"};

template <std::size_t N>
bool has_any(const std::string& name, const std::array<std::string_view, N>& words) {
  const std::string plain = lower_case(name);
  return std::any_of(words.begin(), words.end(), [&](auto word) { return plain.find(word) != std::string::npos; });
}

// Empty if it is predicted: the states of adapters are few, and what the command says may be known.
std::string unmodelled_optimizer(const DsJob& job) {
  if (job.gaps.trained.says("lora")) return "";
  const Json section = job.inputs.config.value("optimizer", Json::object());
  if (section.is_object() && section.contains("type") && section["type"].is_string()) {
    std::string name = section["type"].get<std::string>();
    const std::string plain = lower_case(name);
    return plain == "lion" || plain == "muon" ? "" : name;
  }
  return job.gaps.trained.says("optimizer") ? "" : flag_text(job, "optim optimizer").value_or("");
}

// Where ranks share sequences DeepSpeed has a type of its own for the sums of gradients (runtime/engine.py,
// _configure_distributed_model; runtime/config.py: fp32 unless the file says another).
bool sums_shared_in_fp32(const DsJob& job) {
  if (job.sequence == 1 || precision_of(job) == "fp32") return false;
  return job.inputs.config.value("seq_parallel_communication_data_type", Json("fp32")) == "fp32";
}

}  // namespace

// The flags are those of the Trainer's world. The keys of ds_config.json are not: its "optimizer" is a section, and
// unmodelled_settings knows them.
CommandGaps gaps_of_command(const DsJob& job) {
  jobs::Recipe recipe = jobs::find_recipe("deepspeed");
  std::erase_if(recipe.files, [](const jobs::RecipeFile& file) { return file.name == "ds_config"; });
  if (job.sequence > 1) {  // which predictions know, so that a script may say it too
    std::erase_if(recipe.not_modelled, [](const jobs::RecipeGap& gap) {
      return std::ranges::count(gap.where.any_flag, "--sequence_parallel_size") > 0;
    });
  }
  const jobs::RecipeJob read = jobs::read_any_job(recipe, {job.inputs.command->argv, job.inputs.directory});
  const jobs::TrainingFacts trained = jobs::training_facts(recipe, read);
  workload::Caveats caveats = jobs::caveats_of(recipe, read, trained);
  return {std::move(caveats.not_modelled), std::move(caveats.also_not_modelled),
          jobs::freezes_weights(recipe, read, trained), trained};
}

Unmodelled unmodelled_settings(const DsJob& job) {
  Unmodelled found;
  for (const Setting& setting : kSettings) {
    const Json::json_pointer pointer{std::string(setting.pointer)};
    if (!job.inputs.config.contains(pointer) || !is_on(job.inputs.config[pointer])) continue;
    const std::string name(setting.pointer.substr(setting.pointer.rfind('/') + 1));
    if (setting.takes_less && found.lighter.empty()) found.lighter = name;
    found.named.push_back(fmt::format("{}: {}", name, setting.effect));
  }
  if (sums_shared_in_fp32(job))
    found.named.emplace_back("gradients that travel in fp32 (seq_parallel_communication_data_type): more traffic");
  const std::string optimizer = unmodelled_optimizer(job);
  if (has_any(optimizer, kSmall)) {
    found.named.push_back(fmt::format("optimizer {}: less memory", optimizer));
    if (found.lighter.empty()) found.lighter = "optimizer " + optimizer;
  } else if (has_any(optimizer, kCompressing)) {
    found.named.push_back(fmt::format("optimizer {}: more memory, less traffic after its warm-up", optimizer));
  }
  return found;
}

}  // namespace krigtune::deepspeed
