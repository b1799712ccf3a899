#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "search/model/best.h"
#include "search/model/job_summary.h"

namespace krigtune::report {

/// Returns search::job_sentence of a recommendation; "" if there is nothing to say.
std::string job_sentence_of(const search::Recommendation& best);

/// Returns the object "job" of best.json and of other documents (docs/formats.md); null if nothing is known.
nlohmann::ordered_json job_json(const std::optional<search::JobSummary>& job);
/// Reads what job_json wrote. Empty if it is anything else.
std::optional<search::JobSummary> job_from_json(const nlohmann::ordered_json& json);

}  // namespace krigtune::report
