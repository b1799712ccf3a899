#pragma once
#include <memory>
#include <optional>

#include "krigtune/plan/memory.h"
#include "krigtune/tuner/session.h"

namespace krigtune {

struct MemoryCheck {
  MemoryVerdict verdict;
  MemoryReport report;  ///< by term
};

/// Plans the memory of configurations, each once: exact with the bench runner, unknown with replay.
/// Safe from several threads.
class MemoryFilter {
 public:
  explicit MemoryFilter(const Session& session);  ///< copies what it needs
  ~MemoryFilter();

  /// False with a runner whose memory is not modelled: `check` is always empty.
  bool knows_memory() const;
  std::optional<MemoryCheck> check(const Configuration& configuration) const;
  /// False only where it is known not to fit.
  bool may_fit(const Configuration& configuration) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace krigtune
