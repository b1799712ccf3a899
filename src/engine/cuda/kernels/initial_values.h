#pragma once
#include "engine/cuda/kernels/device_kernel.h"
#include "engine/host/kernels/kernel.h"

namespace krigtune::cuda {

/// The elements [begin, begin + to.elems) of tensor `index` as `tensor_rank` holds it: engine/host/rank_values.h, on
/// the device. Throws std::logic_error for a tensor of more blocks than attention or an MLP have.
void initial_values(const plan::StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank,
                    std::int64_t begin, const engine::OperandView& to, Queue queue);

}  // namespace krigtune::cuda
