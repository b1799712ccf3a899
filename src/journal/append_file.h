#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace krigtune {

/// The journal's file, open for its one krigtune. The claim is a flock: it ends with the process, however that ends.
class AppendFile {
 public:
  /// Opens or creates. Throws UserError when another process has it or it cannot be opened.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Whether no other krigtune can have it open: not so on file systems that know no flock.
  bool exclusive() const { return exclusive_; }
  /// From that byte to the end.
  std::string read_from(std::size_t offset) const;
  /// Makes `size` the end: what follows is a torn line.
  void cut_at(std::size_t size);
  /// One write and fsync. On failure the file is as before: EnvironmentError.
  void append(std::string_view text);

 private:
  std::filesystem::path path_;
  int file_ = -1;
  bool exclusive_ = false;
};

}  // namespace krigtune
