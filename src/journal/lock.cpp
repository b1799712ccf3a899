#include "lock.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "krigtune/core/error.h"

namespace krigtune {
namespace {

constexpr double kFirstPauseS = 1e-3;
constexpr double kLongestPauseS = 1.0;
constexpr double kGraceS = 30.0;

std::filesystem::path link_of(const std::filesystem::path& journal) { return journal.string() + ".lock"; }

// It points at the journal, as Optuna's does (which looks at the time of what it points at), in a spelling of our own.
std::string target_of(const std::filesystem::path& journal) { return "././" + journal.filename().string(); }

// First out of the way, then away: of two who release at once, one renames and the other finds nothing.
void release(const std::filesystem::path& link) {
  const std::string aside = fmt::format("{}{}-{}.rename", link.string(), ::getpid(), ::gettid());
  if (::rename(link.c_str(), aside.c_str()) == 0) ::unlink(aside.c_str());
}

// What changes when the lock goes from one holder to the next.
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

SymlinkLock::SymlinkLock(const std::filesystem::path& journal, const Clock& clock) : link_(link_of(journal)) {
  double pause_s = kFirstPauseS;
  double since_s = clock.now_s();
  Holder holder;
  while (::symlink(target_of(journal).c_str(), link_.c_str()) != 0) {
    if (errno != EEXIST) {
      throw EnvironmentError(fmt::format("cannot make the lock '{}': {}", link_.string(), std::strerror(errno)),
                             "use a directory that can be written and knows symbolic links");
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

SymlinkLock::~SymlinkLock() { release(link_); }

void SymlinkLock::remove_own_leftover(const std::filesystem::path& journal) {
  const std::filesystem::path link = link_of(journal);
  std::error_code error;
  if (std::filesystem::read_symlink(link, error) == target_of(journal)) release(link);
}

}  // namespace krigtune
