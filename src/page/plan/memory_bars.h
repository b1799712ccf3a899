#pragma once
#include <vector>

#include "forecast/plan_study.h"
#include "page/chart/chart.h"

// Bars of a rank's memory, by what it is for.
namespace krigtune::page {

/// Of a drawing: small sessions are of MiB.
struct MemoryUnit {
  const char* name = "GiB";
  double bytes = 1024.0 * 1024.0 * 1024.0;
  double of(Bytes memory) const { return static_cast<double>(memory.count) / bytes; }
};

/// The terms, and what no term explains: as many for every bar.
std::vector<BarPart> memory_parts(const forecast::MemoryTerms& terms, const MemoryUnit& unit);

/// The axis, from 0, and what the session lets a rank use as a line across all bars. `longest`: of the bars, in the
/// unit.
void scale_memory(Bars& drawing, const session::Session& session, const MemoryUnit& unit, double longest);

}  // namespace krigtune::page
