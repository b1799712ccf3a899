#pragma once
#include <string>
#include <vector>

#include "core/json.h"
#include "jobs/recipe/recipe_job.h"

namespace krigtune::jobs {

/// What a command says of the weights that it trains.
struct TrainedWeights {
  Json training;                     ///< the workload's block "training"; null: all weights are trained
  std::vector<std::string> assumed;  ///< "rank of the adapters 8: PEFT's"

  bool says(const std::string& key) const { return training.is_object() && training.contains(key); }
};

/// Reads the recipe's "training". Adapters of rank 0, or on layers that are not known, and quantised weights without
/// adapters are not read: the recipe's gaps remain.
TrainedWeights trained_weights(const Recipe& recipe, const RecipeJob& job);

}  // namespace krigtune::jobs
