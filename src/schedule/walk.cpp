#include "schedule/walk.h"

namespace krigtune::schedule {

Walk::Walk(const Setting& setting, std::int64_t micro_steps, GatheringSink& gathered, ReductionSink& reduced)
    : parts_(parts_of(setting.tensors, setting.knobs)),
      gathering_(setting, parts_, micro_steps, gathered),
      reduction_(setting, micro_steps, reduced) {}

void Walk::micro_step(PartSink& sink) {
  for (const Part& part : parts_) {
    sink.begin(part);
    if (part.begins_use) gathering_.begin_use();
    sink.add(part);
  }
  reduction_.end_micro_step();
}

}  // namespace krigtune::schedule
