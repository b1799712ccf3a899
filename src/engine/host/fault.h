#pragma once
#include <optional>

#include "engine/trainer.h"

namespace krigtune::engine {

/// Does what the fault says if it is meant for this rank and step.
void inject(const std::optional<Fault>& fault, std::int64_t world_rank, std::int64_t step);

/// "hang:RANK:STEP", likewise abort, bad_alloc, kill: what tests put into KRIGTUNE_BENCH_FAULT. Throws UserError.
Fault fault_from(const std::string& text);

}  // namespace krigtune::engine
