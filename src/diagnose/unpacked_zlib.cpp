#include <fmt/format.h>
#include <zlib.h>

#include <array>

#include "core/error.h"
#include "diagnose/unpacked.h"

namespace krigtune::diagnose {
namespace {

// zlib reads uncompressed files unchanged.
class ZlibBytes final : public UnpackedBytes {
 public:
  explicit ZlibBytes(const std::filesystem::path& path) : file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (file_ == nullptr) throw UserError(fmt::format("'{}' cannot be read", path.string()), "check its permissions");
  }

  std::string trouble() const override {
    int code = Z_OK;
    const char* text = gzerror(file_.get(), &code);
    if (code == Z_OK || code == Z_STREAM_END) return "";
    return code == Z_BUF_ERROR ? "the packed file ends in the middle" : fmt::format("it cannot be unpacked: {}", text);
  }

 protected:
  int_type underflow() override {
    const int count = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    if (count <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + count);
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
  std::array<char, 1 << 16> buffer_{};
};

}  // namespace

std::unique_ptr<UnpackedBytes> open_unpacked(const std::filesystem::path& path) {
  return std::make_unique<ZlibBytes>(path);
}

}  // namespace krigtune::diagnose
