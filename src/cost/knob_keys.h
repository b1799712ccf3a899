#pragma once
#include "schedule/knobs.h"

// What is computed once for many configurations is computed from knobs that have the defaults of all that it does not
// depend on, and is found again by these knobs:
//
//   const schedule::Knobs own = of_block(knobs);
//   auto& known = plans[own];
//   if (!known) known = plan_of(own);
//
// Each function names what does not matter. So a new knob makes a difference until somebody says that it does not.
namespace krigtune::cost {

/// Of the plan of one block on one tensor group: without what ranks of other groups share or exchange. The plan has two
/// micro-steps and checkpoints of one layer.
schedule::Knobs of_block(schedule::Knobs knobs);
/// Of a StepTemplate: a block's plan with the exchanges between the ranks that share tokens. What matters of pipeline
/// ranks is whether there are several, and of the layers between two checkpoints whether it is one.
schedule::Knobs of_template(schedule::Knobs knobs);
/// Of a MemoryProfile, which is that of one sequence. Its plan has checkpoints of two layers.
schedule::Knobs of_profile(schedule::Knobs knobs);
/// Of the tensors of a pipeline stage.
schedule::Knobs of_tensors(schedule::Knobs knobs);
/// Of GroupSpans.
schedule::Knobs of_spans(schedule::Knobs knobs);

}  // namespace krigtune::cost
