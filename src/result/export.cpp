#include "result/export.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "result/writers.h"

namespace krigtune::result {

std::vector<ExportFormat> export_formats() {
  return {{"deepspeed", "ds_config.json for DeepSpeed", export_deepspeed},
          {"accelerate", "configurations for accelerate launch: with DeepSpeed, and the nearest with FSDP",
           export_accelerate},
          {"csv", "the trials as a table", export_csv}};
}

ExportFormat export_format_from(const std::string& name, const std::string& where) {
  std::vector<std::string> names;
  for (const ExportFormat& format : export_formats()) {
    if (name == format.name) return format;
    names.emplace_back(format.name);
  }
  throw UserError(fmt::format("{}: '{}' is no format that a run can be exported to", where, name),
                  "there are " + join(names, ", "));
}

std::vector<ExportedFile> export_csv(const report::RunView& run, const std::filesystem::path& /*directory*/) {
  return {{"trials.csv", trials_csv(run).value(), "a row a trial; the runner replay reads it too"}};
}

}  // namespace krigtune::result
