#pragma once
#include <string>
#include <vector>

#include "fleet/whole_run.h"

namespace krigtune::report {

/// "steps 4.1 d, evaluation and data 2.0 h, checkpoints 1.3 h, 3.2 failures 2.5 h"; only "steps 4.1 d" if nothing else
/// is stated.
std::string whole_run_parts(const fleet::WholeRun& whole);

/// Says how often a checkpoint is written and, if that is far off, what would be best; "" without checkpoints.
std::string checkpoint_sentence(const fleet::WholeRun& whole);

/// "12,300 kWh"; "" if no power is stated.
std::string energy_text(const fleet::WholeRun& whole);

/// The lines of `krigtune plan` about one training: its time with its interval, the parts, checkpoints, energy, and
/// what is not in it.
std::vector<std::string> whole_run_lines(const fleet::WholeRun& whole, const fleet::StepTimeRange& range);

}  // namespace krigtune::report
