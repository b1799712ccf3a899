#include "krigtune/journal/claim.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "append_file.h"
#include "file_lock.h"
#include "krigtune/core/error.h"

namespace krigtune {

TunerClaim::TunerClaim(const std::filesystem::path& journal) : file_(open_journal(journal)) {
  if (try_to_lock(file_, LockedByte::kTunerClaim) != LockAnswer::kRefused) return;
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
  const int file = ::open(journal.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool held = is_locked(file, LockedByte::kTunerClaim);
  ::close(file);
  return held;
}

}  // namespace krigtune
