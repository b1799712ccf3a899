#include "core/error.h"
#include "deepspeed/job/ds_config.h"
#include "result/export.h"
#include "result/writers.h"

namespace krigtune::result {

Json exported_ds_config(const report::RunView& run) {
  const std::optional<std::string> text = ds_config_optimal(run);
  if (text) return parse_json(*text, kDsConfigFile);
  throw UserError("the session has no workload, so there is no DeepSpeed configuration of it",
                  "name its model under /workload, or export as csv");
}

std::vector<ExportedFile> export_deepspeed(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  return {{kDsConfigFile, deepspeed::ds_config_text(exported_ds_config(run)),
           "give it to the script as --deepspeed_config"}};
}

}  // namespace krigtune::result
