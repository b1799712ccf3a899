#pragma once
#include "host/processes.h"
#include "krigtune/engine/trainer.h"

namespace krigtune {

/// Makes the result of a step the same in all processes, so that they decide alike (whether to go on measuring): times
/// are the largest, the loss is the sum of their parts. Returns what all take for now: the clock of process 0. With no
/// processes it changes nothing and asks the clock.
double agree(StepResult& result, Processes* processes, const Clock& clock);

}  // namespace krigtune
