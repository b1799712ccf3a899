#include "executor/machine_parts.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "core/text.h"
#include "trial/process.h"
#include "trial/trial_files.h"

namespace krigtune::executor {
namespace {

constexpr std::size_t kSmallFile = 1 << 16;

std::string small_file(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

std::vector<int> own_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) processors.push_back(cpu);
  }
  return processors;
}

// Sorts processors so that threads of one core are neighbours, in the order of their first ones.
void order_by_core(std::vector<int>& processors) {
  const auto first_sibling = [](int cpu) {
    const std::vector<int> siblings =
        cpu_list(small_file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list"));
    return siblings.empty() ? cpu : siblings.front();
  };
  std::map<std::pair<int, int>, int> ordered;
  for (const int cpu : processors) ordered.emplace(std::pair(first_sibling(cpu), cpu), cpu);
  processors.clear();
  for (const auto& [key, cpu] : ordered) processors.push_back(cpu);
}

// Returns the processors of each NUMA node. `numbers` receives the number of the node of each element.
std::vector<std::vector<int>> cores_by_node(std::vector<int>& numbers) {
  const std::vector<int> own = own_processors();
  std::vector<std::vector<int>> cores;
  for (const int node : cpu_list(small_file("/sys/devices/system/node/online"))) {
    std::vector<int> here;
    for (const int cpu : cpu_list(small_file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist"))) {
      if (std::find(own.begin(), own.end(), cpu) != own.end()) here.push_back(cpu);
    }
    if (here.empty()) continue;
    order_by_core(here);
    cores.push_back(std::move(here));
    numbers.push_back(node);
  }
  if (!cores.empty()) return cores;
  cores.push_back(own);
  numbers.push_back(0);
  return cores;
}

int numa_node_in_sys(const std::string& pci_device) {
  return whole_number(small_file("/sys/bus/pci/devices/" + pci_device + "/numa_node")).value_or(-1);
}

// Returns nothing if there is no such program, no driver, or no answer in time.
std::string listing_of_nvidia_smi(const Clock& clock) {
  constexpr double kPatienceS = 10.0;
  const trial::ScratchDirectory scratch;
  trial::ProcessSpec spec;
  spec.argv = {"nvidia-smi", "--query-gpu=index,uuid,pci.bus_id", "--format=csv,noheader"};
  spec.stdout_file = scratch / "out";
  spec.stderr_file = scratch / "err";
  spec.timeout_s = kPatienceS;
  const trial::ProcessResult result = trial::run_process(spec, clock);
  return result.start_error.empty() && result.exit_code == 0 ? trial::read_head(spec.stdout_file, kSmallFile) : "";
}

struct ListedGpu {
  int number = 0;
  std::string uuid;
  std::string pci_device;  // "0000:3b:00.0"
};

std::string without_blanks(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isspace(c) != 0; });
  return text;
}

std::vector<ListedGpu> listed_gpus(const std::string& listing) {
  constexpr std::size_t kLongDomain = 4;  // nvidia-smi writes the domain with eight digits, Linux with four
  std::vector<ListedGpu> gpus;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(without_blanks(line));
    std::array<std::string, 3> field;
    for (std::string& text : field) std::getline(fields, text, ',');
    const std::optional<int> number = whole_number(field[0]);
    if (!number) continue;
    std::string device = field[2];
    std::transform(device.begin(), device.end(), device.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (device.size() > kLongDomain && device.find(':') == 2 * kLongDomain) device.erase(0, kLongDomain);
    gpus.push_back({*number, field[1], device});
  }
  return gpus;
}

// Returns the GPU that a word of CUDA_VISIBLE_DEVICES means, or nothing.
std::optional<ListedGpu> meant_by(const std::string& word, const std::vector<ListedGpu>& listed) {
  const std::optional<int> number = whole_number(word);
  for (const ListedGpu& gpu : listed) {
    const bool is_it = number ? gpu.number == *number : !word.empty() && gpu.uuid.rfind(word, 0) == 0;
    if (is_it) return gpu;
  }
  // Without nvidia-smi, believe the user's number.
  return listed.empty() && number && *number >= 0 ? std::optional(ListedGpu{*number, "", ""}) : std::nullopt;
}

}  // namespace

