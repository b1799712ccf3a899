#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/knobs.h"
#include "schedule/tensors.h"
#include "workload/model.h"

namespace krigtune::cost {

/// The times of one pipeline stage.
struct StageTime {
  double forward_s = 0.0;   ///< of one micro-step
  double backward_s = 0.0;  ///< of one micro-step, including recomputation
  double rest_s = 0.0;      ///< remainder of the step after the last pass of its rank
  double weights_s = 0.0;   ///< part of backward_s that only makes gradients of weights
};

/// Where stages are, and in which order the ranks do their passes.
struct PipelineShape {
  std::int64_t ranks = 1;
  std::int64_t stages_of_rank = 1;  ///< 2 with schedules in a V (schedule::is_vee)
  schedule::PipelineSchedule schedule = {};

  /// Returns the rank of a stage: n ranks have the stages r, r + n, ... (r: the rank); in a V r and
  /// 2 n - 1 - r, so that the middle of the model is on one rank, and so are its ends.
  std::size_t rank_of(std::size_t stage) const;
};
PipelineShape pipeline_shape(const schedule::Knobs& knobs);

// 1F1B. A rank has one stage, or several of a model that is cut into more stages than there are ranks (interleaved
// 1F1B): with n ranks, rank r has the stages r, r + n, r + 2 n, ... in the order in which a micro-step passes them. The
// functions below take stages in that order, and `stages_of_rank`.

/// Returns the seconds of a step of `micro_steps`. Each passes the stages forward, then backward; a rank takes `send_s`
/// to send to a neighbour. With several stages a rank, micro_steps is a multiple of max(1, micro_steps / ranks).
double one_forward_one_backward_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s,
                                  std::int64_t stages_of_rank = 1);
/// The forward or backward of one micro-step on one stage, and when its result is sent. Where a schedule splits the
/// backward pass, it is two tasks. Of a pair of passes that are done together, both tasks begin and end with the pair.
struct StageTask {
  std::size_t stage = 0;
  std::int64_t micro_step = 0;
  bool backward = false;
  double start_s = 0.0;
  double worked_s = 0.0;  ///< when the work ends and sending begins
  double end_s = 0.0;
  bool weights = false;  ///< backward is only that of weights; nothing is sent
};
/// Returns the same step task by task, in the order of each rank, without the work after a rank's last task.
std::vector<StageTask> one_forward_one_backward(std::span<const StageTime> stages, std::int64_t micro_steps,
                                                double send_s, std::int64_t stages_of_rank = 1);
/// Returns how often a rank sends in a micro-step.
double sends(std::size_t rank, std::size_t ranks, std::int64_t stages_of_rank = 1);

// Any schedule. Stages come in the order in which a micro-step passes them.

/// Returns the seconds of a step. `overlaps_steps`: no rank waits for another one between steps
/// (FrameworkTraits::validates_later), so that a step takes what the rank that is busy longest does from its first pass
/// on; this changes schedules that split the backward pass alone.
double pipeline_s(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s,
                  const PipelineShape& shape, bool overlaps_steps = false);
/// Returns the step task by task, in the order of each rank, without the work after a rank's last task.
std::vector<StageTask> pipeline_tasks(std::span<const StageTime> stages, std::int64_t micro_steps, double send_s,
                                      const PipelineShape& shape);
/// Returns how often a rank sends in a micro-step.
double sends(std::size_t rank, const PipelineShape& shape);

/// What a rank keeps for backward passes when it keeps most.
struct InFlight {
  std::int64_t passes = 1;    ///< forward passes of one of its stages whose backward is still to come
  std::int64_t of_first = 1;  ///< those among them of its first stage
  std::int64_t stages_of_rank = 1;
  std::int64_t waiting = 0;  ///< passes that have made gradients of inputs, and those of weights are still to come
};
/// Returns it for one of `ranks` ranks in 1F1B.
InFlight in_flight(std::int64_t rank, std::int64_t ranks, std::int64_t micro_steps, std::int64_t stages_of_rank = 1);
/// Returns it for any schedule. `weights_share`: bytes that a waiting pass keeps, divided by those that one keeps until
/// backward.
InFlight in_flight(std::int64_t rank, std::int64_t micro_steps, const PipelineShape& shape, double weights_share);

/// Returns the number of layers of each stage. `even`: equal numbers, with the remainder going to the first stages.
/// Otherwise the distribution that makes the slowest stage fastest, where the last stage also computes the head, which
/// costs as much as `head_layers` layers.
std::vector<std::int64_t> stage_layers(std::int64_t layers, std::int64_t stages, bool even, double head_layers);
/// Returns the number of layers of each stage where a rank has several, or where the last stage predicts further tokens
/// too: equal numbers; if one or two layers are missing, the last stage, then the first one too, has one less; other
/// remainders go to the first stages. Each further token is worth another layer of the last stage, as in Megatron's
/// layouts of DeepSeek-V3 ("Et*4|(t*4|)*14tmL", "Et|(tt|)*30mL").
std::vector<std::int64_t> interleaved_layers(std::int64_t layers, std::int64_t stages, std::int64_t further_tokens = 0);
/// Returns the sum of the numbers that belong to one rank.
std::int64_t layers_of_rank(std::span<const std::int64_t> stages, std::int64_t rank, const PipelineShape& shape);
/// Returns what each rank holds, for the numbers of layers of all stages. Frameworks count layers with and without
/// experts alike.
std::vector<schedule::StageParts> parts_of_ranks(const workload::ModelSpec& model, std::span<const std::int64_t> layers,
                                                 const PipelineShape& shape);

}  // namespace krigtune::cost
