#pragma once
#include <vector>

#include "forecast/plan_study.h"
#include "page/chart/chart.h"

// Bars of a rank's memory, by purpose.
namespace krigtune::page {

/// The unit of a drawing; small sessions use MiB.
struct MemoryUnit {
  const char* name = "GiB";
  double bytes = 1024.0 * 1024.0 * 1024.0;
  double of(Bytes memory) const { return static_cast<double>(memory.count) / bytes; }
};

/// Returns the terms and the remainder that no term explains; every bar has the same parts.
std::vector<BarPart> memory_parts(const forecast::MemoryTerms& terms, const MemoryUnit& unit);

/// Sets the axis, from 0, and draws the memory that a rank may use as a line across all bars. `longest`: length of the
/// longest bar, in the unit.
void scale_memory(Bars& drawing, const session::Session& session, const MemoryUnit& unit, double longest);

}  // namespace krigtune::page
