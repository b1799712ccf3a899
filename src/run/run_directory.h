#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "run/loop.h"

namespace krigtune::run {

std::filesystem::path session_path(const std::filesystem::path& directory);  ///< session.json
std::filesystem::path journal_path(const std::filesystem::path& directory);  ///< journal.log

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

/// Makes the session of a DeepSpeed job use the user's ds_config.json as it was when the directory was begun, or its
/// present state if nothing was begun or the directory is "". Returns false if the file has changed since.
bool recall_ds_config(session::Session& session, const std::filesystem::path& directory);

/// Writes session.json and, for a DeepSpeed job, a copy of the user's ds_config.json if there is none yet.
void write_run_record(const std::filesystem::path& directory, const session::Session& session,
                      const LoopOptions& options);

/// Returns the path of trials.csv, which is updated after every trial and from which a lost journal can be rebuilt.
std::filesystem::path trials_path(const std::filesystem::path& directory);

/// Throws UserError with one line that says what differs, unless the directory is new or was begun with the same
/// session, strategy and seed and still has the journal of its trials. Budget and timeouts may differ. Writes nothing.
void check_same_run(const std::filesystem::path& directory, const session::Session& session,
                    const LoopOptions& options);

}  // namespace krigtune::run
