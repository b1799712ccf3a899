#include "journal/lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "core/error.h"
#include "journal/append_file.h"

namespace krigtune::journal {
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

namespace {

constexpr double kFirstPauseS = 1e-3;
constexpr double kLongestPauseS = 1.0;
constexpr double kGraceS = 30.0;

std::filesystem::path link_of(const std::filesystem::path& journal) { return journal.string() + ".lock"; }

// Returns sixteen random bits of this kernel's boot, as hexadecimal digits. Processes with the same digits share the
// kernel's locks. If a directory is shared without locks (NFS with "nolock"), the digits identify links of other
// machines.
std::string kernel_digits() {
  std::string digits;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> digits;
  return digits.substr(0, 4);
}

bool says(const std::filesystem::path& link, const std::string& target) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).string() == target;
}

// Renames the link before removing it: if two processes release at once, one renames it and the other finds nothing.
bool release(const std::filesystem::path& link) {
  const std::string aside = fmt::format("{}{}-{}.rename", link.string(), ::getpid(), ::gettid());
  if (::rename(link.c_str(), aside.c_str()) != 0) return errno == ENOENT;
  ::unlink(aside.c_str());
  return true;
}

// The properties of the link that change when the lock passes to another holder.
struct Holder {
  ino_t inode = 0;
  time_t seconds = 0;
  long nanoseconds = 0;
  friend bool operator==(const Holder&, const Holder&) = default;
};

Holder holder_of(const std::filesystem::path& link) {
  struct stat info {};
  if (::lstat(link.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

}  // namespace

// Optuna looks at the modification time of the link's target, so the link must lead to the journal. The digits are
// written into its path: "./" is a 0 bit, ".//" a 1 bit.
std::string SymlinkLock::target_of(const std::filesystem::path& journal) {
  std::string target = "./";
  for (const char digit : kernel_digits()) {
    const int value = digit <= '9' ? digit - '0' : digit - 'a' + 10;
    for (int bit = 0; bit < 4; ++bit) target += (value >> bit) % 2 == 1 ? ".//" : "./";
  }
  return target + journal.filename().string();
}

SymlinkLock::SymlinkLock(const std::filesystem::path& journal, const Clock& clock, OwnLink own)
    : link_(link_of(journal)) {
  const std::string target = target_of(journal);
  double pause_s = kFirstPauseS;
  double since_s = clock.now_s();
  Holder holder;
  while (::symlink(target.c_str(), link_.c_str()) != 0) {
    if (errno != EEXIST) {
      throw EnvironmentError(fmt::format("cannot make the lock '{}': {}", link_.string(), std::strerror(errno)),
                             "use a directory that can be written and knows symbolic links");
    }
    if (own == OwnLink::kIsLeftover && says(link_, target)) {
      release(link_);
      continue;
    }
    const Holder now = holder_of(link_);
    if (!(now == holder)) {
      holder = now;
      since_s = clock.now_s();
    } else if (clock.now_s() - since_s > kGraceS) {
      release(link_);
      continue;
    }
    clock.sleep_until_s(clock.now_s() + pause_s);
    pause_s = std::min(2.0 * pause_s, kLongestPauseS);
  }
}

// If the disk refuses to rename the link, it is removed in place, because nobody else removes one that is held.
SymlinkLock::~SymlinkLock() {
  if (!release(link_)) ::unlink(link_.c_str());
}

// The directory may have been moved aside after the journal was opened: the lock would then be that of an older run.
TunerClaim::TunerClaim(const std::filesystem::path& journal) : file_(open_journal(journal)) {
  while (try_to_lock(file_, LockedByte::kTunerClaim) != LockAnswer::kRefused) {
    if (leads_to(journal, file_)) return;
    ::close(file_);
    file_ = open_journal(journal);
  }
  ::close(file_);
  const std::filesystem::path directory = journal.has_parent_path() ? journal.parent_path() : ".";
  throw UserError(fmt::format("another krigtune tune is running on '{}'", directory.string()),
                  "wait for its end, or choose another directory with --out");
}

TunerClaim::~TunerClaim() {
  unlock(file_, LockedByte::kTunerClaim);
  ::close(file_);
}

bool TunerClaim::is_held(const std::filesystem::path& journal) {
  const int file = ::open(journal.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // never wait for a named pipe
  if (file < 0) return false;
  const bool held = is_locked(file, LockedByte::kTunerClaim);
  ::close(file);
  return held;
}

}  // namespace krigtune::journal
