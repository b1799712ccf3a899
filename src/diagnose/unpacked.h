#pragma once
#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>

namespace krigtune::diagnose {

/// The bytes of a file as they were before gzip packed it; one that is not packed as it is.
class UnpackedBytes : public std::streambuf {
 public:
  /// Why nothing more came; "": the file was at its end.
  virtual std::string trouble() const = 0;
};
/// Throws UserError where it cannot be read: packed files, where krigtune was built without zlib.
std::unique_ptr<UnpackedBytes> open_unpacked(const std::filesystem::path& path);

}  // namespace krigtune::diagnose
