#include "programs/krigtune/document.h"

#include <ostream>

#include "answer/answer.h"
#include "core/processor.h"

namespace krigtune::cli {

Json new_document(const char* command) {
  Json document;
  document["schema_version"] = 1;
  document["krigtune_version"] = KRIGTUNE_VERSION;
  document["command"] = command;
  document["host"] = host_name();
  return document;
}

void print(const Context& context, const Json& document) { context.console.out << document.dump(2) << '\n'; }

void add_search(Json& document, const session::Session& session, const run::LoopOptions& options) {
  document["strategy"] = search::to_string(options.strategy);
  document["seed"] = options.seed;
  document["metric"] = session.objective.metric;
  document["emulated_network"] = emulated_json(session);
}

Json emulated_json(const session::Session& session) {
  const std::string label = answer::emulated_label(session);
  return label.empty() ? Json(nullptr) : Json(label);
}

Json step_parts_json(const cost::StepCost& cost) {
  return {{"products_s", cost.products_s},
          {"memory_bound_s", cost.memory_bound_s},
          {"optimizer_s", cost.optimizer_s},
          {"exposed_comm_s", cost.exposed_comm_s},
          {"offload_s", cost.offload_s},
          {"bubble_s", cost.bubble_s},
          {"idle_s", cost.idle_s},
          {"recompute_s", cost.recompute_s},
          {"tensor_comm_s", cost.tensor_comm_s},
          {"context_comm_s", cost.context_comm_s},
          {"expert_comm_s", cost.expert_comm_s},
          {"data_comm_s", cost.data_comm_s},
          {"pipeline_comm_s", cost.pipeline_comm_s}};
}

Json json_or_null(std::optional<double> number) { return number ? json_number(*number) : Json(nullptr); }

}  // namespace krigtune::cli
