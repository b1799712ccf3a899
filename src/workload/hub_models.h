#pragma once
#include <optional>
#include <string>
#include <vector>

#include "workload/model.h"

namespace krigtune::workload {

struct HubSizes {
  ModelSpec sizes;  ///< with the longest sequence that the model was released for
  Caveats caveats;
};

/// Returns the published model that a name on the Hugging Face hub belongs to: "Qwen/Qwen2.5-7B-Instruct". Empty if it
/// is not known.
std::optional<HubSizes> hub_model(const std::string& name);

/// Returns the names that are known in addition to those of the presets, in lower case and without organisations.
std::vector<std::string> hub_model_names();

}  // namespace krigtune::workload
