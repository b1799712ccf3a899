// 1F1B (Narayanan et al. 2019, "PipeDream"; 2021, section 2.2): with one slowest stage of t = forward + backward
//
//   T = sum over stages (forward + backward + 2 send) + (k - 1) (max t + 2 send)
//
// which is (k + p - 1) t where all are alike. A stage that ends its last backward earlier than the first stage does
// (by the backwards of those before it) has that time for its reductions.
#include "pipeline.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace krigtune {

double one_forward_one_backward_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s) {
  double fill_s = 0.0;
  double slowest_s = 0.0;
  double rest_s = 0.0;
  double earlier_s = 0.0;
  for (const StageTime& stage : stages) {
    const double both_s = stage.forward_s + stage.backward_s;
    fill_s += both_s;
    slowest_s = std::max(slowest_s, both_s);
    rest_s = std::max(rest_s, stage.rest_s - earlier_s);
    earlier_s += stage.backward_s + send_s;
  }
  const double sends_s = stages.size() > 1 ? 2.0 * send_s : 0.0;
  return fill_s + static_cast<double>(stages.size() - 1) * sends_s +
         static_cast<double>(micro_steps - 1) * (slowest_s + sends_s) + rest_s;
}

std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages, bool even, double head_layers) {
  assert(stages >= 1 && stages <= layers);
  std::vector<std::int64_t> result(static_cast<std::size_t>(stages), layers / stages);
  const auto spread = [&](std::int64_t rest, std::int64_t over) {
    for (std::int64_t i = 0; i < over; ++i)
      result[static_cast<std::size_t>(i)] = rest / over + (i < rest % over ? 1 : 0);
  };
  spread(layers, stages);
  if (even || stages == 1) return result;
  std::int64_t best = 1;
  double fastest = std::numeric_limits<double>::infinity();
  for (std::int64_t last = layers / stages + 1; last >= 1; --last) {
    if (layers - last < stages - 1) continue;
    const std::int64_t others = (layers - last + stages - 2) / (stages - 1);
    const double slowest = std::max(static_cast<double>(others), static_cast<double>(last) + head_layers);
    if (slowest < fastest) {
      fastest = slowest;
      best = last;
    }
  }
  spread(layers - best, stages - 1);
  result.back() = best;
  return result;
}

}  // namespace krigtune
