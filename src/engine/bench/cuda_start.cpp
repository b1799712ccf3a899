// A program whose libraries are missing is ended by the loader, with code 127 and a line on stderr, before it can say
// anything itself. So it is started once to look.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "krigtune/engine/gpu_probe.h"

namespace krigtune {
namespace {

struct Started {
  int error = 0;   ///< errno where it could not be started
  int status = 0;  ///< as waitpid gives it
  std::string err;
};

class SpawnActions {
 public:
  SpawnActions() { posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

Started start_to_look(std::string program) {
  Started started;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {errno, 0, ""};
  SpawnActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], STDERR_FILENO);
  std::string option = "--version";
  const std::array<char*, 3> argv = {program.data(), option.data(), nullptr};
  pid_t process = -1;
  started.error = posix_spawn(&process, program.c_str(), actions.get(), nullptr, argv.data(), environ);
  close(ends[1]);
  std::array<char, 512> block{};
  for (ssize_t n = 0; (n = read(ends[0], block.data(), block.size())) > 0;) {
    started.err.append(block.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  if (started.error == 0) waitpid(process, &started.status, 0);
  return started;
}

// "PROGRAM: error while loading shared libraries: WHY" -> "WHY"
std::string reason_of(std::string text) {
  text = text.substr(0, text.find('\n'));
  const std::string loading = "error while loading shared libraries: ";
  const std::size_t at = text.find(loading);
  return at == std::string::npos ? text : text.substr(at + loading.size());
}

std::string why(const Started& started, const std::filesystem::path& program) {
  if (started.error == ENOENT) return fmt::format("there is no '{}'", program.string());
  if (started.error != 0) return std::strerror(started.error);
  if (WIFSIGNALED(started.status)) return fmt::format("it is ended by signal {}", WTERMSIG(started.status));
  const std::string reason = reason_of(started.err);
  return reason.empty() ? fmt::format("it ends with code {}", WEXITSTATUS(started.status)) : reason;
}

}  // namespace

std::string cuda_start_failure(const std::filesystem::path& program) {
  const Started started = start_to_look(program.string());
  if (started.error == 0 && started.status == 0) return "";
  return fmt::format("krigtune-bench-cuda cannot start: {}", why(started, program));
}

}  // namespace krigtune
