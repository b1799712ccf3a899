#pragma once
#include <cstddef>
#include <vector>

#include "cost/time/step_template.h"

namespace krigtune::cost {

// Exchanges of tokens with experts that run beside another micro-batch (moe_overlap). Megatron Core merges the forward
// pass of one micro-batch with the backward pass of another, block by block
// (core/models/common/model_chunk_schedule_plan.py): tokens travel to the experts beside the experts' backward pass and
// return beside attention's; gradients travel to the experts beside attention's forward pass and return beside that of
// the experts.

/// A pass of a block with experts, and which of its operations are the exchanges.
struct PassWithExchanges {
  Pass& pass;
  const std::vector<std::size_t>& exchanges;
};

/// Seconds of a pass between its two exchanges, where the experts compute, and of all else but the exchanges.
struct TimeAround {
  double outside_s = 0.0, between_s = 0.0;
};
/// Returns zeros if there are not two exchanges.
TimeAround time_around(const PassWithExchanges& pass);

/// Of what two exchanges could hide beside work of so many seconds, which takes `slowdown` times as long meanwhile,
/// jobs hide about this share: 0.61, 0.53 and 0.33 in three published pairs of the same job with and without, where an
/// ideal overlap saves 28, 46 and 33 % of the step (experiments/data/published_runs.csv, r0327 and r0328, r0330 and
/// r0331, r0836 and r0837; the second pair does not state the job and is taken to be of the first one's).
inline constexpr double kHiddenShare = 0.5;
/// Leaves of the two exchanges what is not hidden. Does nothing if there are not two.
void hide(const PassWithExchanges& pass, double beside_first_s, double beside_second_s, double slowdown);

}  // namespace krigtune::cost
