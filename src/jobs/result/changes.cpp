// Writes changes.md. To find the parameter that a place belongs to, it reverts one parameter at a time and looks which
// places change.
#include "jobs/result/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"
#include "core/text.h"
#include "deepspeed/result/ds_result.h"
#include "deepspeed/result/loss_check.h"
#include "jobs/recipe/config_values.h"
#include "report/changes_page.h"
#include "runner/command.h"
#include "runner/job_command.h"

namespace krigtune::jobs {
namespace {

bool is_flag_word(const std::string& word) {
  return word.size() > 1 && word.front() == '-' && !space::is_number(space::value_from_text(word));
}

void say(std::vector<SaidPlace>& places, const std::string& place, const std::string& text) {
  const auto known = std::find_if(places.begin(), places.end(), [&](const auto& said) { return said.place == place; });
  if (known == places.end()) {
    places.push_back({place, text});
  } else {
    known->text = text;
  }
}

const SaidPlace* find_place(const std::vector<SaidPlace>& places, const std::string& place) {
  const auto found = std::find_if(places.begin(), places.end(), [&](const auto& said) { return said.place == place; });
  return found == places.end() ? nullptr : &*found;
}

// Returns the configuration of the trial to which the gains refer.
std::optional<space::Configuration> before_of(const report::RunView& run) {
  if (run.session.baseline) return run.session.baseline;
  const journal::Trial* reference = search::find_trial(run.history, run.answer.best->reference_trial);
  return reference == nullptr ? std::nullopt : std::optional(reference->proposal.configuration);
}

class JobChanges {
 public:
  JobChanges(const report::RunView& run, const space::Configuration& before) : run_(run), before_(before) {
    for (const runner::JobFlag& flag : runner::command_of(run.session.runner)->job.flags) {
      for (const auto& entry : flag.words) {
        if (entry.words.size() == 1) switches_.push_back(entry.words.front());
      }
    }
    after_places_ = places(run.answer.best->configuration);
    best_places_ = places_of_trial(run.answer.best->configuration);
    before_places_ = places_of_trial(before);
    find_owners();
  }

  std::vector<report::ChangedPlace> rows() const {
    const std::vector<SaidPlace> before =
        said_places(own_command(run_.session, before_, run_.answer.best->configuration, place()), switches_);
    std::vector<report::ChangedPlace> rows;
    for (const SaidPlace& now : after_places_) {
      const SaidPlace* was = find_place(before, now.place);
      if (was == nullptr || was->text != now.text) rows.push_back(row(now.place, was, &now));
    }
    for (const SaidPlace& was : before) {
      if (find_place(after_places_, was.place) == nullptr) rows.push_back(row(was.place, &was, nullptr));
    }
    return rows.empty() ? rows_of_parameters() : rows;
  }

 private:
  TrainingPlace place() const {
    const std::filesystem::path directory = std::filesystem::absolute(run_.directory).lexically_normal();
    return {directory, directory / "config_optimal.json", directory / "result_optimal.json", run_.answer.best->trial};
  }

  std::vector<SaidPlace> places(const space::Configuration& configuration) const {
    return said_places(training_command(run_.session, configuration, place()), switches_);
  }

  // Where a trial states its values. It states all of them, but the command that trains only what differs from the
  // user's own. Empty if there is no such trial, because its places depend on other changes too.
  std::vector<SaidPlace> places_of_trial(const space::Configuration& configuration) const {
    try {
      const runner::JobCommand command(*runner::command_of(run_.session.runner), run_.session.space);
      const TrainingPlace at = place();
      const runner::JobCommand::Start start = command.start(configuration, {.dir = at.directory.string(),
                                                                            .config = at.config.string(),
                                                                            .result = at.result.string(),
                                                                            .trial = at.trial});
      return said_places({start.argv, start.environment, start.files}, switches_);
    } catch (const UserError&) {
      return {};
    }
  }

  // If several changes affect a place, it belongs to the one with the fewest other effects.
  void find_owners() {
    std::map<std::string, std::size_t> fewest;
    for (const search::Change& change : run_.answer.best->changes.each) {
      const std::vector<std::string> changed = places_of(change);
      for (const std::string& place : changed) {
        const auto known = fewest.find(place);
        if (known != fewest.end() && known->second <= changed.size()) continue;
        fewest[place] = changed.size();
        owners_[place] = change.parameter;
      }
    }
  }

