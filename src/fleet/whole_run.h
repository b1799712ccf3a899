#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/sureness.h"
#include "session/whole_run.h"

namespace krigtune::fleet {

inline constexpr double kDayInSeconds = 86'400.0;

/// The expected wall time of a whole training, in seconds, and its parts, which add up to it.
struct WholeRun {
  double wall_s = 0.0;
  double steps_s = 0.0;
  double evaluation_s = 0.0;         ///< evaluations, and waiting for data
  double checkpoints_s = 0.0;        ///< of those that are needed without failures
  double failures_s = 0.0;           ///< lost work, done again, and restarts
  double failures = 0.0;             ///< the expected number
  std::optional<double> interval_s;  ///< of training between two checkpoints; empty: none are written
  /// With failures: Daly's interval, and the wall time with it.
  std::optional<double> best_interval_s;
  std::optional<double> best_wall_s;
  std::optional<double> energy_kwh;

  /// Returns whether the stated interval costs more than 1 % of the time.
  bool interval_is_far_off() const { return best_wall_s && wall_s > 1.01 * *best_wall_s; }
};

/// Returns the expected time of a training whose steps take `steps_s` on so many GPUs. Failures are a Poisson process,
/// and may also hit restarts and checkpoints; each loses the work since the last checkpoint (Daly 2006, "A higher order
/// estimate of the optimum checkpoint interval for restart dumps", the complete cost function). Empty if failures are
/// so frequent that it takes more than a hundred times as long as without them.
std::optional<WholeRun> whole_run(double steps_s, std::int64_t gpus, const session::RunSpec& run);

/// Returns the interval that is best to within a fraction of the checkpoint (Daly 2006; to first order
/// sqrt(2 checkpoint_s mean_s), Young 1974, "A first order approximation to the optimum checkpoint interval").
/// `mean_s`: mean time between failures of the job.
double best_interval_s(double checkpoint_s, double mean_s);

/// Says why a training without a whole_run would never end.
std::string hopeless_text(const session::RunSpec& run, std::int64_t gpus);

}  // namespace krigtune::fleet
