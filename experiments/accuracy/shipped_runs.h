#pragma once
#include <string>
#include <vector>

#include "published_runs.h"

namespace krigtune::accuracy {

/// Returns whether the program ships a run: it ran, its time was published, and the models can be asked.
bool is_shipped(const PublishedRun& run);

/// Returns src/opinion/published_runs.json (opinion/known_runs.h): the shipped runs, in the order of the table. Each
/// job stands there once, without the keys that have their defaults.
std::string shipped_runs(const std::vector<PublishedRun>& runs);

}  // namespace krigtune::accuracy
