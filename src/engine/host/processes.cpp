#include "engine/host/processes.h"

#include <algorithm>
#include <utility>

namespace krigtune::engine {

void set_rank_kernels(std::vector<double> kernels_s, StepResult& result) {
  std::sort(kernels_s.begin(), kernels_s.end());
  result.median_rank_kernels_s = kernels_s[(kernels_s.size() - 1) / 2];
  result.slowest_rank_kernels_s = kernels_s.back();
}

double agree(StepResult& result, Processes* processes, const Clock& clock) {
  struct Said {
    double step_time_s, exposed_comm_s, kernels_s, loss, now_s;
  };
  const Said mine{result.step_time_s, result.exposed_comm_s, result.slowest_rank_kernels_s, result.loss, clock.now_s()};
  if (processes == nullptr) return mine.now_s;
  const std::vector<Said> all = all_say(processes->control(), mine);
  result.loss = 0.0;
  std::vector<double> kernels_s;
  for (const Said& said : all) {
    result.step_time_s = std::max(result.step_time_s, said.step_time_s);
    result.exposed_comm_s = std::max(result.exposed_comm_s, said.exposed_comm_s);
    result.loss += said.loss;
    kernels_s.push_back(said.kernels_s);
  }
  set_rank_kernels(std::move(kernels_s), result);
  return all.front().now_s;
}

}  // namespace krigtune::engine
