#pragma once
#include <fmt/format.h>
#include <sys/resource.h>

#include <string>

namespace krigtune {

/// For as long as this object lives, no file can be opened: EMFILE.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    // The sanitizer for undefined behaviour opens a pipe when it sees the buffer of fmt for the first time.
    const std::string seen = fmt::format("{}", 0);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  rlimit before_{};
};

}  // namespace krigtune
