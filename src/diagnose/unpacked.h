#pragma once
#include <filesystem>
#include <memory>
#include <streambuf>
#include <string>

namespace krigtune::diagnose {

/// The uncompressed bytes of a gzip file; a file that is not compressed is read unchanged.
class UnpackedBytes : public std::streambuf {
 public:
  /// Returns why reading stopped early; "" at the end of the file.
  virtual std::string trouble() const = 0;
};
/// Throws UserError if the file cannot be read, or if it is compressed and krigtune was built without zlib.
std::unique_ptr<UnpackedBytes> open_unpacked(const std::filesystem::path& path);

}  // namespace krigtune::diagnose
