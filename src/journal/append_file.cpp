#include "journal/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "core/files.h"

namespace krigtune::journal {
namespace {

std::size_t size_of(int file) {
  struct stat info {};
  ::fstat(file, &info);
  return static_cast<std::size_t>(info.st_size);
}

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw EnvironmentError(fmt::format("cannot append to '{}': {}", path.string(), std::strerror(error)),
                         "free some space and run the same command again: it goes on where it stopped");
}

FileIdentity identity_of(const struct stat& info) {
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::size_t>(info.st_size)};
}

std::string read_rest(const std::filesystem::path& path, int file, std::size_t offset, std::size_t most_bytes) {
  const std::size_t size = size_of(file);
  std::string text(size > offset ? std::min(size - offset, most_bytes) : 0, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::pread(file, text.data() + got, text.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw EnvironmentError(fmt::format("cannot read '{}': {}", path.string(), std::strerror(errno)));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

// Makes the file's name survive a power failure, and the names of the directories that were made for it.
void sync_directories(const std::filesystem::path& path) {
  std::filesystem::path folder = std::filesystem::absolute(path);
  while (folder.has_relative_path()) {
    folder = folder.parent_path();
    const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) return;
    ::fsync(directory);
    ::close(directory);
  }
}

}  // namespace

int open_journal(const std::filesystem::path& path) {
  constexpr mode_t kShared = 0666;  // the umask removes some of these bits
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kShared);
  if (file < 0 && errno == ELOOP) {
    throw UserError(fmt::format("'{}' is a symbolic link: a journal is never written through one", path.string()),
                    "put the file in its place, or name its directory with --out");
  }
  if (file < 0) {
    const std::string what = fmt::format("cannot open '{}' for writing: {}", path.string(), std::strerror(errno));
    if (is_shortage(errno)) throw EnvironmentError(what, "free some space, or close some files");
    throw UserError(what, "choose another directory with --out, or fix its permissions");
  }
  struct stat info {};
  if (::fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(file);
    throw UserError(fmt::format("'{}' is not a regular file", path.string()), "choose another directory with --out");
  }
  if (info.st_size == 0) sync_directories(path);
  return file;
}

bool leads_to(const std::filesystem::path& path, int file) {
  struct stat there {};
  struct stat here {};
  return ::stat(path.c_str(), &there) == 0 && ::fstat(file, &here) == 0 &&
         identity_of(there).is_file(identity_of(here));
}

std::optional<ReadOnlyFile> ReadOnlyFile::open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // never wait for a named pipe
  struct stat info {};
  if (file < 0) return std::nullopt;
  if (::fstat(file, &info) == 0 && S_ISREG(info.st_mode)) return ReadOnlyFile(path, file);
  ::close(file);
  return std::nullopt;
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

ReadOnlyFile::~ReadOnlyFile() {
  if (file_ >= 0) ::close(file_);
}

FileIdentity ReadOnlyFile::identity() const {
  struct stat info {};
  ::fstat(file_, &info);
  return identity_of(info);
}

std::string ReadOnlyFile::read_from(std::size_t offset) const { return read_rest(path_, file_, offset, SIZE_MAX); }

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)), file_(open_journal(path_)) {}

AppendFile::~AppendFile() { ::close(file_); }

std::string AppendFile::read_from(std::size_t offset, std::size_t most_bytes) const {
  return read_rest(path_, file_, offset, most_bytes);
}

bool AppendFile::is_in_place() const { return leads_to(path_, file_); }

std::size_t AppendFile::size_bytes() const { return size_of(file_); }

void AppendFile::cut_at(std::size_t size) {
  if (size_of(file_) > size && ::ftruncate(file_, static_cast<off_t>(size)) != 0) fail(path_, errno);
}

void AppendFile::reserve(std::size_t bytes) {
  const auto size = static_cast<off_t>(size_of(file_));
  while (::fallocate(file_, FALLOC_FL_KEEP_SIZE, size, static_cast<off_t>(bytes)) != 0) {
    if (errno == ENOSPC || errno == EDQUOT) fail(path_, errno);
    if (errno != EINTR) return;
  }
}

void AppendFile::append(std::string_view lines) {
  const std::size_t before = size_of(file_);
  if (write_all(file_, lines) && ::fsync(file_) == 0) return;
  const int error = errno;
  const std::string written = read_from(before);
  const std::size_t last = written.rfind('\n');
  cut_at(before + (last == std::string::npos ? 0 : last + 1));
  fail(path_, error);
}

}  // namespace krigtune::journal
