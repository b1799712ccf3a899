#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace krigtune::cost {

/// One pipeline stage as 1F1B sees it.
struct StageTime {
  double forward_s = 0.0;   ///< of one micro-step
  double backward_s = 0.0;  ///< likewise, with what is computed again
  double rest_s = 0.0;      ///< of the step behind its last backward
};

/// Seconds of a step of `micro_steps`: each passes the stages forward, then backward; a stage takes `send_s` to send to
/// a neighbour.
double one_forward_one_backward_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s);
/// The forward or backward of one micro-step on one stage, and when it passes on what it made.
struct StageTask {
  std::size_t stage = 0;
  std::int64_t micro_step = 0;
  bool backward = false;
  double start_s = 0.0;
  double worked_s = 0.0;  ///< the work ends, sending begins
  double end_s = 0.0;
};
/// The same step task by task, in the order of each stage; what a stage does behind its last task is not among them.
std::vector<StageTask> one_forward_one_backward(std::span<const StageTime> stages, std::int64_t micro_steps,
                                                double send_s);
/// How many times a stage sends in a micro-step.
double sends(std::size_t stage, std::size_t stages);

/// Layers by stage. Even: as many in each, what remains one each to the first ones. Else so that the slowest stage is
/// fastest, where the last one computes the head as well, which costs `head_layers`.
std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages, bool even, double head_layers);

}  // namespace krigtune::cost
