// Writes best.json: what to train with, and the evidence.

#include "deepspeed/result/ds_result.h"
#include "deepspeed/result/loss_check.h"
#include "report/change_text.h"
#include "report/front_text.h"
#include "report/job_text.h"
#include "result/writers.h"
#include "session/objectives.h"

namespace krigtune::result {

Json best_document(const report::RunView& run) {
  if (!run.answer.best) return nullptr;
  const answer::Answer& answer = run.answer;
  const search::Recommendation& best = *answer.best;
  Json json;
  json["schema_version"] = 1;
  json["session"] = run.name;
  json["strategy"] = search::to_string(run.options.strategy);
  json["seed"] = run.options.seed;
  json["objective"] = {{"metric", run.session.objective.metric},
                       {"direction", run.session.objective.maximize ? "maximize" : "minimize"}};
  if (!run.session.others.empty()) {
    json["objectives"] = session::objectives_json(run.session);
    json["front"] = report::front_json(run.session, answer.front);
    json.update(report::pick_json(run.session, answer));
  }
  if (!answer.emulated_network.empty()) {
    json["label"] = answer.emulated_network;
    json["emulated_network"] = workload::to_json(run.session.cluster)["emulate_network"];
  }
  if (const auto check = deepspeed::loss_check(run)) json["loss_check"] = deepspeed::loss_check_json(check);
  json["trial"] = best.trial;
  json["configuration"] = space::to_json(best.configuration);
  json["value"] = json_number(best.value);
  json["measurements"] = best.measurements;
  json["value_sem"] = best.value_sem > 0.0 ? json_number(best.value_sem) : Json(nullptr);
  json["posterior"] = {{"mean", json_number(best.posterior_mean)},
                       {"lower_95", json_number(best.lower_95)},
                       {"upper_95", json_number(best.upper_95)}};
  json["reference"] = {{"trial", best.reference_trial},
                       {"value", json_number(best.reference_value)},
                       {"measurements", best.reference_measurements}};
  json["gain"] = json_number(best.gain);
  for (const answer::Remark& remark : answer.remarks) json[remark.name] = remark.text;
  if (Json changes = report::changes_json(best.changes); !changes.is_null()) json["changes"] = std::move(changes);
  if (best.job) json["job"] = report::job_json(best.job);
  if (Json advice = deepspeed::batch_advice_json(run); !advice.is_null()) json["batch_advice"] = std::move(advice);
  json["trials"] = Json::object();
  for (const auto& [status, count] : answer.trials.by_status) json["trials"][status] = count;
  return json;
}

std::optional<std::string> best_json(const report::RunView& run) {
  const Json json = best_document(run);
  return json.is_null() ? std::nullopt : std::optional(json.dump(2) + "\n");
}

}  // namespace krigtune::result
