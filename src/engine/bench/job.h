#pragma once
#include <filesystem>

#include "krigtune/space/configuration.h"
#include "krigtune/workload/workload.h"

namespace krigtune {

/// What is to be trained, and how: the file given with --config.
struct TrainingJob {
  Workload workload;
  ClusterSpec cluster;
  MemorySpec memory;
  Configuration configuration;
};

/// Throws UserError with the JSON pointer.
TrainingJob load_job(const std::filesystem::path& path);

}  // namespace krigtune
