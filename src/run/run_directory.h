#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "run/loop.h"

namespace krigtune::run {

std::filesystem::path session_path(const std::filesystem::path& directory);  ///< session.json
std::filesystem::path journal_path(const std::filesystem::path& directory);  ///< journal.log

/// What session.json says: how the directory was begun.
struct RunRecord {
  session::Session session;
  LoopOptions options;
};
/// Throws UserError when the directory holds no run.
RunRecord load_run(const std::filesystem::path& directory);
/// The earlier runs alone that the directory was begun with.
forecast::EarlierRuns recorded_earlier_runs(const std::filesystem::path& directory);
/// What was measured of the machine when the directory was begun. Empty: nothing, or there is no run.
std::optional<workload::MeasuredMachine> recorded_machine(const std::filesystem::path& directory);
/// The content of session.json: the resolved session with versions, strategy, seed and what was measured of the
/// machine.
nlohmann::ordered_json run_record(const session::Session& session, const LoopOptions& options);

/// Makes the session of a DeepSpeed job use what the user's ds_config.json said when the directory was begun; where
/// nothing was begun, or the directory is "", what it says now. False: the file says something else by now.
bool recall_ds_config(session::Session& session, const std::filesystem::path& directory);

/// Writes session.json, and for a DeepSpeed job a copy of the user's ds_config.json where there is none yet.
void write_run_record(const std::filesystem::path& directory, const session::Session& session,
                      const LoopOptions& options);

/// trials.csv, a row for each trial, rewritten after each: what a lost journal can be made of again.
std::filesystem::path trials_path(const std::filesystem::path& directory);

/// Throws UserError, one line with what differs, unless the directory is new or was begun with the same session,
/// strategy and seed, and still has the journal of its trials. Budget and timeouts may differ. Writes nothing.
void check_same_run(const std::filesystem::path& directory, const session::Session& session,
                    const LoopOptions& options);

}  // namespace krigtune::run
