#include <fmt/format.h>

#include <array>
#include <fstream>

#include "core/error.h"
#include "diagnose/unpacked.h"

namespace krigtune::diagnose {
namespace {

class PlainBytes final : public UnpackedBytes {
 public:
  explicit PlainBytes(const std::filesystem::path& path) : file_(path, std::ios::binary) {
    if (!file_) throw UserError(fmt::format("'{}' cannot be read", path.string()), "check its permissions");
    if (file_.get() == 0x1f && file_.get() == 0x8b) {
      throw UserError(fmt::format("'{}' is packed, and this krigtune was built without zlib", path.string()),
                      "unpack it with gunzip");
    }
    file_.clear();
    file_.seekg(0);
  }

  std::string trouble() const override { return file_.bad() ? "it cannot be read to its end" : ""; }

 protected:
  int_type underflow() override {
    file_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    if (file_.gcount() <= 0) return traits_type::eof();
    setg(buffer_.data(), buffer_.data(), buffer_.data() + file_.gcount());
    return traits_type::to_int_type(*gptr());
  }

 private:
  std::ifstream file_;
  std::array<char, 1 << 16> buffer_{};
};

}  // namespace

std::unique_ptr<UnpackedBytes> open_unpacked(const std::filesystem::path& path) {
  return std::make_unique<PlainBytes>(path);
}

}  // namespace krigtune::diagnose
