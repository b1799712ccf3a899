#pragma once
#include <filesystem>
#include <string>

#include "krigtune/core/clock.h"

namespace krigtune {

/// Optuna's JournalFileSymlinkLock: whoever could make `<journal>.lock` may append. Held from construction to
/// destruction, for one append only: after 30 s without change other writers take it for abandoned and remove it, and
/// so does this one. Throws EnvironmentError when the directory refuses.
class SymlinkLock {
 public:
  SymlinkLock(const std::filesystem::path& journal, const Clock& clock);
  ~SymlinkLock();
  SymlinkLock(const SymlinkLock&) = delete;
  SymlinkLock& operator=(const SymlinkLock&) = delete;

  /// Removes the lock of a krigtune that was killed while it appended. Only for who knows that no other one runs.
  static void remove_own_leftover(const std::filesystem::path& journal);

 private:
  std::filesystem::path link_;
};

}  // namespace krigtune
