#include "executor/job_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/secret.h"
#include "core/text.h"
#include "trial/trial_files.h"

namespace krigtune::executor {
namespace {

constexpr std::size_t kSmallFileBytes = 1 << 16;

bool directory_lists(const std::filesystem::path& file) {
  DIR* directory = ::opendir(file.parent_path().c_str());
  if (directory == nullptr) return false;
  const std::string name = file.filename().string();
  bool found = false;
  while (const dirent* entry = ::readdir(directory)) {
    if (name == entry->d_name) {
      found = true;
      break;
    }
  }
  ::closedir(directory);
  return found;
}

std::optional<Json> read_document(const std::filesystem::path& file) {
  if (!directory_lists(file)) return std::nullopt;
  Json json = json_or_discarded(trial::read_head(file, kSmallFileBytes));
  if (!json.is_object()) return std::nullopt;
  return json;
}

std::string text_in(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
}

std::int64_t integer_in(const Json& json, const char* key, std::int64_t otherwise) {
  return json.contains(key) && json[key].is_number_integer() ? json[key].get<std::int64_t>() : otherwise;
}

}  // namespace

void write_submitted(const JobFiles& files, const SubmittedJob& job) {
  write_atomically(files.submitted(), Json({{"name", job.name}, {"id", job.id}, {"token", job.token}}).dump() + "\n");
}

std::optional<SubmittedJob> read_submitted(const JobFiles& files) {
  const std::optional<Json> json = read_document(files.submitted());
  if (!json) return std::nullopt;
  return SubmittedJob{text_in(*json, "name"), text_in(*json, "id"), text_in(*json, "token")};
}

std::optional<JobStart> read_start(const JobFiles& files) {
  const std::optional<Json> json = read_document(files.started());
  if (!json) return std::nullopt;
  return JobStart{text_in(*json, "token"), text_in(*json, "id"), text_in(*json, "host"),
                  static_cast<int>(integer_in(*json, "restarts", 0))};
}

std::optional<JobExit> read_exit(const JobFiles& files) {
  const std::optional<Json> json = read_document(files.ended());
  if (!json || !json->contains("exit_code")) return std::nullopt;
  JobExit exit;
  exit.token = text_in(*json, "token");
  exit.id = text_in(*json, "id");
  exit.host = text_in(*json, "host");
  exit.nodes = text_in(*json, "nodes");
  exit.restarts = static_cast<int>(integer_in(*json, "restarts", 0));
  exit.exit_code = static_cast<int>(integer_in(*json, "exit_code", 0));
  exit.signal = text_in(*json, "signal");
  exit.start_error = text_in(*json, "start_error");
  if (json->contains("wall_s") && (*json)["wall_s"].is_number()) exit.wall_s = (*json)["wall_s"];
  exit.peak_rss_bytes = integer_in(*json, "peak_rss_bytes", 0);
  exit.stdout_bytes = integer_in(*json, "stdout_bytes", -1);
  exit.stderr_bytes = integer_in(*json, "stderr_bytes", -1);
  return exit;
}

bool outputs_are_complete(const JobExit& exit, const trial::ProcessSpec& spec) {
  const auto is_there = [](const std::filesystem::path& file, std::int64_t bytes) {
    if (bytes < 0) return true;
    // Opening a file makes NFS ask the server how long it is (close-to-open consistency).
    const int opened = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (opened < 0) return false;
    const off_t size = ::lseek(opened, 0, SEEK_END);
    ::close(opened);
    return size >= bytes;
  };
  return is_there(spec.stdout_file, exit.stdout_bytes) && is_there(spec.stderr_file, exit.stderr_bytes);
}

void remove_job_files(const JobFiles& files) {
  for (const std::filesystem::path& file : {files.ended(), files.started(), files.submitted(), files.log()}) {
    std::error_code error;
    std::filesystem::remove(file, error);
    if (error) throw EnvironmentError(fmt::format("cannot remove '{}': {}", file.string(), error.message()), "");
  }
}

namespace {

// EPOCHREALTIME of bash has a point or the locale's comma before its last six digits.
constexpr const char* kScript = R"(#!/bin/bash
# One trial, submitted by krigtune tune. It says when it starts and how it ends in files beside it.
out={out}
err={err}
started={started}
ended={ended}
token={token}
id=${{SLURM_JOB_ID:-}}
restarts=${{SLURM_RESTART_COUNT:-0}}
where=${{SLURM_JOB_NODELIST:-}}
host=${{SLURMD_NODENAME:-$HOSTNAME}}
now_us() {{ printf '%s' "${{EPOCHREALTIME//[.,]/}}"; }}
begin_us=$(now_us)
put() {{ printf '%s\n' "$2" >"$1.$token.tmp" && mv -f "$1.$token.tmp" "$1"; }}
size() {{ stat -c %s "$1" 2>/dev/null || echo -1; }}
sig=
finish() {{
  local us=$(($(now_us) - begin_us))
  local peak=0
  read -r peak 2>/dev/null <"$started.$token.peak" || true
  rm -f "$started.$token.peak"
  put "$ended" "{{\"token\":\"$token\",\"id\":\"$id\",\"exit_code\":$1,\"signal\":\"$sig\",\"start_error\":\"$2\",\"host\":\"$host\",\"nodes\":\"$where\",\"restarts\":$restarts,\"wall_s\":$((us / 1000000)).$(printf %06d $((us % 1000000))),\"peak_rss_bytes\":$((peak * 1024)),\"stdout_bytes\":$(size "$out"),\"stderr_bytes\":$(size "$err")}}"
  exit "$1"
}}
# Linux keeps the peak of a process as long as it lives, so a look every few seconds is enough: largest of the program
# and its descendants, in KiB. No program is started for it.
peak=0
look() {{
  local pid name value unit children
  for pid; do
    while read -r name value unit; do
      [ "$name" = VmHWM: ] || continue
      [ "$value" -le "$peak" ] || peak=$value
      break
    done 2>/dev/null <"/proc/$pid/status"
    for children in /proc/"$pid"/task/*/children; do
      read -r children 2>/dev/null <"$children"
      # shellcheck disable=SC2086
      [ -z "$children" ] || [[ $children = /* ]] || look $children
    done
  done
}}
watch_memory() {{
  local pause nothing last=0
  exec {{nothing}}<> <(:)
  for pause in 0.05 0.1 0.2 0.5 1 2; do read -rt "$pause" -u "$nothing"; look "$1"; note; done
  while kill -0 "$1" 2>/dev/null; do read -rt 5 -u "$nothing"; look "$1"; note; done
}}
note() {{ [ "$peak" -eq "$last" ] || {{ echo "$peak" >"$started.$token.peak"; last=$peak; }}; }}
watcher=
child=
end_child() {{ [ -z "$child" ] || kill -"$1" -- "-$child" 2>/dev/null; }}
trap 'sig=TERM; end_child TERM' TERM
trap 'sig=USR1; end_child TERM' USR1
rm -f "$ended"
put "$started" "{{\"token\":\"$token\",\"id\":\"$id\",\"host\":\"$host\",\"restarts\":$restarts}}"
cd {directory} 2>/dev/null || finish 127 "its working directory is not on node $host"
{environment}set -- {argv}
type -P -- "$1" >/dev/null || finish 127 "there is no such program on node $host"
set -m # a process group of its own: all of it is ended
{launch}"$@" >"$out" 2>"$err" </dev/null &
child=$!
{watch}set +m
[ -z "$sig" ] || end_child TERM
wait "$child"
rc=$?
while [ -n "$sig" ] && kill -0 "$child" 2>/dev/null; do
  wait "$child"
  rc=$?
done
# Where somebody ends the job, the program may be gone before the signal reaches this script.
[ "$rc" -eq 0 ] || sleep 0.5
[ -z "$watcher" ] || kill "$watcher" 2>/dev/null
trap '' TERM USR1 # it has ended: what comes now is not about it
end_child KILL
finish "$rc" ""
)";

// Slurm knows the nodes' addresses even where the resolver does not know their names.
constexpr const char* kMasterAddress = R"(export MASTER_ADDR=localhost
case $where in *[\[,]*)
  MASTER_ADDR=$(scontrol show hostnames "$where" | head -n 1)
  getent hosts "$MASTER_ADDR" >/dev/null ||
    MASTER_ADDR=$(scontrol -o show node "$MASTER_ADDR" | sed -n 's/.* NodeAddr=\([^ ]*\).*/\1/p')
esac
)";

}  // namespace

std::string job_script(const JobFiles& files, const trial::ProcessSpec& spec, const std::vector<std::string>& launcher,
                       const std::string& token, int port) {
  const auto quoted = [](const std::string& word) { return shell_line({word}); };
  const std::filesystem::path directory =
      spec.working_directory.empty() ? std::filesystem::current_path() : spec.working_directory;
  std::string environment;
  for (const auto& [name, value] : spec.environment) {
    environment += fmt::format("export {}={}\n", name, quoted(value));
  }
  const auto has = [&](const char* wanted) {
    return std::any_of(spec.environment.begin(), spec.environment.end(),
                       [&](const auto& pair) { return pair.first == wanted; });
  };
  if (!has("MASTER_ADDR")) environment += kMasterAddress;
  if (!has("MASTER_PORT")) environment += fmt::format("export MASTER_PORT={}\n", port);
  return fmt::format(kScript, fmt::arg("out", quoted(std::filesystem::absolute(spec.stdout_file).string())),
                     fmt::arg("err", quoted(std::filesystem::absolute(spec.stderr_file).string())),
                     fmt::arg("started", quoted(files.started().string())),
                     fmt::arg("ended", quoted(files.ended().string())), fmt::arg("token", token),
                     fmt::arg("directory", quoted(directory.string())), fmt::arg("environment", environment),
                     fmt::arg("argv", shell_line(spec.argv)),
                     fmt::arg("watch", launcher.empty() ? "watch_memory \"$child\" &\nwatcher=$!\ndisown\n" : ""),
                     fmt::arg("launch", launcher.empty() ? "" : shell_line(launcher) + " "));
}

std::string write_trouble(const std::filesystem::path& directory) {
  constexpr std::size_t kNameBytes = 8;
  const std::filesystem::path probe = directory / (".krigtune-probe-" + random_hex(kNameBytes));
  const int file = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return std::strerror(errno);
  std::string trouble;
  // Quotas take effect only when bytes reach the server.
  const std::string bytes(4096, 'x');
  if (!write_all(file, bytes) || ::fsync(file) != 0) trouble = std::strerror(errno);
  if (::close(file) != 0 && trouble.empty()) trouble = std::strerror(errno);
  ::unlink(probe.c_str());
  return trouble;
}

}  // namespace krigtune::executor
