#pragma once
#include <functional>
#include <memory>

#include "krigtune/core/block.h"
#include "krigtune/runner/runner.h"

namespace krigtune {

/// A runner as sessions know it.
template <class Spec>
struct RunnerEntry {
  RunnerTraits traits;
  Block<Spec> block;  ///< its keys in the session's block "runner", but for "kind"
  std::function<std::unique_ptr<Runner>(const Spec& spec, const RunnerJob& job)> make;
};

}  // namespace krigtune
