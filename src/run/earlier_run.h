#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "forecast/warm_start.h"

namespace krigtune::run {

/// Reads a run directory, or a study of a journal of Optuna's ("FILE", or "FILE:STUDY" where it holds several), for a
/// warm start of `session`: the same job or another, on the same machine or another. A directory whose session cannot
/// be read any more (its table is gone) is taken without physics. Throws UserError that begins with `where`: nothing
/// there, no ok trial, no parameter that varies in both, or an objective that has nothing to do with this one.
forecast::EarlierRun read_earlier_run(const std::string& source, const session::Session& session,
                                      const std::string& where);

// What session.json of the new run keeps of them.
nlohmann::ordered_json to_json(const forecast::EarlierRuns& runs);
forecast::EarlierRuns earlier_runs_from_json(const nlohmann::ordered_json& json, const std::string& source,
                                             const std::string& pointer);

}  // namespace krigtune::run
