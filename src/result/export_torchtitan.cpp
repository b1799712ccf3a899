// Writes a job file for torchtitan up to 0.2, and the equivalent flags for 0.3, which has no such file. A flag
// --section.key of the recipe (jobs/recipes/torchtitan.json) is the key of that section in the file.
//
//   ZeRO stage 3   fsdp_reshard_after_forward "always"         stage 0   data_parallel_replicate_degree: all ranks
//   ZeRO stage 2   "never"                                     stage 1   none; the nearest is stage 2
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "jobs/recipe/places.h"
#include "result/recipe_words.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

constexpr const char* kTitanFile = "torchtitan.toml";
constexpr const char* kTitanFlags = "torchtitan_flags.txt";

// JSON strings are basic strings of TOML, because they use the same escapes.
std::string toml_value(const std::optional<std::string>& text) {
  if (!text) return "true";
  const space::Value value = space::value_from_text(*text);
  return std::holds_alternative<std::string>(value) ? Json(*text).dump() : space::to_string(value);
}

// Returns "training.enable_cpu_offload" for the flag of that name.
std::string key_of(const std::string& flag) { return flag.substr(2); }

std::string toml_of(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> sections;  // section and its lines
  for (const jobs::FlagWords& flag : jobs::flags_in(words)) {
    const std::string key = key_of(flag.flag);
    const std::size_t dot = key.find('.');
    const std::string name = key.substr(0, dot);
    auto section = std::find_if(sections.begin(), sections.end(), [&](const auto& one) { return one.first == name; });
    if (section == sections.end()) section = sections.insert(sections.end(), {name, ""});
    section->second += fmt::format("{} = {}\n", key.substr(dot + 1), toml_value(flag.value));
  }
  std::string text;
  for (const auto& [name, lines] : sections) text += fmt::format("\n[{}]\n{}", name, lines);
  return text;
}

std::string file_text(const report::RunView& run, const RecipeWords& said, const std::string& translated) {
  std::string text =
      fmt::format("# {}: trial {}, for {}{}. What was tuned, and nothing else: put it into your job file.\n", run.name,
                  run.answer.best->trial, counted(run.session.cluster.ranks(), "rank"), translated);
  for (const std::string& flag : said.absent) text += fmt::format("# not to be in it: {}\n", key_of(flag));
  return text + toml_of(said.words);
}

// Returns the configuration with a stage that the file can express: replicas for stage 0, stage 2 for stage 1. What
// sharding_words says is left out.
space::Configuration sayable(space::Configuration configuration, std::int64_t stage) {
  if (stage == 0) configuration.erase(space::kZeroStage);
  if (stage == 1) configuration.set(space::kZeroStage, std::int64_t{2});
  configuration.erase(space::kHybridShard);
  return configuration;
}

std::vector<std::string> sharding_words(const report::RunView& run, std::int64_t stage) {
  const space::Configuration& best = run.answer.best->configuration;
  const std::int64_t dp = data_ranks_of(best, run.session.cluster.ranks());
  const std::int64_t group = best.integer(space::kHybridShard, 0);
  const std::int64_t shard = stage == 0 ? 1 : group == 0 ? dp : group;
  return {"--parallelism.data_parallel_replicate_degree", std::to_string(dp / shard),
          "--parallelism.data_parallel_shard_degree", std::to_string(shard)};
}

// torchtitan splits the sequence over tensor-parallel ranks, and it uses CUDA graphs, which do not support pipeline
// stages. Only 0.3 has settings for these.
void add_what_is_otherwise(const space::Configuration& best, RecipeWords& in_file, RecipeWords& as_flags) {
  std::erase_if(in_file.omissions, [](const Omission& one) { return one.setting == space::kSequenceParallel; });
  if (best.integer(space::kTensorParallel, 1) > 1 && !best.boolean(space::kSequenceParallel, true)) {
    as_flags.words.insert(as_flags.words.begin(), "--parallelism.no-enable_sequence_parallel");
    in_file.omissions.push_back({kTitanFile, space::kSequenceParallel, false,
                                 "torchtitan up to 0.2 always splits the sequence over tensor-parallel ranks"});
  }
  if (best.integer(space::kPipelineParallel, 1) > 1) {
    as_flags.words.insert(as_flags.words.begin(), "--training.disable_cuda_graphs");
  }
}

}  // namespace

Export export_torchtitan(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  require_known_names(run, "torchtitan");
  const space::Configuration& best = run.answer.best->configuration;
  const std::int64_t stage = best.integer(space::kZeroStage, 0);
  const jobs::Recipe recipe = jobs::find_recipe("torchtitan");
  std::vector<std::string> newer = {"torchrun", "--nproc_per_node", std::to_string(run.session.cluster.ranks()), "-m",
                                    "torchtitan.train"};
  const std::int64_t pipeline = best.integer(space::kPipelineParallel, 1);
  if (pipeline > 1)  // only then has it a schedule
    newer.insert(newer.end(), {"--parallelism.pipeline_parallel_degree", std::to_string(pipeline)});
  std::vector<std::string> older = newer;
  older.insert(older.end(), {"--activation_checkpoint.mode", "none"});  // there recomputation is a flag
  RecipeWords in_file = words_by_recipe(recipe, older, sayable(best, stage), kTitanFile);
  RecipeWords as_flags = words_by_recipe(recipe, newer, sayable(best, stage), kTitanFlags);
  const std::vector<std::string> sharding = sharding_words(run, stage);
  in_file.words.insert(in_file.words.end(), sharding.begin(), sharding.end());
  as_flags.words.insert(as_flags.words.begin(), sharding.begin(), sharding.end());
  add_what_is_otherwise(best, in_file, as_flags);
  if (stage == 1) {
    in_file.omissions.push_back({kTitanFile, space::kZeroStage, std::int64_t{1},
                                 "FSDP shards gradients with the optimizer: it is stage 2 (never)"});
  }
  const std::string translated = translated_note(run, recipe);
  Export made;
  made.files = {{kTitanFile, file_text(run, in_file, translated),
                 "up to torchtitan 0.2: its keys belong into the file of --job.config_file" + translated},
                {kTitanFlags, shell_line(as_flags.words) + "\n",
                 "torchtitan 0.3, which has no job file: put it after the command's own flags" + translated}};
  made.omissions = std::move(in_file.omissions);
  return made;
}

}  // namespace krigtune::result
