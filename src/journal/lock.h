#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "core/clock.h"

namespace krigtune::journal {

/// The bytes of a journal that krigtune locks. They lie far beyond the end of any: nobody reads or writes them.
enum class LockedByte : off_t {
  kTunerClaim = off_t{1} << 62,  ///< for as long as a tuner lives
  kAppend,                       ///< for one append
};

enum class LockAnswer { kTaken, kRefused, kNotKnown };  ///< kNotKnown: this file system has no such locks

/// Locks of an open file description (F_OFD_SETLK): they exclude other processes and other opens in this one, and end
/// when its last descriptor is closed. So with the process, however that ends, unless a forked child kept a copy.
/// `file` must be open for writing.
LockAnswer try_to_lock(int file, LockedByte byte);
void unlock(int file, LockedByte byte);  ///< at once, whoever has copies of the descriptor
/// Whether somebody else has it; `file` may be open for reading only. False where such locks are not known.
bool is_locked(int file, LockedByte byte);

/// Waits for the lock and holds it until the end of the scope.
class ScopedByteLock {
 public:
  ScopedByteLock(int file, LockedByte byte);
  ~ScopedByteLock();
  ScopedByteLock(const ScopedByteLock&) = delete;
  ScopedByteLock& operator=(const ScopedByteLock&) = delete;

  /// False: this file system has no such locks, and nobody is excluded.
  bool excludes() const { return taken_; }

 private:
  int file_;
  LockedByte byte_;
  bool taken_;
};

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

/// The claim of the one `tune` that runs a directory's trials. It is a lock of the open journal file (F_OFD_SETLK), so
/// it ends with the process, however that ends; a child that is forked without exec has to close its copies of all
/// descriptors, or the claim lasts until its end. `ask`, `tell` and Optuna append beside it. On a file system without
/// such locks nobody is refused.
class TunerClaim {
 public:
  /// Opens or creates the journal. Throws UserError when another tune has the claim or the file cannot be opened.
  explicit TunerClaim(const std::filesystem::path& journal);
  ~TunerClaim();
  TunerClaim(const TunerClaim&) = delete;
  TunerClaim& operator=(const TunerClaim&) = delete;

  /// Whether somebody has it now. False too where there is no journal, or no such locks.
  static bool is_held(const std::filesystem::path& journal);

 private:
  int file_ = -1;
};

}  // namespace krigtune::journal
