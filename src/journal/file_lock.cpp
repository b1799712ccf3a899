#include "file_lock.h"

#include <fcntl.h>

#include <cerrno>

namespace krigtune {
namespace {

bool change(int file, int command, short type, LockedByte byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  int result = -1;
  do {
    result = ::fcntl(file, command, &lock);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

}  // namespace

LockAnswer try_to_lock(int file, LockedByte byte) {
  if (change(file, F_OFD_SETLK, F_WRLCK, byte)) return LockAnswer::kTaken;
  return errno == EAGAIN || errno == EACCES ? LockAnswer::kRefused : LockAnswer::kNotKnown;
}

void unlock(int file, LockedByte byte) { change(file, F_OFD_SETLK, F_UNLCK, byte); }

bool is_locked(int file, LockedByte byte) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

ScopedByteLock::ScopedByteLock(int file, LockedByte byte)
    : file_(file), byte_(byte), taken_(change(file, F_OFD_SETLKW, F_WRLCK, byte)) {}

ScopedByteLock::~ScopedByteLock() {
  if (taken_) unlock(file_, byte_);
}

}  // namespace krigtune