std::vector<int> cpu_list(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream ranges(without_blanks(text));
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t dash = range.find('-');
    const std::optional<int> first = whole_number(range.substr(0, dash));
    const std::optional<int> last = dash == std::string::npos ? first : whole_number(range.substr(dash + 1));
    if (!first || !last) return {};
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  return numbers;
}

std::vector<GpuPart> gpus_in(const std::string& listing, const std::optional<std::string>& visible,
                             int (*numa_node_of)(const std::string& pci_device)) {
  const std::vector<ListedGpu> listed = listed_gpus(listing);
  std::vector<ListedGpu> used = listed;
  if (visible) {
    used.clear();
    std::istringstream words(without_blanks(*visible));
    for (std::string word; std::getline(words, word, ',');) {
      const std::optional<ListedGpu> gpu = meant_by(word, listed);
      if (!gpu) break;
      used.push_back(*gpu);
    }
  }
  std::vector<GpuPart> parts;
  for (const ListedGpu& gpu : used)
    parts.push_back({gpu.number, gpu.pci_device.empty() ? -1 : numa_node_of(gpu.pci_device)});
  return parts;
}

MachineParts parts_of_this_machine(const Clock& clock) {
  MachineParts machine;
  std::vector<int> nodes;
  machine.cores = cores_by_node(nodes);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  machine.gpus = gpus_in(listing_of_nvidia_smi(clock),
                         visible == nullptr ? std::nullopt : std::optional<std::string>(visible), numa_node_in_sys);
  for (GpuPart& gpu : machine.gpus) {
    const auto node = std::find(nodes.begin(), nodes.end(), gpu.numa_node);
    gpu.numa_node = node == nodes.end() ? -1 : static_cast<int>(node - nodes.begin());
  }
  return machine;
}

namespace {

std::vector<std::vector<int>> in_equal_parts(const std::vector<int>& processors, std::size_t parts) {
  std::vector<std::vector<int>> divided(parts);
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = i * processors.size() / parts;
    const std::size_t end = (i + 1) * processors.size() / parts;
    for (std::size_t k = begin; k < end; ++k) divided[i].push_back(processors[k]);
    if (divided[i].empty() && !processors.empty()) divided[i].push_back(processors[i % processors.size()]);
  }
  return divided;
}

std::vector<int> all_cores(const MachineParts& machine) {
  std::vector<int> all;
  for (const std::vector<int>& node : machine.cores) all.insert(all.end(), node.begin(), node.end());
  return all;
}

}  // namespace

std::vector<std::vector<int>> divided_cores(const MachineParts& machine, int parts) {
  return in_equal_parts(all_cores(machine), static_cast<std::size_t>(std::max(parts, 1)));
}

std::vector<std::vector<int>> cores_of_gpus(const MachineParts& machine) {
  const std::size_t count = machine.gpus.size();
  const bool all_known =
      std::all_of(machine.gpus.begin(), machine.gpus.end(), [](const GpuPart& gpu) { return gpu.numa_node >= 0; });
  if (!all_known) return in_equal_parts(all_cores(machine), count);
  std::vector<std::vector<int>> cores(count);
  for (std::size_t node = 0; node < machine.cores.size(); ++node) {
    std::vector<std::size_t> here;
    for (std::size_t gpu = 0; gpu < count; ++gpu) {
      if (machine.gpus[gpu].numa_node == static_cast<int>(node)) here.push_back(gpu);
    }
    const std::vector<std::vector<int>> divided = in_equal_parts(machine.cores[node], here.size());
    for (std::size_t i = 0; i < here.size(); ++i) cores[here[i]] = divided[i];
  }
  return cores;
}

}  // namespace krigtune::executor
