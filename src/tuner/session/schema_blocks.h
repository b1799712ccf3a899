#pragma once
#include "krigtune/core/json.h"

// The blocks of the session's JSON Schema. Private to this layer.
namespace krigtune::schema {

Json workload_block();
Json cluster_block();
Json memory_block();
Json space_block();       ///< its parameters refer to parameter_shapes()
Json parameter_shapes();  ///< the definition "parameter"
Json fixed_block();
Json baseline_block();
Json objective_block();
Json runner_block();
Json budget_block();
Json grid_block();
Json stagewise_block();

}  // namespace krigtune::schema
