#include "machine/machine_view.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>

#include "core/environment.h"
#include "core/files.h"
#include "core/text.h"
#include "trial/process.h"
#include "trial/trial_files.h"

namespace krigtune::machine {
namespace {

std::optional<std::string> output_of(const std::vector<std::string>& argv, const Clock& clock) {
  constexpr double kPatienceS = 10.0;
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (find_program(argv.front(), {}, program_search_path()).empty()) return std::nullopt;
  const trial::ScratchDirectory scratch;
  trial::ProcessSpec spec;
  spec.argv = argv;
  spec.stdout_file = scratch / "stdout";
  spec.stderr_file = scratch / "stderr";
  spec.timeout_s = kPatienceS;
  const trial::ProcessResult result = trial::run_process(spec, clock);
  if (result.exit_code != 0 || !result.start_error.empty()) return std::nullopt;
  return trial::read_head(spec.stdout_file, kMostBytes);
}

// Calls ncclGetVersion of the library that programs would load.
std::optional<int> version_of_nccl() {
  void* library = ::dlopen("libnccl.so.2", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  auto* get = reinterpret_cast<int (*)(int*)>(::dlsym(library, "ncclGetVersion"));
  int version = 0;
  if (get == nullptr || get(&version) != 0) version = 0;
  ::dlclose(library);
  return version;
}

}  // namespace

std::string MachineView::text(const std::filesystem::path& path) const {
  std::ifstream in(root / path.relative_path());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string MachineView::line(const std::filesystem::path& path) const {
  const std::string all = text(path);
  return trimmed(all.substr(0, all.find('\n')));
}

std::vector<std::string> MachineView::entries(const std::filesystem::path& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root / folder.relative_path(), error)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

MachineView this_machine(const Clock& clock) {
  MachineView view;
  view.variable = environment_variable;
  // Several checks need the same output, and some programs take seconds on a machine with many GPUs.
  const auto known = std::make_shared<std::map<std::vector<std::string>, std::optional<std::string>>>();
  view.output = [&clock, known](const std::vector<std::string>& argv) {
    const auto found = known->find(argv);
    return found != known->end() ? found->second : known->emplace(argv, output_of(argv, clock)).first->second;
  };
  view.cores = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t set;
  CPU_ZERO(&set);
  view.usable_cores = ::sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : view.cores;
  view.nccl_version = version_of_nccl();
  struct statvfs system {};
  if (::statvfs("/dev/shm", &system) == 0) {
    view.shm_bytes = static_cast<std::int64_t>(system.f_blocks) * static_cast<std::int64_t>(system.f_frsize);
  }
  return view;
}

std::vector<std::string> gpu_query() {
  return {"nvidia-smi",
          "--query-gpu=index,name,driver_version,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,"
          "pcie.link.width.max,clocks_throttle_reasons.active",
          "--format=csv,noheader,nounits"};
}

namespace {

std::optional<int> whole_number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Parses "0x0000000000000004".
std::optional<std::uint64_t> hexadecimal(const std::string& text) {
  if (!text.starts_with("0x")) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool names_a_gpu(const std::string& word) {
  return word.starts_with("GPU") && word.size() > 3 &&
         std::all_of(word.begin() + 3, word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// Removes the escape sequences with which nvidia-smi underlines the header.
std::vector<std::string> words_of(std::string line) {
  for (std::size_t at = 0; (at = line.find('\x1b', at)) != std::string::npos;) {
    const std::size_t end = line.find('m', at);
    line.erase(at, end == std::string::npos ? end : end - at + 1);
  }
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

std::vector<GpuState> parse_gpu_states(const std::string& csv) {
  constexpr std::size_t kFields = 8;
  std::vector<GpuState> states;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) fields.push_back(trimmed(field));
    if (fields.size() != kFields) continue;
    states.push_back({fields[0], fields[1], fields[2], whole_number(fields[3]), whole_number(fields[4]),
                      whole_number(fields[5]), whole_number(fields[6]), hexadecimal(fields[7])});
  }
  return states;
}

std::map<std::pair<std::string, std::string>, std::string> parse_gpu_matrix(const std::string& text) {
  std::map<std::pair<std::string, std::string>, std::string> cells;
  std::vector<std::string> columns;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_of(line);
    if (words.empty() || !names_a_gpu(words[0])) continue;
    const bool is_header = words.size() == 1 || names_a_gpu(words[1]);
    if (is_header && columns.empty()) {
      std::copy_if(words.begin(), words.end(), std::back_inserter(columns), names_a_gpu);
      continue;
    }
    const auto row = static_cast<std::size_t>(std::find(columns.begin(), columns.end(), words[0]) - columns.begin());
    for (std::size_t i = row + 1; i < columns.size() && i + 1 < words.size(); ++i) {
      cells[{words[0], columns[i]}] = words[i + 1];
    }
  }
  return cells;
}

}  // namespace krigtune::machine
