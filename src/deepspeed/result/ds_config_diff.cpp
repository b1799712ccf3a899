// Writes ds_config_diff.md: the keys of the user's ds_config.json and the flags of the user's command that the best
// configuration changes, each with its gain.
#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "deepspeed/job/ds_command.h"
#include "deepspeed/job/ds_config.h"
#include "deepspeed/job/ds_trial.h"
#include "deepspeed/result/ds_result.h"
#include "deepspeed/result/loss_check.h"
#include "report/changes_page.h"
#include "space/well_known.h"

namespace krigtune::deepspeed {
namespace {

using Pointer = Json::json_pointer;

struct KeyChange {
  Pointer key;
  const Json* before = nullptr;  ///< nullptr: the key was not there
  const Json* after = nullptr;
};

void find_changes(const Json& before, const Json& after, const Pointer& at, std::vector<KeyChange>& changes) {
  for (const auto& [key, value] : before.items()) {
    const auto now = after.find(key);
    if (now == after.end()) {
      changes.push_back({at / key, &value, nullptr});
    } else if (value.is_object() && now->is_object()) {
      find_changes(value, *now, at / key, changes);
    } else if (value != *now) {
      changes.push_back({at / key, &value, &*now});
    }
  }
  for (const auto& [key, value] : after.items()) {
    if (!before.contains(key)) changes.push_back({at / key, nullptr, &value});
  }
}

bool is_within(const std::string& pointer, const std::string& section) {
  return pointer == section || pointer.rfind(section + "/", 0) == 0;
}

class Diff {
 public:
  Diff(const DsUserJob& job, const session::Objective& objective, const search::Recommendation& best)
      : job_(job), objective_(objective), best_(best), tunables_(tunables_of(job.config, job.source)) {}

  void add_keys(std::vector<report::ChangedPlace>& rows) const {
    const Json after = ds_config_of(job_, best_.configuration);
    std::vector<KeyChange> changes;
    find_changes(job_.config, after, Pointer(), changes);
    for (const KeyChange& change : changes) rows.push_back(row(change));
  }

  void add_flags(std::vector<report::ChangedPlace>& rows) const {
    const DsCommand command = read_ds_command(job_.command);
    const auto mappings = flag_mappings(command, job_.arg_mappings);
    const space::Configuration before = values_of_flags(command, mappings);
    DsCommand changed = command;
    changed.argv = ds_command_of(job_, best_.configuration, command.config);
    const space::Configuration after = values_of_flags(changed, mappings);
    for (const FlagMapping& mapping : mappings) {
      const space::Value* was = before.find(mapping.name);
      const space::Value* is = after.find(mapping.name);
      if (is == nullptr || (was != nullptr && space::same_value(*was, *is))) continue;
      rows.push_back({fmt::format("`{}`", mapping.flag), was == nullptr ? "" : space::to_string(*was),
                      space::to_string(*is), said_of(mapping.name)});
    }
  }

 private:
  static std::string cell(const Json* value) { return value == nullptr ? "" : fmt::format("`{}`", value->dump()); }

  report::ChangedPlace row(const KeyChange& change) const {
    std::string key = change.key.to_string().substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    const std::string after = change.after == nullptr ? "left out" : cell(change.after);
    return {fmt::format("`{}`", key), cell(change.before), after, said_of_key(change.key)};
  }

  std::string said_of_key(const Pointer& key) const {
    const std::string pointer = key.to_string();
    for (const DsTunable& tunable : tunables_) {
      if (tunable.pointer == pointer) return said_of(tunable.name);
    }
    for (const space::WellKnownParameter& knob : space::well_known_parameters()) {
      if (*knob.deepspeed.key != '\0' && is_within(knob.deepspeed.key, pointer)) return said_of(knob.name);
    }
    if (pointer == "/train_batch_size") return "what micro-batch, accumulation and ranks make";
    if (pointer == "/autotuning") return "it would end a training after its profile steps";
    return "";
  }

  std::string said_of(const std::string& name) const { return report::gain_of_parameter(objective_, best_, name); }

  const DsUserJob& job_;
  const session::Objective& objective_;
  const search::Recommendation& best_;
  std::vector<DsTunable> tunables_;
};

DsRemarks remarks_of(const report::RunView& run) {
  DsRemarks remarks;
  const DeepSpeedSpec& job = *runner::ds_job_of(run.session.runner);
  if (has_changed_since(job)) {
    remarks.warnings.push_back(
        fmt::format("{} has changed since the session began; all of this is about what it said "
                    "then, {}",
                    job.ds_config.filename().string(), begun_ds_config_path(run.directory).filename().string()));
  }
  if (const std::optional<LossCheck> check = loss_check(run)) {
    (is_warning(*check) ? remarks.warnings : remarks.notes).push_back(loss_check_sentence(*check));
  }
  const std::vector<std::string> advice = batch_advice_lines(run);
  if (!advice.empty()) remarks.notes.push_back(join(advice, "\n"));
  return remarks;
}

}  // namespace

std::string ds_config_diff(const DsUserJob& job, const session::Objective& objective,
                           const search::Recommendation& best, const DsRemarks& remarks) {
  const Diff diff(job, objective, best);
  report::ChangesPage page{
      fmt::format("What is changed in {}", job.source), remarks.warnings, "key or flag", {}, remarks.notes};
  diff.add_keys(page.changes);
  diff.add_flags(page.changes);
  return report::changes_page(page, objective, best);
}

std::optional<std::string> ds_config_difference(const report::RunView& run) {
  const std::optional<DsUserJob> job = run.answer.best ? ds_user_job(run.session) : std::nullopt;
  if (!job) return std::nullopt;
  return ds_config_diff(*job, run.session.objective, *run.answer.best, remarks_of(run));
}

}  // namespace krigtune::deepspeed
