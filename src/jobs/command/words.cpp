#include "jobs/command/words.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/text.h"

namespace krigtune::jobs {
namespace {

using CommandWords = std::vector<std::string>;

// "--num-gpus" and "--num_gpus" are equivalent: transformers, torchrun and accelerate accept both.
std::string as_compared(std::string_view flag) {
  std::string text(flag);
  const std::size_t first = text.find_first_not_of('-');
  if (first != std::string::npos) std::replace(text.begin() + static_cast<std::ptrdiff_t>(first), text.end(), '-', '_');
  return text;
}

// Returns whether the word begins a flag; negative numbers do not.
bool begins_flag(std::string_view word) {
  const bool is_dashed = word.size() > 1 && word.front() == '-';
  return is_dashed && word.find_first_not_of("0123456789.e-") != std::string_view::npos;
}

std::optional<std::int64_t> product(const std::optional<std::int64_t>& a, const std::optional<std::int64_t>& b) {
  return a && b ? std::optional(*a * *b) : std::nullopt;
}

// Parses "host:0,1@other:2", where slots are listed after each colon. A host without a list has the hostfile's slots.
RankCount included(std::string_view text) {
  RankCount count{0, 0};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('@'), text.size());
    const std::string_view host = text.substr(0, end);
    const std::size_t colon = host.find(':');
    ++*count.nodes;
    if (colon == std::string_view::npos) {
      count.ranks.reset();
    } else if (count.ranks) {
      *count.ranks += 1 + std::count(host.begin() + static_cast<std::ptrdiff_t>(colon), host.end(), ',');
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return count;
}

RankCount of_deepspeed(const LauncherOptions& options) {
  if (const auto include = options.text({"--include", "-i"})) return included(*include);
  if (options.has({"--exclude", "-e"})) return {};
  const std::optional<std::int64_t> nodes = options.count({"--num_nodes"});
  const bool has_hostfile = options.has({"--hostfile", "-H"});
  const std::optional<std::int64_t> known_nodes = nodes || has_hostfile ? nodes : std::optional<std::int64_t>(1);
  return {product(options.count({"--num_gpus", "--num_accelerators"}), known_nodes), known_nodes};
}

RankCount of_torchrun(const LauncherOptions& options) {
  const bool says_processes = options.has({"--nproc_per_node"});
  const bool says_nodes = options.has({"--nnodes"});
  const std::optional<std::int64_t> one = 1;
  const std::optional<std::int64_t> nodes = says_nodes ? options.count({"--nnodes"}) : one;
  return {product(says_processes ? options.count({"--nproc_per_node"}) : one, nodes), nodes};
}

RankCount of_srun(const LauncherOptions& options) {
  const std::optional<std::int64_t> nodes = options.count({"-N", "--nodes"});
  const std::optional<std::int64_t> tasks = options.count({"-n", "--ntasks"});
  return {tasks ? tasks : product(nodes, options.count({"--ntasks_per_node"})), nodes};
}

// Composer: without --world_size the ranks depend on the variable WORLD_SIZE.
RankCount of_composer(const LauncherOptions& options) {
  const std::optional<std::int64_t> all = options.count({"--world_size"});
  const std::optional<std::int64_t> each = options.count({"-n", "--nproc"});
  if (!all || !each || *all % *each != 0) return {all, std::nullopt};
  return {all, *all / *each};
}

RankCount of_litgpt(const LauncherOptions& options) {
  std::optional<std::int64_t> nodes = options.count({"--num_nodes"});
  if (!options.has({"--num_nodes"}) && !options.has({"--config"})) nodes = 1;  // a file may say it
  return {product(options.count({"--devices"}), nodes), nodes};
}

// Hosts of a file count only where it is read (ranks.h).
RankCount of_colossalai(const LauncherOptions& options) {
  std::optional<std::int64_t> nodes = options.count({"--num_nodes"});
  if (const auto hosts = options.text({"-H", "--host"})) nodes = 1 + std::count(hosts->begin(), hosts->end(), ',');
  if (!options.has({"--num_nodes", "-H", "--host", "--hostfile"})) nodes = 1;
  return {product(options.count({"--nproc_per_node"}), nodes), nodes};
}

}  // namespace

std::optional<std::int64_t> count_in(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const bool is_count = error == std::errc() && end == text.data() + text.size() && count >= 1;
  return is_count ? std::optional(count) : std::nullopt;
}

std::optional<std::string> LauncherOptions::text(std::initializer_list<const char*> names) const {
  std::optional<std::string> value;
  std::size_t last = 0;
  for (const char* name : names) {
    for (const FlagAt& at : occurrences(words, begin, end, name)) {
      if (!at.value_word || (value && at.word < last)) continue;
      value = value_at(words, at);
      last = at.word;
    }
  }
  return value;
}

bool LauncherOptions::has(std::initializer_list<const char*> names) const {
  return std::any_of(names.begin(), names.end(), [&](const char* name) {
    return !occurrences(words, begin, end, name).empty() || !short_form(name).empty();
  });
}

std::optional<std::int64_t> LauncherOptions::count(std::initializer_list<const char*> names) const {
  if (const std::optional<std::string> value = text(names)) return count_in(*value);
  for (const char* name : names) {
    const std::string value = short_form(name);
    if (!value.empty()) return count_in(value);
  }
  return std::nullopt;
}

std::string LauncherOptions::short_form(std::string_view name) const {
  if (name.size() != 2) return "";
  for (std::size_t i = begin; i < end; ++i) {
    if (words[i].size() > 2 && words[i].rfind(name, 0) == 0) return words[i].substr(2);
  }
  return "";
}

std::vector<FlagAt> occurrences(const CommandWords& words, std::size_t begin, std::size_t end, std::string_view flag) {
  std::vector<FlagAt> found;
  const std::string wanted = as_compared(flag);
  for (std::size_t i = begin; i < std::min(end, words.size()); ++i) {
    const std::size_t equals = words[i].find('=');
    if (as_compared(std::string_view(words[i]).substr(0, equals)) != wanted) continue;
    FlagAt at{i, std::nullopt, equals != std::string::npos};
    if (at.is_joined) {
      at.value_word = i;
    } else if (i + 1 < std::min(end, words.size()) && !begins_flag(words[i + 1])) {
      at.value_word = i + 1;
    }
    found.push_back(at);
  }
  return found;
}

std::vector<FileWord> file_words(const CommandWords& words, std::size_t begin, std::size_t end,
                                 const CommandWords& directory_flags, const CommandWords& suffixes) {
  std::filesystem::path directory;
  for (const std::string& flag : directory_flags) {
    for (const FlagAt& at : occurrences(words, begin, end, flag)) {
      if (at.value_word) directory = value_at(words, at);
    }
  }
  std::vector<FileWord> files;
  for (std::size_t i = begin; i < std::min(end, words.size()); ++i) {
    if (words[i].empty() || words[i].front() == '-') {
      if (words[i].find('=') == std::string::npos) ++i;  // its value follows
      continue;
    }
    std::filesystem::path path = directory / words[i];
    if (!is_one_of(path.extension().string(), suffixes)) path += suffixes.front();
    files.push_back({path.string(), i});
  }
  return files;
}

std::string value_at(const CommandWords& words, const FlagAt& at) {
  const std::string& word = words.at(at.value_word.value());
  return at.is_joined ? word.substr(word.find('=') + 1) : word;
}

RankCount ranks_of(Launcher launcher, const CommandWords& words, std::size_t begin, std::size_t end) {
  const LauncherOptions options{words, begin, std::min(end, words.size())};
  switch (launcher) {
    case Launcher::kDeepSpeed:
      return of_deepspeed(options);
    case Launcher::kTorchrun:
    case Launcher::kTune:
      return of_torchrun(options);
    case Launcher::kAccelerate:
      return {options.count({"--num_processes"}), options.count({"--num_machines"})};
    case Launcher::kSrun:
      return of_srun(options);
    case Launcher::kMpirun:
      return {options.count({"-n", "-np", "--np", "-c"}), std::nullopt};
    case Launcher::kComposer:
      return of_composer(options);
    case Launcher::kLitgpt:
      return of_litgpt(options);
    case Launcher::kColossalAi:
      return of_colossalai(options);
    case Launcher::kPython:
      return {1, 1};
  }
  return {};
}

}  // namespace krigtune::jobs
