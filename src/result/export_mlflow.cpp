// Writes runs of MLflow's file store (mlflow/store/tracking/file_store.py, 2 and 3):
//
//   mlruns/<experiment>/meta.yaml
//                       <run>/meta.yaml            status: 3 finished, 4 failed, 5 killed
//                             params/<name>        the value
//                             metrics/<name>       lines "time value step", time in milliseconds
//                             tags/<name>
//                             artifacts/         MLflow finds no run without the folders params, metrics and artifacts
//
// MLflow 3 reads it with MLFLOW_ALLOW_FILE_STORE=true, and `mlflow migrate-filestore` converts it to a database.
// Identifiers are derived from the run directory, so exporting a run again gives the same identifiers.
#include <fmt/format.h>

#include <algorithm>

#include "core/clock.h"
#include "core/hash.h"
#include "core/text.h"
#include "report/labels.h"
#include "result/export.h"
#include "search/trials/history.h"

namespace krigtune::result {
namespace {

constexpr const char* kStore = "mlruns";
constexpr const char* kWall = "wall_s";  // every trial has it, and MLflow requires a folder of metrics

std::string yaml_text(const std::string& text) { return Json(text).dump(); }

std::uint64_t number_of(const report::RunView& run, const std::string& what) {
  Fnv1a64 hash;
  const std::string key = fmt::format("{}\n{}\n{}", run.directory.string(), run.name, what);
  hash.add(key.data(), key.size());
  return hash.value();
}

std::string experiment_id(const report::RunView& run) {
  constexpr std::uint64_t kDigits = 1'000'000'000'000'000'000U;  // as many digits as MLflow's own
  return fmt::format("{:018}", number_of(run, "experiment") % kDigits);
}

std::string run_id(const report::RunView& run, int trial) {
  return fmt::format("{:016x}{:016x}", number_of(run, fmt::format("trial {}", trial)),
                     number_of(run, fmt::format("trial {} again", trial)));
}

// Returns the name with only characters that files and MLflow allow.
std::string file_name(std::string name) {
  for (char& c : name) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_plain && std::string("_-. ").find(c) == std::string::npos) c = '_';
  }
  return name.find_first_not_of('.') == std::string::npos ? "_" + name : name;
}

// Returns, for example, file:///home/me/my%20run.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file://";
  for (const char c : path.string()) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const bool is_safe = is_plain || std::string("/-._~").find(c) != std::string::npos;
    uri += is_safe ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

std::int64_t begun_ms(const journal::Trial& trial) {
  constexpr std::int64_t kMicro = 1000;
  return unix_us_of(trial.started_at).value_or(0) / kMicro;
}

std::int64_t ended_ms(const journal::Trial& trial) {
  constexpr std::int64_t kMicro = 1000;
  return journal::end_us_of(trial).value_or(0) / kMicro;
}

int status_of(const trial::Outcome& outcome) {
  constexpr int kFinished = 3, kFailed = 4, kKilled = 5;
  if (std::holds_alternative<trial::Bounded>(outcome)) return kKilled;
  return trial::ran(outcome) ? kFinished : kFailed;
}

/// The files of one run of the store.
class StoredRun {
 public:
  StoredRun(const report::RunView& run, const journal::Trial& trial, const std::filesystem::path& experiment)
      : run_(run), trial_(trial), id_(run_id(run, trial.number)) {
    folder_ = fmt::format("{}/{}/{}", kStore, experiment_id(run), id_);
    add("meta.yaml", meta(experiment / id_ / "artifacts"));
    for (const auto& [name, value] : trial.proposal.configuration) {
      add("params/" + file_name(name), space::to_string(value));
    }
    add("artifacts/configuration.json", space::to_json(trial.proposal.configuration).dump(2) + "\n");
    add_metrics();
    add_tags();
  }
  std::vector<ExportedFile> take() { return std::move(files_); }

 private:
  void add(const std::string& name, const std::string& text) { files_.push_back({folder_ + "/" + name, text, ""}); }

