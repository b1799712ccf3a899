#include "append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"

namespace krigtune {
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

// So that the file's name, too, survives a power cut.
void sync_directory(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  ::fsync(directory);
  ::close(directory);
}

}  // namespace

AppendFile::AppendFile(std::filesystem::path path) : path_(std::move(path)) {
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw UserError(fmt::format("cannot open '{}' for writing: {}", path_.string(), std::strerror(errno)),
                    "choose another directory with --out, or mend its permissions");
  }
  exclusive_ = ::flock(file_, LOCK_EX | LOCK_NB) == 0;
  if (!exclusive_ && errno == EWOULDBLOCK) {
    ::close(file_);
    throw UserError(fmt::format("another krigtune is running on '{}'", path_.parent_path().string()),
                    "wait for its end, or choose another directory with --out");
  }
  if (size_of(file_) == 0) sync_directory(path_);
}

AppendFile::~AppendFile() { ::close(file_); }

std::string AppendFile::read_from(std::size_t offset) const {
  const std::size_t size = size_of(file_);
  std::string text(size > offset ? size - offset : 0, '\0');
  std::size_t got = 0;
  while (got < text.size()) {
    const ssize_t n = ::pread(file_, text.data() + got, text.size() - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw EnvironmentError(fmt::format("cannot read '{}': {}", path_.string(), std::strerror(errno)));
    if (n == 0) break;
    got += static_cast<std::size_t>(n);
  }
  text.resize(got);
  return text;
}

void AppendFile::cut_at(std::size_t size) {
  if (size_of(file_) > size && ::ftruncate(file_, static_cast<off_t>(size)) != 0) fail(path_, errno);
}

void AppendFile::append(std::string_view text) {
  const std::size_t before = size_of(file_);
  if (write_all(file_, text) && ::fsync(file_) == 0) return;
  const int error = errno;
  cut_at(before);
  fail(path_, error);
}

}  // namespace krigtune
