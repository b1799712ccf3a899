#include "krigtune/report/export.h"

#include <fmt/format.h>

#include "exporters.h"
#include "krigtune/core/error.h"
#include "krigtune/core/text.h"

namespace krigtune {

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

}  // namespace krigtune
