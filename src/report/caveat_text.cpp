#include "report/caveat_text.h"

#include <fmt/format.h>

#include "core/text.h"

namespace krigtune::report {

std::vector<std::string> caveat_lines(const workload::Workload& workload) {
  std::vector<std::string> lines;
  const workload::Caveats& caveats = workload.caveats;
  if (!caveats.assumed.empty()) lines.push_back(fmt::format("Assumed: {}", join(caveats.assumed, "; ")));
  if (!caveats.not_modelled.empty()) {
    lines.push_back(fmt::format(
        "Not in this prediction: {}. So predictions are rough, and nothing is excluded because of its memory",
        join(caveats.not_modelled, "; ")));
  }
  if (!caveats.also_not_modelled.empty()) {
    lines.push_back(fmt::format("{}: {}", caveats.not_modelled.empty() ? "Not in this prediction" : "Nor in it",
                                join(caveats.also_not_modelled, "; ")));
  }
  return lines;
}

}  // namespace krigtune::report