  std::vector<std::string> places_of(const search::Change& change) const {
    space::Configuration other = run_.answer.best->configuration;
    other.erase(change.parameter);
    if (change.before) other.set(change.parameter, *change.before);
    const std::vector<SaidPlace> others = places_of_trial(other);
    std::vector<std::string> changed;
    if (others.empty()) return changed;
    for (const auto& [from, to] : {std::pair{&best_places_, &others}, std::pair{&others, &best_places_}}) {
      for (const SaidPlace& said : *from) {
        const SaidPlace* now = find_place(*to, said.place);
        const bool differs = now == nullptr || now->text != said.text;
        if (differs && !is_one_of(said.place, changed)) changed.push_back(said.place);
      }
    }
    return changed;
  }

  static std::string cell(const SaidPlace* said) {
    if (said == nullptr) return "";
    return said->text.empty() ? "there" : fmt::format("`{}`", said->text);
  }

  report::ChangedPlace row(const std::string& name, const SaidPlace* was, const SaidPlace* now) const {
    const auto owner = owners_.find(name);
    const std::string parameter = owner == owners_.end() ? "" : owner->second;  // empty if trial 0 had the same value
    // Trials state what the command leaves to a default, as trial 0 did.
    const SaidPlace* in_trial_0 = was == nullptr ? find_place(before_places_, name) : nullptr;
    const bool is_known = in_trial_0 != nullptr && !in_trial_0->text.empty();
    const std::string had = is_known ? fmt::format("`{}` in trial 0", in_trial_0->text) : cell(was);
    return {fmt::format("`{}`", name), had, now == nullptr ? "left out" : cell(now),
            report::gain_of_parameter(run_.session.objective, *run_.answer.best, parameter)};
  }

  // For a command that reads its configuration from a file.
  std::vector<report::ChangedPlace> rows_of_parameters() const {
    std::vector<report::ChangedPlace> rows;
    for (const search::Change& change : run_.answer.best->changes.each) {
      const auto text = [](const std::optional<space::Value>& value) {
        return value ? fmt::format("`{}`", space::to_string(*value)) : "";
      };
      rows.push_back({fmt::format("`{}`", change.parameter), text(change.before), text(change.after),
                      report::gain_of_parameter(run_.session.objective, *run_.answer.best, change.parameter)});
    }
    return rows;
  }

  const report::RunView& run_;
  const space::Configuration& before_;
  std::vector<std::string> switches_;
  std::vector<SaidPlace> after_places_;
  std::vector<SaidPlace> best_places_;         ///< in the command of the best trial
  std::vector<SaidPlace> before_places_;       ///< in that of trial 0
  std::map<std::string, std::string> owners_;  ///< parameter of a place
};

}  // namespace

std::vector<SaidPlace> said_places(const TrainingCommand& command, const std::vector<std::string>& switches) {
  std::vector<SaidPlace> places;
  for (const auto& [name, value] : command.environment) say(places, "$" + name, value);
  const std::vector<std::string>& words = command.argv;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    if (is_flag_word(words[i]) && equals == std::string::npos) {
      const bool has_value = i + 1 < words.size() && !is_flag_word(words[i + 1]) && !is_one_of(words[i], switches);
      say(places, words[i], has_value ? words[i + 1] : "");
    } else if (equals != std::string::npos && equals > 0) {
      const std::size_t first = words[i].find_first_not_of('+');
      say(places, words[i].substr(first, equals - first), words[i].substr(equals + 1));
    }
  }
  for (const auto& [name, text] : command.files) {
    const std::string suffix = std::filesystem::path(name).extension().string();
    if (!is_one_of(suffix, std::array{".yaml", ".yml", ".json", ".toml"})) continue;
    for (const auto& [key, value] : config_values_of(text, suffix, name)) {
      say(places, fmt::format("{}: {}", name, key), space::to_string(value));
    }
  }
  return places;
}

std::optional<std::string> changes_of_job(const report::RunView& run) {
  if (!run.answer.best || runner::command_of(run.session.runner) == nullptr) return std::nullopt;
  const std::optional<space::Configuration> before = before_of(run);
  if (!before) return std::nullopt;
  report::ChangesPage page;
  page.title = fmt::format("What is changed in the command of {}", run.name);
  page.places = "flag, key or variable";
  if (const std::optional<deepspeed::LossCheck> check = deepspeed::loss_check(run)) {
    (deepspeed::is_warning(*check) ? page.warnings : page.notes).push_back(deepspeed::loss_check_sentence(*check));
  }
  const std::vector<std::string> advice = deepspeed::batch_advice_lines(run);
  if (!advice.empty()) page.notes.push_back(join(advice, "\n"));
  try {
    page.changes = JobChanges(run, *before).rows();
  } catch (const UserError& error) {  // if a file of the user is gone, the page is still worth writing
    page.warnings.emplace_back(error.what());
  }
  return report::changes_page(page, run.session.objective, *run.answer.best);
}

}  // namespace krigtune::jobs
