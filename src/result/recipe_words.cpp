#include "result/recipe_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/error.h"
#include "core/text.h"
#include "jobs/recipe/places.h"
#include "runner/command.h"
#include "space/well_known.h"

namespace krigtune::result {
namespace {

class RecipeWriter {
 public:
  RecipeWriter(const jobs::Recipe& recipe, const std::vector<std::string>& command,
               const space::Configuration& configuration, const std::string& file)
      : recipe_(recipe),
        job_(jobs::read_job(recipe, {command, {}, {}})),
        configuration_(configuration),
        own_(jobs::own_values(recipe, job_)),
        file_(file) {}

  RecipeWords write() {
    for (const jobs::RecipeValue& parameter : recipe_.parameters) {
      const space::Value* value = configuration_.find(parameter.name);
      if (value != nullptr && !has_no_effect(configuration_, parameter.name)) say(parameter, *value);
    }
    say_batch();
    for (const auto& [name, value] : configuration_) {
      if (recipe_.find(name) == nullptr) omit_unknown(name, value);
    }
    for (const jobs::RecipeVariable& variable : recipe_.training_env) {
      if (jobs::applies(variable.where, job_)) made_.env.emplace_back(variable.name, variable.value);
    }
    made_.words.insert(made_.words.end(), last_.begin(), last_.end());
    return std::move(made_);
  }

 private:
  void say(const jobs::RecipeValue& parameter, const space::Value& value) {
    const jobs::Place* place = jobs::written_place(parameter, job_);
    if (place == nullptr) return omit_unless_own(parameter.name, value, "this kind of sharding leaves no choice of it");
    if (!place->words.empty()) return say_in_words(parameter.name, value, *place);
    const std::int64_t ranks = job_.ranks.value_or(1);
    const std::optional<std::string> text = jobs::text_of(value, *place, {ranks, data_ranks_of(configuration_, ranks)});
    if (!text) return omit_unless_own(parameter.name, value, no_word());
    add(*place, jobs::words_for(*place, *text));
  }

  void say_in_words(const std::string& name, const space::Value& value, const jobs::Place& place) {
    const auto found = std::find_if(place.words.begin(), place.words.end(),
                                    [&](const auto& entry) { return space::same_value(entry.first, value); });
    if (found == place.words.end()) return omit_unless_own(name, value, no_word());
    add(place, found->second);
    note_absent(place, value, found->second);
  }

  // Records the flags of the parameter's other values.
  void note_absent(const jobs::Place& place, const space::Value& value, const std::vector<std::string>& said) {
    std::vector<std::string> fine = said;
    std::vector<std::string> others;
    for (const auto* lists : {&place.words, &place.also}) {
      for (const auto& [meant, words] : *lists) {
        std::vector<std::string>& into = space::same_value(meant, value) ? fine : others;
        for (const jobs::FlagWords& flag : jobs::flags_in(words)) into.push_back(flag.flag);
      }
    }
    for (const std::string& flag : others) {
      if (!is_one_of(flag, fine) && !is_one_of(flag, made_.absent)) made_.absent.push_back(flag);
    }
  }

  void add(const jobs::Place& place, const std::vector<std::string>& words) {
    std::vector<std::string>& where = place.tail.empty() || !place.flags.empty() ? made_.words : last_;
    where.insert(where.end(), words.begin(), words.end());
  }

  std::string no_word() const { return fmt::format("{} has no word for that value", recipe_.name); }

  void omit(const std::string& name, const space::Value& value, const std::string& why) {
    made_.omissions.push_back({file_, name, value, why});
  }

  void omit_unless_own(const std::string& name, const space::Value& value, const std::string& why) {
    const space::Value* own = own_.configuration.find(name);
    const bool is_own = own != nullptr && space::same_value(*own, value);
    if (!is_own && !asks_for_nothing(configuration_, name)) omit(name, value, why);
  }

  void omit_unknown(const std::string& name, const space::Value& value) {
    const bool is_batch = name == space::kAccumulation && !recipe_.train_batch_size.places.empty();
    if (is_batch || asks_for_nothing(configuration_, name)) return;
    if (const space::Value* fixed = recipe_.fixed.find(name)) {
      if (!space::same_value(*fixed, value)) {
        omit(name, value, fmt::format("{} always trains with {}", recipe_.name, space::to_string(*fixed)));
      }
      return;
    }
    const bool is_known = space::find_well_known(name) != nullptr;
    omit(name, value,
         is_known ? fmt::format("{} has no such setting", recipe_.name)
                  : "it is a parameter of your own; the command in cmd_optimal.txt says it");
  }

  // Such jobs take the sequences of a step, and the micro-steps follow.
  void say_batch() {
    assert(job_.ranks.has_value());
    const jobs::Place* place = jobs::written_place(recipe_.train_batch_size, job_);
    if (place == nullptr) return;
    const auto count = [&](const char* name) { return configuration_.integer(name, 1); };
    const std::int64_t batch = space::sequences_of_step(
        count(space::kMicroBatch), data_ranks_of(configuration_, *job_.ranks), count(space::kAccumulation));
    add(*place, jobs::words_for(*place, std::to_string(batch)));
  }

  const jobs::Recipe& recipe_;
  const jobs::RecipeJob job_;
  const space::Configuration& configuration_;
  const jobs::OwnValues own_;
  const std::string& file_;
  std::vector<std::string> last_;  ///< words that come after all others
  RecipeWords made_;
};

}  // namespace

RecipeWords words_by_recipe(const jobs::Recipe& recipe, const std::vector<std::string>& command,
                            const space::Configuration& configuration, const std::string& file) {
  return RecipeWriter(recipe, command, configuration, file).write();
}

std::string translated_note(const report::RunView& run, const jobs::Recipe& recipe) {
  return runner::recipe_of(run.session.runner) == recipe.name ? "" : "; translated: no trial ran with this program";
}

void require_known_names(const report::RunView& run, const char* format) {
  if (run.session.workload || !runner::recipe_of(run.session.runner).empty()) return;
  throw UserError(fmt::format("the session has no workload, so nobody knows what its parameters mean to {}", format),
                  "name its model under /workload, or export as csv");
}

}  // namespace krigtune::result
