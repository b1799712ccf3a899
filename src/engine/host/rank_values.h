#pragma once
#include <cstdint>
#include <vector>

#include "engine/host/arena.h"
#include "engine/host/bound_plan.h"
#include "plan/step_plan.h"

namespace krigtune::engine {

/// Writes elements [begin, begin + count) of tensor `index` as `tensor_rank` has them: initial_mean + initial_stddev *
/// normal, a pure function of (seed, index, element of the whole tensor) on every rank. Padding elements are 0.
void fill_initial_values(const plan::StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                         std::int64_t begin, std::int64_t count, float* out);

/// Sets what a rank keeps from step to step: parameters and their copies to initial values, each in its buffer's type,
/// the control block to the first loss scale, and everything else to zero.
void put_first_values(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks,
                      std::uint64_t seed);

/// Returns this rank's part of a tensor, as bytes in its buffer's type.
std::span<const std::byte> held_bytes(const plan::StepPlan& plan, const RankMemory& memory,
                                      const plan::TensorHome& home, std::int64_t data_rank);
/// Appends elements of `type` as floats.
void append_floats(schedule::DType type, std::span<const std::byte> values, std::vector<float>& to);

/// Returns the sum of the losses of all micro-steps.
double sum_of_losses(const plan::StepPlan& plan, const RankMemory& memory);

}  // namespace krigtune::engine
