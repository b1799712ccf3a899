#pragma once
#include "engine/cuda/kernels/device_kernel.h"
#include "engine/host/kernels/kernel.h"

namespace krigtune::cuda {

/// Computes the elements [begin, begin + to.elems) of tensor `index` as `tensor_rank` holds it, on the device. They are
/// those of engine/host/rank_values.h. Throws std::logic_error for a tensor with more blocks than attention or an MLP
/// has.
void initial_values(const plan::StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                    std::int64_t begin, const engine::OperandView& to, Queue queue);

}  // namespace krigtune::cuda
