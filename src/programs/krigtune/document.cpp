#include "programs/krigtune/document.h"

#include <ostream>

#include "core/processor.h"
#include "report/labels.h"

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

Json emulated_json(const session::Session& session) {
  return report::is_emulated(session) ? Json(report::emulated_label(session)) : Json(nullptr);
}

Json json_or_null(std::optional<double> number) { return number ? json_number(*number) : Json(nullptr); }

}  // namespace krigtune::cli
