#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/run_view.h"
#include "result/trials_csv.h"

namespace krigtune::result {

/// A file of the run directory that is made from the journal alone.
struct ResultFile {
  const char* name;
  /// The whole file. Empty: there is nothing to write (no trial is ok, or the session has no such thing).
  std::optional<std::string> (*text)(const report::RunView& run);
};

/// Every one of them: a writer is one file and one line here.
std::vector<ResultFile> result_files();

/// Writes those that have something to say, each whole or not at all. Returns their names.
std::vector<std::string> write_result_files(const report::RunView& run);

/// What to train with, by these trials: a fit of the model, which takes longer than a trial where trials are fast.
using Recommender = std::function<std::optional<search::Recommendation>(const search::History& history)>;
/// recommend(). The arguments must outlive it.
Recommender make_recommender(const session::Session& session, const search::Candidates& candidates, std::uint64_t seed);

/// Writes the result files after every trial, so that they are true whenever a session is cut off: each has every
/// closed trial. What grows with the trials is appended to (TrialsCsvFile), the journal is read from where it was left.
/// The recommendation is made anew when the best mean of a configuration's measurements or the reference trial is
/// another, when closed trials have become a tenth more, at the session's beginning and at its end.
class ResultFileWriter final : public run::Observer {
 public:
  /// `run.history` and `run.best` are taken anew each time. What `run` names must outlive it.
  ResultFileWriter(report::RunView run, Recommender recommend);

  void resumed(const search::History& history) override { write(history); }
  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  void session_ended(const search::History& history) override { write(history); }

  /// Writes them with the recommendation of all these trials, and again while other processes close trials of the
  /// directory meanwhile: whoever of several writes last, the files hold every closed trial.
  void write(const search::History& history);
  /// What stands in them.
  const std::optional<search::Recommendation>& best() const { return run_.best; }

 private:
  /// The trials that a recommendation was made of.
  struct Basis {
    std::ptrdiff_t closed = 0;
    std::optional<int> reference;  ///< its number
    std::optional<search::MeasuredMean> best_mean;
  };
  Basis basis_of(const search::History& history) const;
  bool is_outdated(const Basis& now) const;
  void write(const search::History& history, bool all_trials_count);

  report::RunView run_;
  Recommender recommend_;
  std::optional<Basis> basis_;  ///< of run_.best
  journal::JournalReader journal_;
  TrialsCsvFile trials_csv_;
};

}  // namespace krigtune::result
