#include "page/plan/memory_bars.h"

#include <fmt/format.h>

#include <algorithm>

namespace krigtune::page {

std::vector<BarPart> memory_parts(const forecast::MemoryTerms& terms, const MemoryUnit& unit) {
  std::vector<BarPart> parts;
  for (int i = 0; i < schedule::kTermCount; ++i) {
    std::string name = schedule::to_string(static_cast<schedule::Term>(i));
    std::replace(name.begin(), name.end(), '_', ' ');
    parts.push_back({name, unit.of(Bytes{terms.term_bytes.at(static_cast<std::size_t>(i))})});
  }
  parts.push_back({"context and fragmentation", unit.of(Bytes{terms.other_bytes})});
  return parts;
}

void scale_memory(Bars& drawing, const session::Session& session, const MemoryUnit& unit, double longest) {
  if (const std::optional<Bytes> usable = session.usable_per_rank) {
    drawing.limit = unit.of(*usable);
    drawing.limit_name = fmt::format("usable by a rank: {}", to_string(*usable));
    longest = std::max(longest, *drawing.limit);
  }
  constexpr double kRoom = 1.03;
  drawing.axis = {.title = fmt::format("{} a rank, planned", unit.name), .min = 0.0, .max = kRoom * longest};
  drawing.axis.label = [](double memory) { return fmt::format("{:.4g}", memory); };
}

}  // namespace krigtune::page
