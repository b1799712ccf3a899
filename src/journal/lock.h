#pragma once
#include <filesystem>
#include <string>

#include "krigtune/core/clock.h"

namespace krigtune {

/// What to do with a lock that a krigtune of this machine made.
enum class OwnLink {
  kIsAwaited,   ///< that krigtune may be alive
  kIsLeftover,  ///< it is dead: the caller holds a lock of the kernel that keeps every living one out
};

/// Optuna's JournalFileSymlinkLock: whoever could make `<journal>.lock` may append. Held from construction to
/// destruction, for one append only: after 30 s without change other writers take it for abandoned and remove it, and
/// so does this one. Throws EnvironmentError when the directory refuses.
class SymlinkLock {
 public:
  SymlinkLock(const std::filesystem::path& journal, const Clock& clock, OwnLink own);
  ~SymlinkLock();
  SymlinkLock(const SymlinkLock&) = delete;
  SymlinkLock& operator=(const SymlinkLock&) = delete;

  /// What the link says: the journal, in a spelling that no other writer uses and no other machine.
  static std::string target_of(const std::filesystem::path& journal);

 private:
  std::filesystem::path link_;
};

}  // namespace krigtune
