#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>

#include "core/clock.h"

namespace krigtune::journal {

/// The bytes of a journal that krigtune locks. They lie far beyond the end of any journal; nobody reads or writes them.
enum class LockedByte : off_t {
  kTunerClaim = off_t{1} << 62,  ///< held for as long as a tuner lives
  kAppend,                       ///< held for one append
};

enum class LockAnswer { kTaken, kRefused, kNotKnown };  ///< kNotKnown: this file system has no such locks

/// Locks of an open file description (F_OFD_SETLK). They exclude other processes, and other opens of the file in this
/// one. They end when the last descriptor is closed, so with the process, however it ends, unless a forked child has a
/// copy. `file` must be open for writing.
LockAnswer try_to_lock(int file, LockedByte byte);
void unlock(int file, LockedByte byte);  ///< releases it at once, even if others have copies of the descriptor
/// Returns whether somebody else has the lock; `file` may be open for reading only. False if such locks are not
/// supported.
bool is_locked(int file, LockedByte byte);

/// Waits for the lock and keeps it until the end of the scope.
class ScopedByteLock {
 public:
  ScopedByteLock(int file, LockedByte byte);
  ~ScopedByteLock();
  ScopedByteLock(const ScopedByteLock&) = delete;
  ScopedByteLock& operator=(const ScopedByteLock&) = delete;

  /// False if this file system has no such locks: then nobody is excluded.
  bool excludes() const { return taken_; }

 private:
  int file_;
  LockedByte byte_;
  bool taken_;
};

/// What to do with a lock that a krigtune of this machine made.
enum class OwnLink {
  kIsAwaited,   ///< that krigtune may be alive
  kIsLeftover,  ///< it is dead: the caller has a kernel lock that excludes every living one
};

/// Optuna's JournalFileSymlinkLock: whoever can create `<journal>.lock` may append. Keep the lock for one append only:
/// after 30 s without a change other writers consider it abandoned and remove it, as this class does with theirs.
/// Throws EnvironmentError if the link cannot be made in the directory.
class SymlinkLock {
 public:
  SymlinkLock(const std::filesystem::path& journal, const Clock& clock, OwnLink own);
  ~SymlinkLock();
  SymlinkLock(const SymlinkLock&) = delete;
  SymlinkLock& operator=(const SymlinkLock&) = delete;

  /// Returns the target of the link: the journal, spelled in a way that no other writer and no other machine uses.
  static std::string target_of(const std::filesystem::path& journal);

 private:
  std::filesystem::path link_;
};

/// The claim of the one `tune` that runs a directory's trials. It is a lock of the open journal file (F_OFD_SETLK), so
/// it ends with the process, however that ends. A child that is forked without exec must close its copies of all
/// descriptors, or the claim lasts until the child ends. `ask`, `tell` and Optuna may append meanwhile. On a file
/// system without such locks nobody is refused.
class TunerClaim {
 public:
  /// Opens or creates the journal. Throws UserError if another tune has the claim or if the file cannot be opened.
  explicit TunerClaim(const std::filesystem::path& journal);
  ~TunerClaim();
  TunerClaim(const TunerClaim&) = delete;
  TunerClaim& operator=(const TunerClaim&) = delete;

  /// Returns whether somebody has the claim now. False also if there is no journal, or if such locks are not supported.
  static bool is_held(const std::filesystem::path& journal);

 private:
  int file_ = -1;
};

}  // namespace krigtune::journal
