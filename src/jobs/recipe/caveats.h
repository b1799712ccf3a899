#pragma once
#include "jobs/recipe/recipe_job.h"
#include "jobs/recipe/training_facts.h"
#include "workload/model.h"

namespace krigtune::jobs {

/// Sorts what a command states: every flag, every word key=value and every key of its files is understood by the
/// recipe, known to change nothing, known to matter and not modelled, or unknown. Returns what is not modelled, and, as
/// an assumption, that the unknown ones change nothing.
workload::Caveats caveats_of(const Recipe& recipe, const RecipeJob& job, const TrainingFacts& trained);

/// Returns whether the command states that most weights are not trained, in a way that predictions do not know.
bool freezes_weights(const Recipe& recipe, const RecipeJob& job, const TrainingFacts& trained);

}  // namespace krigtune::jobs
