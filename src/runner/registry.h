#pragma once
#include <filesystem>
#include <memory>

#include "krigtune/core/block.h"
#include "krigtune/runner/runner.h"

namespace krigtune {

/// A runner as sessions know it.
template <class Spec>
struct RunnerEntry {
  RunnerTraits traits;
  /// Its keys in the session's block "runner", but for "kind"; relative paths are relative to `base_dir`.
  Block<Spec> (*block)(const std::filesystem::path& base_dir);
  std::unique_ptr<Runner> (*make)(const Spec& spec, const RunnerJob& job);
};

}  // namespace krigtune
