#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace krigtune::journal {

/// Opens or creates a journal for reading and appending. A new journal and its directories survive a power failure.
/// Throws UserError if the path does not allow it, and EnvironmentError if the disk is full or fails.
int open_journal(const std::filesystem::path& path);

/// Returns whether the path still leads to the open file. It does not after the file was removed, renamed or replaced.
bool leads_to(const std::filesystem::path& path, int file);

/// Which file a path names, and its length.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::size_t bytes = 0;

  /// Returns whether both are the same file, whatever their lengths.
  bool is_file(const FileIdentity& other) const { return device == other.device && inode == other.inode; }
};

/// A file to which other processes append.
class ReadOnlyFile {
 public:
  /// Opens the file; empty if it cannot be read.
  static std::optional<ReadOnlyFile> open(const std::filesystem::path& path);
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ~ReadOnlyFile();
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  FileIdentity identity() const;
  /// Reads from that byte to the end. Throws EnvironmentError if the disk fails.
  std::string read_from(std::size_t offset) const;

 private:
  ReadOnlyFile(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
};

/// The file of a journal. Several processes may have it open; whoever appends must have the locks.
class AppendFile {
 public:
  /// Opens the journal as open_journal does.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return file_; }
  /// Reads from that byte to the end, or `most_bytes`.
  std::string read_from(std::size_t offset, std::size_t most_bytes = SIZE_MAX) const;
  /// Returns whether the path still leads to this file. Another program may have removed or replaced it.
  bool is_in_place() const;
  std::size_t size_bytes() const;
  /// Truncates the file to `size` bytes, which removes a torn last line.
  void cut_at(std::size_t size);
  /// Reserves that many bytes behind the end for later appends, so that they succeed even if the disk becomes full
  /// meanwhile (fallocate(2)). Throws EnvironmentError if there is no room now. Has no effect on file systems that
  /// cannot reserve.
  void reserve(std::size_t bytes);
  /// Appends whole lines with one write and fsync. On failure it throws EnvironmentError, and the file ends either
  /// where it ended before or after one of the lines: lines that readers may have seen are not taken back.
  void append(std::string_view lines);

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace krigtune::journal
