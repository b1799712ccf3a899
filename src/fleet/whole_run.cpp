// With M the mean time between failures of the whole job, c the time of a checkpoint, R that of a restart and W the
// work (steps, evaluations, waiting for data), cut into W / t intervals of t:
//
//   wall = W / t * M exp(R / M) (exp((t + c) / M) - 1)              (Daly 2006, the complete cost function)
//
// For small failure rates this is W (1 + c / t) (1 + (R + (t + c) / 2) / M): each failure costs a restart and half an
// interval. The number of failures is wall / M, because they come at the same rate all the time.
#include "fleet/whole_run.h"

#include <fmt/format.h>

#include <cmath>

#include "core/text.h"
#include "core/units.h"

namespace krigtune::fleet {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;
constexpr double kHopeless = 100.0;

// `mean_s`: empty without failures.
double wall_s(double work_s, double interval_s, const session::RunSpec& run, std::optional<double> mean_s) {
  const double checkpoint_s = *run.checkpoint_s;
  if (!mean_s) return work_s * (1.0 + checkpoint_s / interval_s);
  const double of_interval_s =
      *mean_s * std::exp(run.restart_s / *mean_s) * std::expm1((interval_s + checkpoint_s) / *mean_s);
  return work_s / interval_s * of_interval_s;
}

void add_checkpoints_and_failures(double work_s, const session::RunSpec& run, std::optional<double> mean_s,
                                  WholeRun& whole) {
  if (mean_s && *run.checkpoint_s > 0.0) {
    whole.best_interval_s = best_interval_s(*run.checkpoint_s, *mean_s);
    whole.best_wall_s = wall_s(work_s, *whole.best_interval_s, run, mean_s);
  }
  whole.interval_s = run.checkpoint_every_s ? run.checkpoint_every_s : whole.best_interval_s;
  whole.wall_s = wall_s(work_s, *whole.interval_s, run, mean_s);
  whole.checkpoints_s = work_s / *whole.interval_s * *run.checkpoint_s;
  whole.failures_s = mean_s ? whole.wall_s - work_s - whole.checkpoints_s : 0.0;
  whole.failures = mean_s ? whole.wall_s / *mean_s : 0.0;
}

}  // namespace

double best_interval_s(double checkpoint_s, double mean_s) {
  if (checkpoint_s >= 2.0 * mean_s) return mean_s;
  const double ratio = checkpoint_s / (2.0 * mean_s);
  return std::sqrt(2.0 * checkpoint_s * mean_s) * (1.0 + std::sqrt(ratio) / 3.0 + ratio / 9.0) - checkpoint_s;
}

std::optional<WholeRun> whole_run(double steps_s, std::int64_t gpus, const session::RunSpec& run) {
  WholeRun whole;
  whole.steps_s = steps_s;
  whole.evaluation_s = steps_s * (run.evaluation_share + run.data_wait_share);
  const double work_s = whole.steps_s + whole.evaluation_s;
  whole.wall_s = work_s;
  const double failures_per_s = run.failures_per_gpu_day * static_cast<double>(gpus) / kDayInSeconds;
  const std::optional<double> mean_s = failures_per_s > 0.0 ? std::optional(1.0 / failures_per_s) : std::nullopt;
  if (run.checkpoint_s) add_checkpoints_and_failures(work_s, run, mean_s, whole);
  if (!(whole.wall_s <= kHopeless * (work_s + whole.checkpoints_s))) return std::nullopt;
  if (run.power_w) whole.energy_kwh = *run.power_w * static_cast<double>(gpus) * whole.wall_s / kJoulesPerKwh;
  return whole;
}

std::string hopeless_text(const session::RunSpec& run, std::int64_t gpus) {
  const double between_s = kDayInSeconds / (run.failures_per_gpu_day * static_cast<double>(gpus));
  return fmt::format(
      "with {} failures a GPU and day the job fails every {}, so it would take more than a hundred times as long",
      number_text(run.failures_per_gpu_day), duration_text(between_s));
}

}  // namespace krigtune::fleet
