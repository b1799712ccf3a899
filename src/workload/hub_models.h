#pragma once
#include <optional>
#include <string>
#include <vector>

#include "workload/model.h"

namespace krigtune::workload {

/// What is said of a model that was released with such layers (MtpSpec), unless "mtp" adds them.
inline constexpr const char* kFurtherTokens =
    "layers that predict further tokens (MTP; the model's key \"mtp\" adds them), where they are trained: more memory "
    "and time";

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
