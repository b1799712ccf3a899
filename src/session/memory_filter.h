#pragma once
#include <memory>
#include <optional>

#include "cost/memory/memory_model.h"
#include "session/session.h"

namespace krigtune::session {

/// Predicts whether configurations fit into memory, before any trial runs: to the byte with krigtune-bench, with a
/// probability for other programs, and not at all if the session does not say how much memory there is. Safe from
/// several threads.
class MemoryFilter {
 public:
  explicit MemoryFilter(const Session& session);  ///< copies what it needs
  ~MemoryFilter();

  /// Returns false if memory is not modelled; `check` is then always empty.
  bool knows_memory() const;
  /// Returns whether a verdict is certain, because the program runs exactly the plan.
  bool is_exact() const;
  /// Returns the verdict, in microseconds if a closed form decides and otherwise in the milliseconds of a plan. The
  /// predicted need may be wrong by a few per cent. Also empty for single configurations that are not modelled (offload
  /// to NVMe).
  std::optional<plan::MemoryVerdict> check(const space::Configuration& configuration) const;
  /// With krigtune-bench, returns a verdict that is exact to the byte, from a plan that is made only once per
  /// configuration; otherwise the result of `check`.
  std::optional<plan::MemoryVerdict> planned(const space::Configuration& configuration) const;
  /// Returns the predicted memory, term by term.
  std::optional<cost::MemoryEstimate> estimate(const space::Configuration& configuration) const;
  /// Returns false only if the configuration cannot fit.
  bool may_fit(const space::Configuration& configuration) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the part of a configuration that the models know: without the user's own parameters, and with the
/// usual names in place of others (space/usual_names.h): micro_batch for mbs.
space::Configuration modelled_part(const space::Configuration& configuration);

}  // namespace krigtune::session
