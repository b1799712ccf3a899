#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/tensors.h"
#include "workload/model.h"

namespace krigtune::cost {

/// The times of one pipeline stage for 1F1B.
struct StageTime {
  double forward_s = 0.0;   ///< of one micro-step
  double backward_s = 0.0;  ///< of one micro-step, including recomputation
  double rest_s = 0.0;      ///< remainder of the step after its last backward
};

/// Returns the seconds of a step of `micro_steps`. Each passes the stages forward, then backward; a stage takes
/// `send_s` to send to a neighbour.
double one_forward_one_backward_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s);
/// The forward or backward of one micro-step on one stage, and when its result is sent.
struct StageTask {
  std::size_t stage = 0;
  std::int64_t micro_step = 0;
  bool backward = false;
  double start_s = 0.0;
  double worked_s = 0.0;  ///< when the work ends and sending begins
  double end_s = 0.0;
};
/// Returns the same step task by task, in the order of each stage, without the work after a stage's last task.
std::vector<StageTask> one_forward_one_backward(std::span<const StageTime> stages, std::int64_t micro_steps,
                                                double send_s);
/// Returns how often a stage sends in a micro-step.
double sends(std::size_t stage, std::size_t stages);

/// Returns the number of layers of each stage. `even`: equal numbers, with the remainder going to the first stages.
/// Otherwise the distribution that makes the slowest stage fastest, where the last stage also computes the head, which
/// costs as much as `head_layers` layers.
std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages, bool even, double head_layers);
/// Returns what the stages hold that have so many layers each. Frameworks count layers with and without experts alike.
std::vector<schedule::StageParts> parts_of_stages(const workload::ModelSpec& model,
                                                  std::span<const std::int64_t> layers);

}  // namespace krigtune::cost
