#pragma once
#include "cuda/kernels/queue.h"
#include "host/kernels/kernel.h"

namespace krigtune::cuda {

/// The elements [begin, begin + to.elems) of tensor `index` as `tensor_rank` holds it: host/initial_values.h, on the
/// device. Throws std::logic_error for a tensor of more blocks than attention or an MLP have.
void initial_values(const StepPlan& plan, int index, std::uint64_t seed, std::int64_t tensor_rank, std::int64_t begin,
                    const OperandView& to, Queue queue);

}  // namespace krigtune::cuda