  std::string title() const { return fmt::format("trial {}", trial_.number); }

  std::string meta(const std::filesystem::path& artifacts) const {
    return fmt::format(
        "artifact_uri: {}\nend_time: {}\nentry_point_name: ''\nexperiment_id: '{}'\nlifecycle_stage: active\n"
        "run_id: {}\nrun_name: {}\nrun_uuid: {}\nsource_name: ''\nsource_type: 4\nsource_version: ''\nstart_time: {}\n"
        "status: {}\ntags: []\nuser_id: krigtune\n",
        yaml_text(uri_of(artifacts)), ended_ms(trial_), experiment_id(run_), yaml_text(id_), yaml_text(title()),
        yaml_text(id_), begun_ms(trial_), status_of(*trial_.outcome));
  }

  void add_metric(const std::string& name, double value) {
    add("metrics/" + file_name(name), fmt::format("{} {} 0\n", ended_ms(trial_), number_text(value)));
  }

  void add_metrics() {
    const session::Objective& objective = run_.session.objective;
    if (const auto* bounded = std::get_if<trial::Bounded>(&*trial_.outcome)) {
      add_metric(objective.metric + "_bound", bounded->at_best);
    }
    const trial::Measured* measured = report::measured_of(trial_);
    if (measured == nullptr || !measured->metrics.contains(kWall)) add_metric(kWall, trial_.wall_s);
    if (measured == nullptr) return;
    if (const auto value = search::value_of(trial_, objective)) add_metric(objective.metric, *value);
    for (const auto& [name, value] : measured->metrics) {
      if (name != objective.field && name != objective.metric) add_metric(name, value);
    }
    if (measured->peak_memory) add_metric("peak_memory_bytes", static_cast<double>(measured->peak_memory->count));
  }

  void add_tags() {
    add("tags/mlflow.runName", title());
    add("tags/mlflow.source.name", "krigtune");
    add("tags/mlflow.source.type", "LOCAL");
    add("tags/krigtune.status", trial::status_text(*trial_.outcome));
    add("tags/krigtune.strategy", trial_.proposal.strategy);
    const std::string reason = trial::reason_text(*trial_.outcome);
    if (!reason.empty()) add("tags/krigtune.reason", reason);
    if (run_.answer.best && run_.answer.best->trial == trial_.number) add("tags/krigtune.best", "true");
    if (const std::string& label = run_.answer.emulated_network; !label.empty()) add("tags/krigtune.label", label);
  }

  const report::RunView& run_;
  const journal::Trial& trial_;
  std::string id_;
  std::string folder_;
  std::vector<ExportedFile> files_;
};

}  // namespace

Export export_mlflow(const report::RunView& run, const std::filesystem::path& directory) {
  const std::string id = experiment_id(run);
  const std::filesystem::path experiment = directory / kStore / id;
  std::int64_t first_ms = 0;
  std::int64_t last_ms = 0;
  Export made;
  for (const journal::Trial& trial : run.history) {
    if (!trial.outcome) continue;
    first_ms = first_ms == 0 ? begun_ms(trial) : std::min(first_ms, begun_ms(trial));
    last_ms = std::max(last_ms, ended_ms(trial));
    for (ExportedFile& file : StoredRun(run, trial, experiment).take()) made.files.push_back(std::move(file));
  }
  const std::string meta = fmt::format(
      "artifact_location: {}\ncreation_time: {}\nexperiment_id: '{}'\nlast_update_time: {}\nlifecycle_stage: active\n"
      "name: {}\n",
      yaml_text(uri_of(experiment)), first_ms, id, last_ms, yaml_text(run.name));
  made.files.insert(
      made.files.begin(),
      {fmt::format("{}/{}/meta.yaml", kStore, id), meta,
       fmt::format("MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {} shows the experiment {}",
                   (directory / kStore).string(), run.name)});
  return made;
}

}  // namespace krigtune::result
