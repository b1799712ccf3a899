#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "run/loop.h"

namespace krigtune::run {

std::filesystem::path session_path(const std::filesystem::path& directory);  ///< session.json
std::filesystem::path journal_path(const std::filesystem::path& directory);  ///< journal.log
/// Returns whether the directory contains a run, which has a journal or a session.json that krigtune wrote.
bool is_run(const std::filesystem::path& directory);
/// Returns the run directory that a path names, itself or by its session.json; empty if it names none.
std::filesystem::path named_run(const std::filesystem::path& path);

/// The contents of session.json: how the directory was begun.
struct RunRecord {
  session::Session session;
  LoopOptions options;
};
/// Throws UserError if the directory has no run.
RunRecord load_run(const std::filesystem::path& directory);
/// Returns only the earlier runs with which the directory was begun.
forecast::EarlierRuns recorded_earlier_runs(const std::filesystem::path& directory);
/// Returns the measurements of the machine from when the directory was begun. Empty if there are none or there is no
/// run.
std::optional<workload::MeasuredMachine> recorded_machine(const std::filesystem::path& directory);
/// What was known of this machine's GPUs when the directory was begun with "gpu": "local".
struct RecordedGpus {
  workload::ClusterSpec cluster;  ///< with their name, rates and links
  std::optional<Bytes> usable_per_rank;
};
/// Returns what session.json says about them; nothing if it says nothing, or if there is no run.
std::optional<RecordedGpus> recorded_gpus(const std::filesystem::path& directory);
/// Returns the contents of session.json: the resolved session with versions, strategy, seed and what is known of the
/// machine.
nlohmann::ordered_json run_record(const session::Session& session, const LoopOptions& options);

/// Writes session.json and, if trials edit a file of the user, a copy of it if there is none yet (runner/begun_file.h).
void write_run_record(const std::filesystem::path& directory, const session::Session& session,
                      const LoopOptions& options);

/// Returns the path of trials.csv, which is updated after every trial and from which a lost journal can be rebuilt.
std::filesystem::path trials_path(const std::filesystem::path& directory);

/// How a session differs from the one with which its directory was begun: "/strategy was random, now bayes, ...". Empty
/// texts: it does not, or there is no run yet. Budget, executor and timeouts are not compared.
struct SessionChange {
  std::string measured;             ///< in what a trial is or how it is measured, so old trials are no evidence
  bool in_how_it_measures = false;  ///< `measured` names the runner or the objective, so old values are others
  std::string search;               ///< in how trials are chosen: strategy, seed, earlier runs, memory limits
};
SessionChange change_since_begun(const std::filesystem::path& directory, const session::Session& session,
                                 const LoopOptions& options);

/// Returns whether a change of the session would lose anything: a trial was measured or ran out of memory, or somebody
/// may still tell its result. False if all trials failed, and if there are none.
bool holds_results(const std::filesystem::path& directory);

/// Moves the directory of a run to DIR.1, DIR.2, ..., and returns where. Throws UserError if it is not a run, or if a
/// tune is active there.
std::filesystem::path set_aside(const std::filesystem::path& directory);

/// Makes sure that the session can begin or go on in the directory. The journal is the only state of a search, so
/// another strategy simply goes on. If something else is measured than before, a run without results is set aside, and
/// the session begins again. Returns one line for the user about such changes; "" if nothing has changed.
///
/// Throws UserError with one line if results would be lost (it says what differs), if the journal of the trials is
/// missing, or if the directory is not empty and contains no run, because its files could be overwritten. `asker`:
/// whose options the line may name.
std::string settle(const std::filesystem::path& directory, const session::Session& session, const LoopOptions& options,
                   journal::Asker asker = journal::Asker::kTune);

}  // namespace krigtune::run
