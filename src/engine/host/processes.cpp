#include "engine/host/processes.h"

#include <algorithm>

namespace krigtune::engine {

double agree(StepResult& result, Processes* processes, const Clock& clock) {
  struct Said {
    double step_time_s, exposed_comm_s, loss, now_s;
  };
  const Said mine{result.step_time_s, result.exposed_comm_s, result.loss, clock.now_s()};
  if (processes == nullptr) return mine.now_s;
  const std::vector<Said> all = all_say(processes->control(), mine);
  result.loss = 0.0;
  for (const Said& said : all) {
    result.step_time_s = std::max(result.step_time_s, said.step_time_s);
    result.exposed_comm_s = std::max(result.exposed_comm_s, said.exposed_comm_s);
    result.loss += said.loss;
  }
  return all.front().now_s;
}

}  // namespace krigtune::engine
