#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "insight/importance.h"
#include "insight/predictions.h"
#include "session/session.h"

// What krigtune predict prints is also what krigtune serve answers.
namespace krigtune::cli {

/// Returns a predicate that is true of configurations with all these values. Empty: there are none. Throws UserError,
/// with `where` as the name of the option, for a name that is none of `columns`.
space::Space::Predicate predicate_of(const std::vector<space::Configuration::Entry>& conditions,
                                     const std::vector<std::string>& columns, const std::string& where);

/// Returns which parameters matter; null if nothing is known of that.
Json importance_json(const session::Session& session, const std::optional<insight::Importance>& importance);

/// Returns a row of predictions; what is not predicted is null.
Json prediction_json(const session::Session& session, const insight::PredictionRow& row);

}  // namespace krigtune::cli
