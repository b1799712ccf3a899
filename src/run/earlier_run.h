#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "forecast/warm_start.h"

namespace krigtune::run {

/// Reads a run directory, or a study of an Optuna journal ("FILE", or "FILE:STUDY" if it has several), for a warm start
/// of `session`; job and machine may be the same or different. A directory whose session can no longer be read (its
/// table is gone) is used without physics. Throws UserError that begins with `where` if there is nothing to read, no
/// successful trial or no parameter that varies in both, or if the objectives are unrelated.
forecast::EarlierRun read_earlier_run(const std::string& source, const session::Session& session,
                                      const std::string& where);

// Conversion to and from what session.json of the new run stores of them:
nlohmann::ordered_json to_json(const forecast::EarlierRuns& runs);
forecast::EarlierRuns earlier_runs_from_json(const nlohmann::ordered_json& json, const std::string& source,
                                             const std::string& pointer);

}  // namespace krigtune::run
