#pragma once
#include <sys/types.h>

namespace krigtune {

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

}  // namespace krigtune
