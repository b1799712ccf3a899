#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/run_view.h"
#include "result/trials_csv.h"

namespace krigtune::result {

/// A file of the run directory that depends only on the journal.
struct ResultFile {
  const char* name;
  /// Returns the whole file. Empty if there is nothing to write (no trial has succeeded, or the session has no such
  /// result).
  std::optional<std::string> (*text)(const report::RunView& run);
};

/// Returns all of them; a writer is one source file and one line here.
std::vector<ResultFile> result_files();

/// Writes all files that have contents, each completely or not at all. Returns their names.
std::vector<std::string> write_result_files(const report::RunView& run);

/// Recommends a configuration from these trials by fitting the model, which takes longer than a fast trial.
using Recommender = std::function<std::optional<search::Recommendation>(const search::History& history)>;
/// Returns a function that calls recommend(). The arguments must outlive it.
Recommender make_recommender(const session::Session& session, const search::Candidates& candidates, std::uint64_t seed);

/// Writes the result files after every trial, so that they contain every closed trial even if the session is
/// interrupted. Files that grow with the trials are appended to (TrialsCsvFile), and the journal is read from its
/// previous end. The recommendation is recomputed at the session's beginning and end, when the best mean of a
/// configuration's measurements or the reference trial changes, and when the number of closed trials has grown by a
/// tenth.
class ResultFileWriter final : public run::Observer {
 public:
  /// `run`: the view with which the session begins; its history and answer are not used. Everything that it refers to
  /// must outlive it.
  ResultFileWriter(report::RunView run, Recommender recommend);

  void resumed(const search::History& history) override { write(history); }
  void trial_ended(const journal::Trial& trial, const search::History& history) override;
  void session_ended(const search::History& history) override { write(history); }

  /// Writes the files with the recommendation of all these trials, and repeats this if other processes close trials of
  /// the directory in the meantime. So the files contain every closed trial, whichever process writes last.
  void write(const search::History& history);
  /// Returns the recommendation in the files.
  const std::optional<search::Recommendation>& best() const { return best_; }

 private:
  /// The trials behind a recommendation.
  struct Basis {
    std::ptrdiff_t closed = 0;
    std::optional<int> reference;  ///< its number
    std::optional<search::MeasuredMean> best_mean;
  };
  Basis basis_of(const search::History& history, const std::vector<search::MeasuredMean>& means) const;
  bool is_outdated(const Basis& now) const;
  void write(const search::History& history, bool all_trials_count);

  report::RunView run_;
  Recommender recommend_;
  std::optional<search::Recommendation> best_;
  std::optional<Basis> basis_;  ///< that of best_
  journal::JournalReader journal_;
  TrialsCsvFile trials_csv_;
};

}  // namespace krigtune::result
