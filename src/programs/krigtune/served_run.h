#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "insight/predictions.h"
#include "programs/krigtune/ask_tell.h"
#include "programs/krigtune/command.h"
#include "programs/krigtune/session_state.h"
#include "result/result_files.h"
#include "run/by_hand.h"
#include "run/prepared.h"
#include "search/model/trial_model.h"

namespace krigtune::cli {

/// A run directory that a server keeps open: its candidates, its journal, and the model of its trials. Every function
/// takes the parameters of one method and returns its result, as docs/serve.md describes them. All throw UserError and
/// EnvironmentError.
class ServedRun {
 public:
  /// Opens the directory; a new one is made by the first ask or tell. The context must outlive it.
  ServedRun(const Context& context, const RunRequest& request);

  Json description();  ///< the result of "open"
  Json ask(JsonObject params);
  Json tell(JsonObject params);
  Json best(const JsonObject& params);
  Json trials(JsonObject params);
  Json predict(JsonObject params);
  Json report(JsonObject params);

  const session::Session& session() const { return prepared_.session; }
  const session::MemoryFilter& filter() const { return prepared_.filter; }

  /// Returns whether results were told that the result files (trials.csv, best.json, ...) do not contain.
  bool has_unwritten() const { return unwritten_; }
  /// Brings the result files up to date. `all_trials_count`: the recommendation must know every trial, as at the end.
  void write_files(bool all_trials_count);

 private:
  ServedRun(const Context& context, const RunRequest& request, run::RunRecord record);

  run::HandRun& hand();
  const search::History& history() { return reader_.look(); }
  const search::TrialModel& model();
  std::optional<search::Recommendation> recommendation();
  report::RunView view(const search::History& trials, const std::optional<search::Recommendation>& best) const;
  space::Configuration configuration_of(const Json& json, const std::string& where) const;
  space::Space::Predicate predicate_in(const Json& where, const JsonObject& params) const;
  Json predicted(const Json& configurations, const JsonObject& params);
  Json predicted(const insight::PredictOptions& options, const JsonObject& params);

  /// The model of these trials; it refers to them.
  struct Fitted {
    search::History history;
    std::unique_ptr<search::TrialModel> model;
  };

  const Context& context_;
  std::filesystem::path directory_;
  run::LoopOptions options_;
  run::Prepared prepared_;
  std::string change_;                  ///< in what the directory was begun with, for people; "": none
  std::unique_ptr<run::HandRun> hand_;  ///< nullptr before the first ask or tell
  journal::JournalReader reader_;
  std::unique_ptr<Fitted> fitted_;
  std::unique_ptr<result::ResultFileWriter> writer_;
  bool unwritten_ = false;
};

/// Returns the result of "plan": what can be predicted of a session, with a row for each configuration if `rows`.
Json plan_result(const session::Session& session, const session::MemoryFilter& filter, bool rows);

}  // namespace krigtune::cli
