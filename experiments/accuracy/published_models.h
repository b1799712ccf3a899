#pragma once
#include <optional>
#include <string>

#include "workload/model.h"

namespace krigtune::accuracy {

/// Returns the sizes of a model as published_runs.csv names it; its sequence is that of the release. Empty for models
/// that krigtune does not know: sparse attention.
std::optional<workload::ModelSpec> published_model(const std::string& name);

}  // namespace krigtune::accuracy
