#pragma once
#include "stagewise/answers.h"
#include "stagewise/stage_cells.h"

// The three tuners of DeepSpeed's autotuner (autotuning/tuner). Private to this layer.
namespace krigtune {

struct SpaceTunerOptions {
  StagewiseOptions stagewise;
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  ///< of random numbers: one a tuning space
};

/// Searches the space by what `answers` knows. Empty: something is open. Else the best value that was found, if any
/// configuration ran.
std::optional<std::optional<double>> tune_space(const TuningSpace& space, const Space& parameters,
                                                const Objective& objective, const SpaceTunerOptions& options,
                                                Answers& answers);

}  // namespace krigtune
