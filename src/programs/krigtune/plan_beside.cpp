// What a plan says beside its configurations: published runs of similar jobs, and the whole training.
#include "programs/krigtune/plan_beside.h"

#include <fmt/format.h>

#include "core/text.h"
#include "programs/krigtune/document.h"
#include "programs/krigtune/plan_tables.h"
#include "report/fleet_text.h"
#include "report/whole_run_text.h"

namespace krigtune::cli {

BesidePlan beside_plan(const session::Session& session, const forecast::PlanStudy& study,
                       std::optional<double> tokens) {
  BesidePlan beside;
  if (!session.workload || study.best.empty() || !study.best.front().forecast.cost) return beside;
  beside.near = opinion::KnownJobs().near(opinion::subject_of(*session.workload, session.cluster));
  const std::int64_t seq_len = session.workload->model.seq_len;
  const session::Amount amount = tokens ? session::Amount{tokens, std::nullopt} : session.clusters.amount;
  if (!amount.is_stated()) return beside;
  PlannedRun run{amount.all_tokens(seq_len), study.analysed + 1, fleet::step_time_range(*session.workload),
                 std::nullopt};
  const double tokens_per_s = study.analysed_candidate().forecast.samples_per_s * static_cast<double>(seq_len);
  run.whole = fleet::whole_run(run.tokens / tokens_per_s, session.cluster.ranks(), session.run);
  beside.run = run;
  return beside;
}

Json opinion_json(const std::vector<opinion::NearRun>& near) {
  Json json = Json::array();
  for (const opinion::NearRun& one : near) {
    const opinion::KnownRun& run = one.run;
    json.push_back({{"run", run.id},
                    {"source", run.source},
                    {"source_part", run.source_part},
                    {"model", run.model},
                    {"gpu", run.subject.gpu},
                    {"gpus", run.subject.ranks},
                    {"seq_len", run.subject.seq_len},
                    {"precision", run.subject.precision},
                    {"configuration", space::to_json(run.configuration)},
                    {"assumed", run.assumed},
                    {"distance", json_number(one.distance)},
                    {"differences", one.differences},
                    {"published_step_time_s", json_number(run.step_time_s)},
                    {"predicted_step_time_s", json_number(one.predicted_s)},
                    {"reached", json_number(one.reached())}});
  }
  return json;
}

Json whole_run_json(const fleet::WholeRun& whole) {
  return {{"wall_s", json_number(whole.wall_s)},
          {"steps_s", json_number(whole.steps_s)},
          {"evaluation_s", json_number(whole.evaluation_s)},
          {"checkpoints_s", json_number(whole.checkpoints_s)},
          {"failures_s", json_number(whole.failures_s)},
          {"failures", json_number(whole.failures)},
          {"checkpoint_every_s", json_or_null(whole.interval_s)},
          {"best_checkpoint_every_s", json_or_null(whole.best_interval_s)},
          {"best_wall_s", json_or_null(whole.best_wall_s)},
          {"energy_kwh", json_or_null(whole.energy_kwh)}};
}

Json planned_run_json(const std::optional<PlannedRun>& run) {
  if (!run) return nullptr;
  Json json = {{"tokens", json_number(run->tokens)}};
  if (!run->whole) {
    json["wall_s"] = nullptr;
    return json;
  }
  json.update(whole_run_json(*run->whole));
  json["wall_s_low"] = json_number(run->whole->wall_s * run->range.low);
  json["wall_s_high"] = json_number(run->whole->wall_s * run->range.high);
  return json;
}

void print_opinion(std::ostream& out, const BesidePlan& beside) {
  if (beside.near.empty()) return;
  out << "\nSecond opinion\n";
  for (const std::string& sentence : opinion::sentences(beside.near)) out << wrapped("  " + sentence, 4);
}

std::vector<std::string> planned_run_lines(const session::Session& session, const BesidePlan& beside) {
  if (!beside.run) return {};
  std::vector<std::string> lines = {
      fmt::format("{} tokens with row {}", count_text(beside.run->tokens), beside.run->row)};
  const std::vector<std::string> more =
      beside.run->whole ? report::whole_run_lines(*beside.run->whole, beside.run->range)
                        : std::vector<std::string>{fleet::hopeless_text(session.run, session.cluster.ranks())};
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

void print_planned_run(std::ostream& out, const session::Session& session, const BesidePlan& beside) {
  if (!beside.run) return;
  out << "\nThe whole training\n";
  for (const std::string& line : planned_run_lines(session, beside)) out << wrapped("  " + line, 4);
}

}  // namespace krigtune::cli
