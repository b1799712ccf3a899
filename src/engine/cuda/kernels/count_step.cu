// The number of the step lives on the device, so that a step that was captured as a graph can be replayed as the next.
#include "cuda/kernels/device.h"
#include "cuda/kernels/device_kernel.h"

namespace krigtune::cuda {

void count_step(std::int64_t* step, Queue queue) {
  launch_elements(queue, 1, [=] __device__(std::int64_t) { ++*step; });
}

}  // namespace krigtune::cuda
