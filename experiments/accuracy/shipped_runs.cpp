#include "shipped_runs.h"

#include <map>

#include "core/error.h"
#include "core/json.h"
#include "cost/time/step_cost.h"
#include "opinion/known_runs.h"

namespace krigtune::accuracy {
namespace {

bool means_the_same(const Json& job, const Json& whole) {
  try {
    return workload::to_json(workload::read_workload(job, "job", "")) == whole;
  } catch (const UserError&) {
    return false;
  }
}

// Removes the keys of the object at `place` that change nothing.
void leave_out_defaults(Json& job, const Json::json_pointer& place, const Json& whole) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : job[place].items()) keys.push_back(key);
  for (const std::string& key : keys) {
    Json shorter = job;
    shorter[place].erase(key);
    if (means_the_same(shorter, whole)) {
      job = std::move(shorter);
    } else if (job[place / key].is_object()) {
      leave_out_defaults(job, place / key, whole);
    }
  }
}

// Sequence and batch belong to the run: all runs of a job share its first sequence.
Json job_of(const PublishedRun& run) {
  workload::Workload workload = run.workload;
  workload.train_batch_size.reset();
  return workload::to_json(workload);
}

// Adds what decides how near other jobs are, so that the program need not read every workload.
Json described(const PublishedRun& run, Json job) {
  const opinion::Subject subject = opinion::subject_of(run.workload, run.cluster);
  return {{"kind", word_of(subject.kind, opinion::kJobKindWords)},
          {"parameters", json_number(subject.parameters)},
          {"precision", subject.precision},
          {"product_bits", subject.product_bits},
          {"framework", subject.framework},
          {"workload", std::move(job)}};
}

Json run_json(const PublishedRun& run, std::size_t job) {
  const Json cluster = workload::to_json(run.cluster);
  Json json = {{"id", run.id}, {"source", run.source}};
  if (!run.part.empty()) json["part"] = run.part;
  json.update(Json{{"model", run.model},
                   {"job", job},
                   {"seq_len", run.workload.model.seq_len},
                   {"batch", *run.workload.train_batch_size},
                   {"gpu", run.cluster.gpu},
                   {"nodes", run.cluster.nodes},
                   {"gpus_per_node", run.cluster.gpus_per_node}});
  if (cluster.contains("network")) json["network"] = cluster["network"];
  json["configuration"] = space::to_json(run.configuration);
  json["step_time_s"] = run.seconds;
  if (!run.assumed.empty()) json["assumed"] = run.assumed;
  return json;
}

std::string lines_of(const std::vector<Json>& list) {
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) text += list[i].dump() + (i + 1 < list.size() ? ",\n" : "\n");
  return text;
}

}  // namespace

bool is_shipped(const PublishedRun& run) {
  if (!run.not_asked.empty() || !run.ran || !(run.seconds > 0.0)) return false;
  try {
    return cost::StepCostModel(run.workload, run.cluster).if_modelled(run.configuration).has_value();
  } catch (const UserError&) {
    return false;
  }
}

std::string shipped_runs(const std::vector<PublishedRun>& runs) {
  std::map<std::string, std::size_t> indices;  // of jobs, by their text without the sequence
  std::vector<Json> jobs;
  std::vector<Json> lines;
  for (const PublishedRun& run : runs) {
    if (!is_shipped(run)) continue;
    Json job = job_of(run);
    Json key = job;
    key["model"].erase("seq_len");
    const auto [found, is_new] = indices.emplace(key.dump(), jobs.size());
    if (is_new) {
      const Json whole = job;
      leave_out_defaults(job, Json::json_pointer(), whole);
      jobs.push_back(described(run, std::move(job)));
    }
    lines.push_back(run_json(run, found->second));
  }
  return "{\"jobs\": [\n" + lines_of(jobs) + "],\n\"runs\": [\n" + lines_of(lines) + "]}\n";
}

}  // namespace krigtune::accuracy
