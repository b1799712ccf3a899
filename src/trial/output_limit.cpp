#include "trial/output_limit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "core/files.h"
#include "core/units.h"

namespace krigtune::trial {

void OutputLimit::look(double now_s) {
  if (now_s < next_look_s_) return;
  next_look_s_ = now_s + 1.0;
  for (File& file : files_) look_at(file);
}

void OutputLimit::look_at(File& file) const {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;  // less is not worth a call
  struct stat state {};
  if (::stat(file.path.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) return;
  const auto size = static_cast<std::uint64_t>(state.st_size);
  if (size <= 2 * half_) return;
  const std::uint64_t from = std::max(half_, file.freed_up_to);
  const std::uint64_t to = read_up_to_ ? std::min(size - half_, read_up_to_(file.path)) : size - half_;
  if (to < from + kLeast) return;
  const int opened = ::open(file.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (opened < 0) return;
  // If the file system cannot do it, the file is shortened when the program has ended.
  ::fallocate(opened, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
              static_cast<off_t>(to - from));
  ::close(opened);
  file.freed_up_to = to;
}

bool shorten_output(const std::filesystem::path& file, std::uint64_t most_bytes) {
  std::string head, tail;
  std::size_t size = 0;
  {
    const RegularFile in(file);
    size = in.size_bytes();
    if (size <= most_bytes) return false;
    const auto half = static_cast<std::size_t>(most_bytes / 2);
    head = in.read(0, half);
    tail = in.read(size - half, half);
  }
  const std::size_t head_end = head.rfind('\n');
  if (head_end != std::string::npos) {
    head.resize(head_end + 1);
  } else {
    head += '\n';
  }
  const std::size_t tail_begin = tail.find('\n');
  if (tail_begin != std::string::npos && tail_begin + 1 < tail.size()) tail.erase(0, tail_begin + 1);
  const auto left_out = static_cast<std::int64_t>(size - std::min(size, head.size() + tail.size()));
  const std::string line =
      fmt::format("[krigtune left out {} here ({} bytes): a log keeps its first and its last {}]\n",
                  to_string(Bytes{left_out}), left_out, to_string(Bytes{static_cast<std::int64_t>(most_bytes / 2)}));
  return write_if_possible(file, head + line + tail);
}

}  // namespace krigtune::trial
