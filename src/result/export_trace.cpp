#include <fmt/format.h>

#include "forecast/predicted_step.h"
#include "result/export.h"

namespace krigtune::result {

Export export_trace(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  constexpr const char* kTraceFile = "trace.json";
  const session::MemoryFilter filter(run.session);
  const forecast::Forecaster forecaster(run.session, filter);
  const space::Configuration& configuration = run.answer.best->configuration;
  Export made;
  made.files = {{kTraceFile, forecast::predicted_trace(run.session, forecaster, configuration),
                 "one predicted step: open it in ui.perfetto.dev or chrome://tracing"}};
  const space::Configuration modelled = session::modelled_part(configuration);
  for (const auto& [name, value] : configuration) {
    if (!modelled.has(name)) made.omissions.push_back({kTraceFile, name, value, "predictions do not know it"});
  }
  return made;
}

}  // namespace krigtune::result
