#pragma once
#include "bench/machine_samples.h"
#include "krigtune/workload/measured_machine.h"

namespace krigtune {

/// What fits the samples.
MeasuredMachine fit_machine(const MachineKey& key, const MachineSamples& samples);

/// This machine for so many CPU ranks, in about five seconds.
MeasuredMachine measure_machine(std::int64_t ranks, Precision precision, const Clock& clock);

}  // namespace krigtune
