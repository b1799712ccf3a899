#include "jobs/session/seen_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "jobs/command/command.h"
#include "jobs/command/words.h"
#include "jobs/recipe/shipped_recipes.h"
#include "space/parallel_layout.h"
#include "space/parameter.h"
#include "space/well_known.h"

namespace krigtune::jobs {
namespace {

std::string ranks_text(const SeenFacts& seen) {
  const std::string where = seen.nodes == 1 ? "one node" : counted(seen.nodes, "node");
  return fmt::format("{} on {}", counted(*seen.ranks, "rank"), where);
}

std::string gpu_text(const SeenFacts& seen) {
  const std::string memory = seen.rank_gib ? fmt::format(" with {:.1f} GiB", *seen.rank_gib) : "";
  return fmt::format("the GPU {}{}", seen.gpu, memory);
}

// Returns "a, b and c".
std::string listed(const std::vector<std::string>& words) {
  if (words.size() < 2) return join(words, "");
  return join({words.begin(), words.end() - 1}, ", ") + " and " + words.back();
}

std::vector<std::string> what_is_seen(const SeenFacts& seen) {
  std::vector<std::string> texts;
  if (seen.ranks) texts.push_back(ranks_text(seen));
  if (!seen.gpu.empty()) texts.push_back(gpu_text(seen));
  if (!seen.network.empty()) texts.push_back("the network " + seen.network);
  if (!seen.framework.empty()) texts.push_back("the framework " + seen.framework);
  return texts;
}

// Returns "" if nothing is.
std::string what_is_assumed(const SeenFacts& seen) {
  if (seen.gpu.empty()) return "not seen: the GPU, which is taken for an H100; ";
  return seen.is_in_table ? "" : "not known: the speed of this GPU, which is taken for an H100's; ";
}

std::vector<std::string> what_is_inferred(const SeenFacts& seen) {
  std::vector<std::string> texts;
  if (!seen.ranks) {
    texts.push_back(seen.missing_ranks.empty() ? "the number of ranks"
                                               : fmt::format("the number of ranks (say it: {})", seen.missing_ranks));
  }
  if (seen.nodes > 1 && seen.network.empty()) texts.emplace_back("the network between the nodes");
  if (seen.framework.empty()) texts.emplace_back("the framework");
  texts.emplace_back("the model");
  return texts;
}

}  // namespace

std::string seen_sentence(const SeenFacts& seen) {
  const std::vector<std::string> known = what_is_seen(seen);
  return fmt::format("{}{}inferred from the trials: {}", known.empty() ? "" : fmt::format("seen: {}; ", listed(known)),
                     what_is_assumed(seen), listed(what_is_inferred(seen)));
}

std::string remark_on_nodes(const std::string& gpu, const std::string& id, const std::string& network) {
  const std::string like_this = fmt::format("the job's nodes are taken for nodes like this one, {}", gpu);
  if (!network.empty()) {
    return fmt::format("{} with the network {}; \"cluster\" in a session says otherwise", like_this, network);
  }
  if (id.empty()) return like_this + "; \"cluster\" in a session says otherwise";
  return fmt::format(
      "{}; their network is not seen, so only the memory of the GPU counts: for its speed write \"gpu\": \"{}\" and a "
      "\"network\" in \"cluster\" of a session",
      like_this, id);
}

namespace {

// Of `accelerate launch` (accelerate/commands/launch.py).
constexpr std::array<std::pair<const char*, const char*>, 3> kOptionsOfAccelerate = {
    {{"--use_deepspeed", "deepspeed"}, {"--use_fsdp", "fsdp"}, {"--use_megatron_lm", "megatron"}}};

std::string framework_of_launcher(const Command& command) {
  for (const Stage& stage : command.stages) {
    if (stage.launcher == Launcher::kDeepSpeed) return "deepspeed";
    if (stage.launcher != Launcher::kAccelerate) continue;
    for (const auto& [option, framework] : kOptionsOfAccelerate) {
      if (!occurrences(command.argv, stage.begin + 1, stage.end, option).empty()) return framework;
    }
  }
  return "";
}

// Returns nullptr also where several recipes know the command.
const Recipe* recipe_of(const std::vector<std::string>& words) {
  try {
    return recognise(words, shipped_recipes());
  } catch (const UserError&) {  // the recipe is not needed
    return nullptr;
  }
}

}  // namespace

std::string framework_named_by(const JobInputs& inputs, const Recipe* recipe) {
  std::string of_launcher = framework_of_launcher(read_command(inputs.argv));
  if (!of_launcher.empty()) return of_launcher;
  if (recipe == nullptr) recipe = recipe_of(inputs.argv);
  // Any script under accelerate may train as it likes.
  if (recipe == nullptr || recipe->is_last_resort) return "";
  return framework_of(*recipe, read_any_job(*recipe, inputs));
}

std::string text_of_key(const Json& block, const char* key) {
  const bool has_text = block.is_object() && block.contains(key) && block[key].is_string();
  return has_text ? block[key].get<std::string>() : "";
}

JobRequest request_of_session(const Json& session, const JobRequest& surroundings) {
  JobRequest request = surroundings;
  request.command.clear();
  const bool is_open = session.is_object() && !session.contains("workload") && !session.contains("cluster");
  if (!is_open || !session.contains("space") || !session.contains("runner")) return request;
  const Json& runner = session["runner"];
  if (!runner::traits_of_block(runner).starts_a_command || !runner.contains("argv")) return request;
  for (const Json& word : runner["argv"]) {
    if (!word.is_string()) return surroundings;  // its command is empty
    request.command.push_back(word.get<std::string>());
  }
  if (runner.contains("cwd") && runner["cwd"].is_string()) request.directory /= runner["cwd"].get<std::string>();
  std::map<std::string, std::string> own;
  if (runner.contains("env") && runner["env"].is_object()) {
    for (const auto& [name, value] : runner["env"].items()) {
      if (value.is_string()) own[name] = value.get<std::string>();
    }
  }
  request.variable = [own, outer = surroundings.variable](const std::string& name) {
    const auto found = own.find(name);
    return found == own.end() ? outer(name) : std::optional(found->second);
  };
  return request;
}

bool predicts_steps(const session::Session& session) {
  const trial::Metric* metric = session::metric_of(session.objective);
  const std::vector<space::Parameter>& parameters = session.space.parameters();
  return metric != nullptr && metric->is_speed &&
         std::any_of(parameters.begin(), parameters.end(),
                     [](const space::Parameter& parameter) { return !space::well_known_name(parameter.name).empty(); });
}

bool splits_over_more(const Json& space, std::int64_t ranks) {
  std::vector<space::Parameter> parameters;
  try {
    parameters = space::read_parameters(space, "the command", "/space");
  } catch (const UserError&) {  // the reader of the session reports it better
    return false;
  }
  return std::any_of(parameters.begin(), parameters.end(), [&](const space::Parameter& parameter) {
    const std::string_view known = space::well_known_name(parameter.name);
    return space::divides_ranks(known) &&
           std::any_of(parameter.values.begin(), parameter.values.end(),
                       [&](const space::Value& value) { return space::integer_of(value).value_or(1) > ranks; });
  });
}

}  // namespace krigtune::jobs
