#include "core/json.h"
#include "fuzz/fuzz.h"
#include "workload/model.h"

KRIGTUNE_FUZZ(hf_config) {
  krigtune::Json block = krigtune::Json::object();
  block["hf_config"] = krigtune::parse_json(text, "config.json");
  const krigtune::workload::ModelSpec model =
      krigtune::workload::read_model(block, "session.json", "/model", "/nowhere");
  static_cast<void>(krigtune::workload::parameter_count(model));
}
