#include "lock.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "krigtune/core/error.h"

namespace krigtune {
namespace {

constexpr double kFirstPauseS = 1e-3;
constexpr double kLongestPauseS = 1.0;
constexpr double kGraceS = 30.0;

std::filesystem::path link_of(const std::filesystem::path& journal) { return journal.string() + ".lock"; }

// Sixteen random bits of this boot of this machine's kernel, as hexadecimal digits: whoever shares them shares the
// kernel's locks. Where directories are shared without their locks (NFS with "nolock"), other machines' links are told
// apart by them.
std::string kernel_digits() {
  std::string digits;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> digits;
  return digits.substr(0, 4);
}

bool says(const std::filesystem::path& link, const std::string& target) {
  std::error_code error;
  return std::filesystem::read_symlink(link, error).string() == target;
}

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

// Optuna looks at the time of what its link points at, so this one has to lead to the journal too: "./" is a bit that
// is 0, ".//" one that is 1.
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

SymlinkLock::~SymlinkLock() { release(link_); }

}  // namespace krigtune
