#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "workload/model.h"
#include "workload/training.h"

namespace krigtune::workload {

/// Reads PEFT's adapter_config.json: rank, layers and dropout of low-rank adapters. `caveats` receives what it says in
/// addition (DoRA, ranks of single layers, modules that are trained whole), and the layers that PEFT takes where the
/// file names none. Throws UserError with the JSON pointer if the adapters are of another kind, or if a layer is not
/// known.
AdapterSpec read_adapter_config(const nlohmann::ordered_json& json, const std::string& source, Caveats& caveats);

}  // namespace krigtune::workload
