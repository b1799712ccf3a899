#include "report/front_text.h"
#include "report/labels.h"
#include "result/export.h"
#include "result/writers.h"
#include "search/trials/history.h"
#include "session/objectives.h"

namespace krigtune::result {
namespace {

Json optional_number(std::optional<double> number) { return number ? json_number(*number) : Json(nullptr); }

}  // namespace

Json trial_json(const journal::Trial& trial, const session::Objective& objective) {
  const trial::Measured* measured = report::measured_of(trial);
  const auto* bounded = trial.outcome ? std::get_if<trial::Bounded>(&*trial.outcome) : nullptr;
  const char* open = trial.waiting ? "waiting" : "running";
  Json json = {{"trial", trial.number},
               {"status", trial.outcome ? trial::status_text(*trial.outcome) : open},
               {"reason", trial.outcome ? trial::reason_text(*trial.outcome) : ""},
               {"strategy", trial.proposal.strategy},
               {"configuration", space::to_json(trial.proposal.configuration)},
               {"value", optional_number(search::value_of(trial, objective))},
               {"bound", bounded != nullptr ? json_number(bounded->at_best) : Json(nullptr)},
               {"predicted_value", optional_number(trial.proposal.predicted_value)},
               {"metrics", Json::object()}};
  if (measured != nullptr) {
    for (const auto& [name, value] : measured->metrics) json["metrics"][name] = json_number(value);
  }
  json["value_sem"] = optional_number(report::value_sem_of(trial));
  const std::optional<Bytes> peak = report::peak_memory_of(trial);
  json["peak_memory_bytes"] = peak ? Json(peak->count) : Json(nullptr);
  json["wall_s"] = json_number(trial.wall_s);
  json["started_at"] = trial.started_at;
  json["where"] = trial.where;
  return json;
}

Export export_json(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  Json document = {{"schema_version", 1}, {"session", run.name}};
  document["objective"] = {{"metric", run.session.objective.metric},
                           {"direction", run.session.objective.maximize ? "maximize" : "minimize"}};
  if (!run.session.others.empty()) {
    document["objectives"] = session::objectives_json(run.session);
    document["front"] = report::front_json(run.session, run.answer.front);
    document.update(report::pick_json(run.session, run.answer));
  }
  document["best"] = is_recommended(run) ? best_document(run) : Json(nullptr);
  document["trials"] = Json::array();
  for (const journal::Trial& trial : run.history) {
    if (trial.outcome) document["trials"].push_back(trial_json(trial, run.session.objective));
  }
  return {{{"run.json", document.dump(2) + "\n", "the best with its evidence, and an object for each trial"}}};
}

}  // namespace krigtune::result
