// Writes the flags of Megatron-LM as a part of a shell script, in the style of its own examples. The recipe
// (jobs/recipes/megatron.json) defines the meaning of each flag.
#include <fmt/format.h>

#include "core/text.h"
#include "result/recipe_words.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

constexpr const char* kMegatronFile = "megatron_args.sh";

// Puts each flag with its values on a line.
std::string array_of(const std::vector<std::string>& words) {
  std::string text = "KRIGTUNE_ARGS=(";
  for (const std::string& word : words) {
    text += word.rfind("--", 0) == 0 ? "\n  " + shell_line({word}) : " " + shell_line({word});
  }
  return text + "\n)\n";
}

}  // namespace

Export export_megatron(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  require_known_names(run, "Megatron-LM");
  // Stages above the distributed optimizer require Megatron-FSDP.
  const bool is_sharded = run.answer.best->configuration.integer(space::kZeroStage, 0) >= 2;
  std::vector<std::string> sharding;
  if (is_sharded) sharding = {"--use-megatron-fsdp", "--ckpt-format", "fsdp_dtensor"};
  const std::int64_t ranks = run.session.cluster.ranks();
  std::vector<std::string> command = {"torchrun",        "--nproc_per_node",   std::to_string(ranks),
                                      "pretrain_gpt.py", "--micro-batch-size", "1"};
  command.insert(command.end(), sharding.begin(), sharding.end());
  const jobs::Recipe recipe = jobs::find_recipe("megatron");
  RecipeWords said = words_by_recipe(recipe, command, run.answer.best->configuration, kMegatronFile);
  said.words.insert(said.words.begin(), sharding.begin(), sharding.end());
  const std::string translated = translated_note(run, recipe);
  std::string text =
      fmt::format("# {}: trial {}, for {} and {}{}. What is not here stays as it is in your script.\n", run.name,
                  run.answer.best->trial, recipe.versions, counted(run.session.cluster.ranks(), "rank"), translated);
  if (is_sharded) text += "# Megatron-FSDP changes the format of checkpoints.\n";
  if (!said.absent.empty()) {
    text += fmt::format("# Not to be in your own command: {}\n", join(said.absent, " "));
  }
  for (const auto& [name, value] : said.env) text += fmt::format("export {}\n", shell_line({name + "=" + value}));
  return {{{kMegatronFile, text + array_of(said.words),
            "source it, then torchrun ... pretrain_gpt.py YOUR FLAGS \"${KRIGTUNE_ARGS[@]}\"" + translated}},
          std::move(said.omissions)};
}

}  // namespace krigtune::result
