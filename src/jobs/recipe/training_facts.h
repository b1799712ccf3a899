#pragma once
#include <string>
#include <vector>

#include "core/json.h"
#include "jobs/recipe/recipe_job.h"

namespace krigtune::jobs {

/// What a command says of how it trains.
struct TrainingFacts {
  Json training = Json::object();    ///< the workload's block "training"; empty: as usual
  std::string optimizer;             ///< the workload's "optimizer"; "": not said
  std::vector<std::string> assumed;  ///< "rank of the adapters 8: PEFT's"

  /// A key of "training", or "optimizer".
  bool says(const std::string& key) const { return key == "optimizer" ? !optimizer.empty() : training.contains(key); }
  /// Adds it to a workload.
  void put_into(Json& workload) const;
};

/// Reads the recipe's "training". Adapters of rank 0, or on layers that are not known, and quantised weights without
/// adapters are not read: the recipe's gaps remain.
TrainingFacts training_facts(const Recipe& recipe, const RecipeJob& job);

}  // namespace krigtune::jobs
