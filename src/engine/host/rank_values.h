#pragma once
#include <cstdint>
#include <vector>

#include "engine/host/arena.h"
#include "engine/host/bound_plan.h"
#include "plan/step_plan.h"

namespace krigtune::engine {

/// Writes elements [begin, begin + count) of tensor `index` as `tensor_rank` holds it: initial_mean + initial_stddev *
/// normal, a pure function of (seed, index, element of the whole tensor), whoever holds it; padding elements are 0.
void fill_initial_values(const plan::StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                         std::int64_t begin, std::int64_t count, float* out);

/// Fills what a rank keeps from step to step: parameters and their copies with initial values, each in its buffer's
/// type, the control block with the first loss scale, all else with zeros.
void put_first_values(const plan::StepPlan& plan, const RankMemory& memory, const GroupRanks& ranks,
                      std::uint64_t seed);

/// What this rank holds of a tensor, as bytes in its buffer's type.
std::span<const std::byte> held_bytes(const plan::StepPlan& plan, const RankMemory& memory,
                                      const plan::TensorHome& home, std::int64_t data_rank);
/// Appends elements of a type as floats.
void append_floats(schedule::DType type, std::span<const std::byte> values, std::vector<float>& to);

/// The sum of the losses of all micro-steps.
double sum_of_losses(const plan::StepPlan& plan, const RankMemory& memory);

}  // namespace krigtune::engine
