// What published runs of similar jobs say of a plan.
#include "programs/krigtune/plan_opinion.h"

#include "programs/krigtune/plan_tables.h"

namespace krigtune::cli {

std::vector<opinion::NearRun> published_runs_near(const session::Session& session, const forecast::PlanStudy& study) {
  if (!session.workload || study.best.empty() || !study.best.front().forecast.cost) return {};
  return opinion::KnownJobs().near(opinion::subject_of(*session.workload, session.cluster));
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

void print_opinion(std::ostream& out, const std::vector<opinion::NearRun>& near) {
  if (near.empty()) return;
  out << "\nSecond opinion\n";
  for (const std::string& sentence : opinion::sentences(near)) out << wrapped("  " + sentence, 4);
}

}  // namespace krigtune::cli
