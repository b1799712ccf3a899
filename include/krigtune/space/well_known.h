#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "krigtune/space/parameter.h"

namespace krigtune {

/// A parameter that krigtune knows by name: the one table of them, from which documentation, schema, defaults, `init`
/// and the names of DeepSpeed's keys are made.
struct WellKnownParameter {
  const char* name;
  const char* unit;           ///< "sequences per rank and micro-step", "elements", or "" for a plain choice
  const char* meaning;        ///< one line for people
  const char* no_effect;      ///< where it changes nothing, in words; "" : nowhere
  const char* deepspeed_key;  ///< JSON pointer in ds_config.json: "/zero_optimization/stage"; "": none
  Value default_value;        ///< DeepSpeed's own default, or krigtune-bench's
  const char* default_range;  ///< as in a session: R"({"min": 1, "max": 64, "scale": "log2"})"
};

/// In the order of the documentation.
const std::vector<WellKnownParameter>& well_known_parameters();
/// nullptr: none of that name.
const WellKnownParameter* find_well_known(std::string_view name);

/// Another name under which frameworks and launchers know a parameter.
struct KnownAlias {
  const char* alias;
  const char* name;   ///< of the well-known parameter
  const char* where;  ///< who calls it so: "Megatron-LM"
};
/// Names of one parameter stand together, in the order of well_known_parameters().
const std::vector<KnownAlias>& known_aliases();
/// The well-known name that `name` means, itself one or an alias; "": none.
std::string_view well_known_name(std::string_view name);

/// Facts of the job that constraints may use beside the parameters: dp, ranks, nodes, ...
struct KnownFact {
  const char* name;
  const char* meaning;
};
const std::vector<KnownFact>& known_facts();

/// docs/parameters.md
std::string parameter_reference();

}  // namespace krigtune
