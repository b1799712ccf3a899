#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace krigtune::journal {

/// Opens or creates a journal for reading and appending. Throws UserError where the path does not allow that, and
/// EnvironmentError where the disk is full or fails. A new one, and the directories above it, survive a power cut.
int open_journal(const std::filesystem::path& path);

/// Whether the path leads to the open file: false once it was removed, renamed or replaced.
bool leads_to(const std::filesystem::path& path, int file);

/// Which file it is that a path names, and how long.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::size_t bytes = 0;

  /// The same file, however long it is by now.
  bool is_file(const FileIdentity& other) const { return device == other.device && inode == other.inode; }
};

/// A file that others append to.
class ReadOnlyFile {
 public:
  /// Empty where it cannot be read.
  static std::optional<ReadOnlyFile> open(const std::filesystem::path& path);
  ReadOnlyFile(ReadOnlyFile&& other) noexcept;
  ~ReadOnlyFile();
  ReadOnlyFile(const ReadOnlyFile&) = delete;
  ReadOnlyFile& operator=(const ReadOnlyFile&) = delete;

  FileIdentity identity() const;
  /// From that byte to the end. Throws EnvironmentError where the disk refuses.
  std::string read_from(std::size_t offset) const;

 private:
  ReadOnlyFile(std::filesystem::path path, int file) : path_(std::move(path)), file_(file) {}

  std::filesystem::path path_;
  int file_;
};

/// The journal's file. Several processes may have it open; who appends holds the locks.
class AppendFile {
 public:
  /// As open_journal.
  explicit AppendFile(std::filesystem::path path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return file_; }
  /// From that byte to the end, or so many bytes.
  std::string read_from(std::size_t offset, std::size_t most_bytes = SIZE_MAX) const;
  /// Whether the path still leads to this file: another program may have removed it, or put another in its place.
  bool is_in_place() const;
  std::size_t size_bytes() const;
  /// Makes `size` the end: what follows is a torn line.
  void cut_at(std::size_t size);
  /// Has the file system keep so many bytes behind the end for what is appended next: on a disk that becomes full
  /// meanwhile there is still room. EnvironmentError where there is none now; no more than a wish on file systems that
  /// cannot (fallocate(2)).
  void reserve(std::size_t bytes);
  /// One write and fsync of whole lines. On failure EnvironmentError: the file then ends with one of the lines, or as
  /// before. Lines that readers may have seen are not taken back.
  void append(std::string_view lines);

 private:
  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace krigtune::journal
