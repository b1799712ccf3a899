#include "cuda/local_rank.h"

#include <charconv>

#include "krigtune/core/error.h"

namespace krigtune::cuda {

int local_rank_from(const Environment& environment, int rank, int gpus) {
  for (const char* name : {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    const auto text = environment(name);
    if (!text) continue;
    int value = -1;
    const char* end = text->data() + text->size();
    if (std::from_chars(text->data(), end, value).ptr != end || value < 0) {
      throw UserError(std::string(name) + " is '" + *text + "'", "it has to be a number from 0 on");
    }
    return value;
  }
  return gpus > 0 ? rank % gpus : 0;
}

}  // namespace krigtune::cuda
