#pragma once
#include <memory>
#include <optional>

#include "cost/memory/memory_model.h"
#include "session/session.h"

namespace krigtune::session {

/// What memory configurations need, before anything runs: to the byte with krigtune-bench, with a probability for other
/// programs, unknown where the session does not say how much there is. Safe from several threads.
class MemoryFilter {
 public:
  explicit MemoryFilter(const Session& session);  ///< copies what it needs
  ~MemoryFilter();

  /// False where memory is not modelled: `check` is always empty.
  bool knows_memory() const;
  /// Whether a verdict is certain: what runs is what was planned.
  bool is_exact() const;
  /// In microseconds where a closed form decides, else in the milliseconds of a plan; what it says is needed may be a
  /// few per cent off. Empty as well for single configurations that are not modelled (offload to NVMe).
  std::optional<plan::MemoryVerdict> check(const space::Configuration& configuration) const;
  /// With krigtune-bench to the byte, always by a plan, each once; else as `check`.
  std::optional<plan::MemoryVerdict> planned(const space::Configuration& configuration) const;
  /// Term by term.
  std::optional<cost::MemoryEstimate> estimate(const space::Configuration& configuration) const;
  /// False only where it cannot fit.
  bool may_fit(const space::Configuration& configuration) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// What the models know of a configuration: parameters of the user's own are left out.
space::Configuration modelled_part(const space::Configuration& configuration);

}  // namespace krigtune::session
