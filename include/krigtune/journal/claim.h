#pragma once
#include <filesystem>

namespace krigtune {

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

}  // namespace krigtune
