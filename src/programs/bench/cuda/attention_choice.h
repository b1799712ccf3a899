#pragma once
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "engine/host/launch.h"
#include "programs/bench/options.h"

namespace krigtune::bench {

/// Which kernel computes attention's forward pass in a job.
struct AttentionChoice {
  bool hopper = false;  ///< DeviceWorld::hopper_attention
  std::string warning;  ///< one line: why the kernel for Hopper is not used, though it could be; or nothing
};

/// The kernel for Hopper if GPU `device` and this program's code have what it needs, the job's attention suits it, and
/// it passes its check: `program` is started with --check-attention, because a kernel that fails or hangs takes its
/// process with it. Makes no context on the GPU. KRIGTUNE_HOPPER_ATTENTION=off leaves it out unchecked; throws
/// UserError for another value.
AttentionChoice choose_attention(const workload::Workload& workload, int device, const engine::Environment& environment,
                                 const std::filesystem::path& program);

inline constexpr const char* kCheckAttention = "--check-attention";

/// What krigtune-bench-cuda does if its arguments are --check-attention DEVICE TYPE HEAD_SIZE: compares the two kernels
/// on that GPU (engine/cuda/attention_check.h). Prints why the one for Hopper is not to be used, and returns 1; 0 if it
/// may be. Ends by SIGALRM where that takes longer than half a minute. Throws UserError for other arguments.
int check_attention(const std::vector<std::string>& arguments, std::ostream& out);

}  // namespace krigtune::bench
