// Finds ranks that a command leaves to files, variables and devices, as deepspeed/launcher/runner.py (DeepSpeed 0.19),
// torch/distributed/run.py, accelerate/commands/launch.py, srun(1) and mpirun(1) do.
#include "jobs/command/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "jobs/command/words.h"

namespace krigtune::jobs {

// Reads hostfiles and filters like deepspeed/launcher/runner.py (fetch_hostfile, parse_resource_filter; DeepSpeed 0.19)
// and mpirun.

namespace {

auto find_host(std::vector<HostSlots>& hosts, std::string_view name) {
  return std::find_if(hosts.begin(), hosts.end(), [&](const HostSlots& one) { return one.host == name; });
}

std::optional<HostSlots> host_in(std::string_view line) {
  constexpr std::string_view kSlots = "slots=";
  const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view first = line.substr(0, blank);
  const std::string rest = trimmed(line.substr(blank));
  const std::size_t colon = first.find(':');
  if (rest.empty()) {
    const auto count =
        colon == std::string_view::npos ? std::optional<std::int64_t>(1) : count_in(first.substr(colon + 1));
    return count ? std::optional<HostSlots>({std::string(first.substr(0, colon)), *count}) : std::nullopt;
  }
  if (rest.rfind(kSlots, 0) != 0) return std::nullopt;
  const std::string number = rest.substr(kSlots.size(), rest.find_first_of(" \t") - kSlots.size());
  const auto count = count_in(number);
  return count ? std::optional<HostSlots>({std::string(first), *count}) : std::nullopt;
}

// A host that a filter names.
struct Filter {
  std::string_view host;
  std::optional<std::int64_t> slots;  ///< empty: all
};

std::vector<Filter> filters_in(std::string_view text) {
  std::vector<Filter> filters;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find('@'));
    const std::size_t colon = one.find(':');
    const bool is_listed = colon != std::string_view::npos;
    filters.push_back(
        {one.substr(0, colon),
         is_listed ? std::optional(1 + std::count(one.begin() + static_cast<std::ptrdiff_t>(colon), one.end(), ','))
                   : std::nullopt});
    text.remove_prefix(std::min(one.size() + 1, text.size()));
  }
  return filters;
}

HostSlots& host_of(std::vector<HostSlots>& hosts, std::string_view name, const char* option) {
  const auto found = find_host(hosts, name);
  if (found != hosts.end()) return *found;
  throw UserError(fmt::format("{}: the host '{}' is not in the hostfile", option, name),
                  "name one of its hosts; without a hostfile the only one is localhost");
}

}  // namespace

std::vector<HostSlots> read_hostfile(const std::filesystem::path& file) {
  std::vector<HostSlots> hosts;
  const std::string text = read_text(file);
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view whole = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(whole.size() + 1, rest.size()));
    const std::string line = trimmed(whole.substr(0, whole.find('#')));
    if (line.empty()) continue;
    const std::optional<HostSlots> host = host_in(line);
    if (!host || find_host(hosts, host->host) != hosts.end()) {
      throw UserError(
          fmt::format("{}:{}: '{}' is not a host with its slots, or is listed twice", file.string(), number, line),
          "write a line for each, as in: worker-1 slots=8");
    }
    hosts.push_back(*host);
  }
  if (hosts.empty()) throw UserError(fmt::format("{}: the hostfile names no host", file.string()), "worker-1 slots=8");
  return hosts;
}

std::vector<HostSlots> chosen_hosts(std::vector<HostSlots> hosts, std::string_view include, std::string_view exclude) {
  if (!include.empty()) {
    std::vector<HostSlots> chosen;
    for (const Filter& filter : filters_in(include)) {
      const HostSlots& host = host_of(hosts, filter.host, "--include");
      chosen.push_back({host.host, filter.slots.value_or(host.slots)});
    }
    return chosen;
  }
  for (const Filter& filter : filters_in(exclude)) {
    HostSlots& host = host_of(hosts, filter.host, "--exclude");
    host.slots -= filter.slots.value_or(host.slots);
  }
  std::erase_if(hosts, [](const HostSlots& host) { return host.slots <= 0; });
  return hosts;
}

std::optional<std::string> accelerate_setting(const std::string& text, std::string_view key) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view whole = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(whole.size() + 1, rest.size()));
    std::string line = trimmed(whole.substr(0, whole.find('#')));
    std::erase_if(line, [](char c) { return c == '"' || c == '\'' || c == ','; });
    if (line.rfind(key, 0) == 0 && line.size() > key.size() && line[key.size()] == ':')
      return trimmed(std::string_view(line).substr(key.size() + 1));
  }
  return std::nullopt;
}

namespace {

using Count = std::optional<std::int64_t>;

bool is_file(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error);
}

std::int64_t slots_of(const std::vector<HostSlots>& hosts) {
  std::int64_t slots = 0;
  for (const HostSlots& host : hosts) slots += host.slots;
  return slots;
}

Count count_of_key(const std::string& text, std::string_view key) {
  const std::optional<std::string> value = accelerate_setting(text, key);
  return value ? count_in(*value) : std::nullopt;
}

// The surroundings as the variables before the command change them: "env CUDA_VISIBLE_DEVICES=0,1 deepspeed ...".
Surroundings with_assignments(const Command& command, Surroundings around) {
  const Variables before = variables_before(command).value_or(Variables());
  const std::map<std::string, std::string> assigned(before.begin(), before.end());
  if (const auto devices = assigned.find("CUDA_VISIBLE_DEVICES"); devices != assigned.end()) {
    around.gpus = listed_devices(devices->second);
  }
  around.variable = [assigned, outer = around.variable](const char* name) {
    const auto found = assigned.find(name);
    return found == assigned.end() ? outer(name) : found->second;
  };
  return around;
}

class Ranks {
 public:
  Ranks(const Command& command, const Surroundings& around) : command_(command), around_(around) {}

  JobRanks find() {
    const Stage* stage = rank_stage(command_);
    found_ = {command_.ranks, command_.nodes, is_under_srun(), "", "", true};
    if (stage == nullptr) {
      of_variables();
    } else {
      find_for({command_.argv, stage->begin + 1, stage->end}, stage->launcher);
    }
    found_.has_this_node = found_.has_this_node && !is_under_srun() && (found_.nodes == 1 || is_node_of_job());
    found_.is_elsewhere = found_.is_elsewhere || found_.nodes.value_or(1) > 1;
    if (found_.ranks) found_.missing.clear();
    return found_;
  }

 private:
  void find_for(const LauncherOptions& options, Launcher launcher) {
    switch (launcher) {
      case Launcher::kDeepSpeed:
        return of_deepspeed(options);
      case Launcher::kTorchrun:
      case Launcher::kTune:
        return of_torchrun(options);
      case Launcher::kAccelerate:
        return of_accelerate(options);
      case Launcher::kSrun:
        return of_srun(options);
      case Launcher::kMpirun:
        return of_mpirun(options);
      case Launcher::kComposer:
        return of_composer(options);
      case Launcher::kLitgpt:
        return of_litgpt(options);
      case Launcher::kColossalAi:
        return of_colossalai(options);
      case Launcher::kPython:
        return;  // one rank, as the command states
    }
  }

  Count variable(const char* name) const { return count_in(around_.variable(name)); }

  bool has_srun() const {
    return std::any_of(command_.stages.begin(), command_.stages.end(),
                       [](const Stage& stage) { return stage.launcher == Launcher::kSrun; });
  }

  // salloc may leave the shell on the login node; Slurm sets this variable on the nodes of a job.
  bool is_node_of_job() const { return !has_srun() || !around_.variable("SLURMD_NODENAME").empty(); }

  // Outside of a job srun runs the ranks on nodes that are allocated only then.
  bool is_under_srun() const { return has_srun() && around_.variable("SLURM_JOB_ID").empty(); }

  void take_gpus(const char* missing) {
    found_.missing = missing;
    if (found_.ranks || found_.nodes.value_or(1) != 1) return;
    found_.nodes = 1;
    if (around_.gpus > 0) found_.ranks = around_.gpus;
  }

  bool is_this_node(const std::string& host) const {
    const auto short_name = [](const std::string& name) { return name.substr(0, name.find('.')); };
    return host == "localhost" || host == "127.0.0.1" || short_name(host) == short_name(around_.hostname);
  }

  void set(const std::vector<HostSlots>& hosts, const std::string& where) {
    const bool is_even = std::all_of(hosts.begin(), hosts.end(),
                                     [&](const HostSlots& host) { return host.slots == hosts.front().slots; });
    if (hosts.empty() || !is_even) {
      throw UserError(fmt::format("{}: {}", where, hosts.empty() ? "no host is left" : "hosts differ in their slots"),
                      "choose hosts with the same number of slots");
    }
    found_.nodes = static_cast<std::int64_t>(hosts.size());
    found_.ranks = slots_of(hosts);
    const auto is_here = [&](const HostSlots& host) { return is_this_node(host.host); };
    found_.is_elsewhere = !std::all_of(hosts.begin(), hosts.end(), is_here);
    found_.has_this_node = std::any_of(hosts.begin(), hosts.end(), is_here);
  }

  // What DeepSpeed's launcher is told.
  struct DeepSpeedOptions {
    std::optional<std::string> hostfile;
    std::string include;
    std::string exclude;
    Count nodes;
    Count each;
  };

  // Of deepy.py: -H, and keys of its configuration files, a line each (megatron/neox_arguments/deepspeed_args.py).
  DeepSpeedOptions options_of_neox() const {
    const std::size_t begin = command_.script + 1;
    std::string text;
    for (const FileWord& one :
         file_words(command_.argv, begin, command_.argv.size(), {"-d", "--conf_dir"}, {".yml", ".yaml", ".json"})) {
      if (is_file(around_.directory / one.path)) text += read_text(around_.directory / one.path) + "\n";
    }
    const auto count = [&](const char* key) { return count_of_key(text, key); };
    const LauncherOptions words{command_.argv, begin, command_.argv.size()};
    std::optional<std::string> hostfile = words.text({"-H", "--hostfile"});
    if (!hostfile) hostfile = accelerate_setting(text, "hostfile");
    return {hostfile, accelerate_setting(text, "include").value_or(""),
            accelerate_setting(text, "exclude").value_or(""), count("num_nodes"), count("num_gpus")};
  }

  void of_deepspeed(const LauncherOptions& options) {
    const bool is_neox = std::filesystem::path(options.words[options.begin - 1]).filename() == "deepy.py";
    if (is_neox) found_.ranks = found_.nodes = std::nullopt;  // its files may say others
    const DeepSpeedOptions told =
        is_neox ? options_of_neox()
                : DeepSpeedOptions{options.text({"--hostfile", "-H"}), options.text({"--include", "-i"}).value_or(""),
                                   options.text({"--exclude", "-e"}).value_or(""), options.count({"--num_nodes"}),
                                   options.count({"--num_gpus", "--num_accelerators"})};
    if (is_neox && told.hostfile && !is_file(around_.directory / *told.hostfile)) {
      found_.missing = "its hostfile, " + *told.hostfile;  // deepy.py fails without it
      return;
    }
    of_deepspeed(told);
  }

  // --num_gpus takes precedence over the slots of the hosts.
  void of_deepspeed(const DeepSpeedOptions& options) {
    constexpr const char* kDefault = "/job/hostfile";
    const std::filesystem::path file = around_.directory / options.hostfile.value_or(kDefault);
    const Count each = options.each;
    std::vector<HostSlots> hosts;
    if (is_file(file)) {
      hosts = read_hostfile(file);
    } else {
      const std::int64_t local = around_.gpus > 0 ? around_.gpus : variable("LOCAL_SIZE").value_or(0);
      if (found_.ranks || (local == 0 && !each)) return take_gpus("--num_gpus N");
      hosts = {{"localhost", local}};
    }
    hosts = chosen_hosts(std::move(hosts), options.include, options.exclude);
    if (options.nodes) hosts.resize(std::min(hosts.size(), static_cast<std::size_t>(*options.nodes)));
    for (HostSlots& host : hosts) host.slots = each.value_or(host.slots);
    set(hosts, is_file(file) ? file.string() : "the hosts of the command");
  }

  // llamafactory-cli and swift start torchrun themselves, with what these variables say. So does torchtitan's script
  // with NGPU; trl and axolotl start accelerate with its own option, which trl's file may have too.
  void of_variables() {
    if (!found_.ranks) found_.ranks = ranks_of_program();
    const Count each = found_.ranks ? Count() : variable("NPROC_PER_NODE");
    if (!each) return take_gpus("/cluster/gpus_per_node in a session");
    found_.nodes = variable("NNODES").value_or(1);
    found_.ranks = *each * *found_.nodes;
  }

  Count ranks_of_program() const {
    constexpr std::array<std::string_view, 3> kSwiftsTrainings = {"sft", "pt", "rlhf"};
    const std::vector<std::string>& words = command_.argv;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string name = std::filesystem::path(words[i]).filename().string();
      if (name == "run_train.sh") return variable("NGPU");
      if ((name == "swift" || name == "megatron") && i + 1 < words.size() &&
          is_one_of(words[i + 1], kSwiftsTrainings)) {
        return variable("NPROC_PER_NODE") || variable("NNODES") ? Count()
                                                                : Count(1);  // swift/cli/main.py, use_torchrun
      }
      if (name == "axolotl" && i + 1 < words.size() && words[i + 1] == "train") {
        const LauncherOptions options{words, i + 2, words.size()};
        return options.text({"--launcher"}) == "python" ? Count(1) : options.count({"--num_processes"});
      }
      if (name != "trl") continue;
      for (const FlagAt& at : occurrences(words, i + 1, words.size(), "--num_processes")) {
        if (at.value_word) return count_in(value_at(words, at));
      }
      const LauncherOptions options{words, i + 1, words.size()};
      const std::filesystem::path file = around_.directory / options.text({"--config"}).value_or("");
      return is_file(file) ? count_of_key(read_text(file), "num_processes") : std::nullopt;
    }
    return std::nullopt;
  }

  void of_torchrun(const LauncherOptions& options) {
    const std::string nodes = options.text({"--nnodes"}).value_or(around_.variable("PET_NNODES"));
    const std::string each = options.text({"--nproc_per_node"}).value_or(around_.variable("PET_NPROC_PER_NODE"));
    const std::string fewest = nodes.substr(0, nodes.find(':'));
    found_.nodes = nodes.empty() ? Count(1) : count_in(fewest);
    if (found_.nodes && fewest.size() < nodes.size() && nodes.substr(fewest.size() + 1) != fewest) {
      found_.assumption = fmt::format(
          "--nnodes {}: taken for {}, the fewest; sequences of a step are kept on each rank, however many join", nodes,
          fewest);
    }
    found_.missing = found_.nodes ? "--nproc_per_node N" : "--nnodes N, one number";
    const bool takes_gpus = each == "gpu" || (each == "auto" && around_.gpus > 0);
    const bool takes_cpus = each == "cpu" || (each == "auto" && around_.gpus == 0);
    Count ranks = each.empty() ? Count(1) : takes_cpus ? Count(around_.cpus) : count_in(each);
    if (takes_gpus && around_.gpus > 0) ranks = around_.gpus;
    found_.ranks = ranks && found_.nodes ? Count(*ranks * *found_.nodes) : std::nullopt;
  }

  // A host with a line of its own in --hostfile is a node.
  void of_colossalai(const LauncherOptions& options) {
    found_.missing = "--nproc_per_node N";
    const auto file = options.text({"--hostfile"});
    if (found_.nodes || !file || !is_file(around_.directory / *file)) return;
    found_.nodes = static_cast<std::int64_t>(read_hostfile(around_.directory / *file).size());
    if (const Count each = options.count({"--nproc_per_node"})) found_.ranks = *each * *found_.nodes;
  }

  // Composer reads WORLD_SIZE only if it differs from LOCAL_WORLD_SIZE.
  void of_composer(const LauncherOptions& options) {
    found_.missing = "-n N";
    if (found_.ranks && found_.nodes) return;
    Count each = options.count({"-n", "--nproc"});
    if (!each) each = variable("LOCAL_WORLD_SIZE");
    if (!each && around_.gpus > 0) each = around_.gpus;
    Count all = found_.ranks;
    if (!all && variable("WORLD_SIZE") != variable("LOCAL_WORLD_SIZE")) all = variable("WORLD_SIZE");
    if (!all) all = each;
    found_.ranks = all;
    found_.nodes = all && each && *all % *each == 0 ? Count(*all / *each) : std::nullopt;
  }

  // finetune_* train on one device by default, pretrain on all. A file of --config may say otherwise.
  void of_litgpt(const LauncherOptions& options) {
    if (found_.ranks) return;
    const std::string file = options.text({"--config"}).value_or("");
    const bool is_here = !file.empty() && is_file(around_.directory / file);
    const std::string text = is_here ? read_text(around_.directory / file) : "";
    if (!options.has({"--num_nodes"})) found_.nodes = count_of_key(text, "num_nodes").value_or(1);
    const std::string said = options.text({"--devices"}).value_or(accelerate_setting(text, "devices").value_or(""));
    const bool is_pretraining = options.begin < options.end && options.words[options.begin] == "pretrain";
    const bool is_open = said.empty() && (is_pretraining || (!file.empty() && !is_here));
    if (is_open || said == "auto") return take_gpus("--devices N");
    const Count each = said.empty() ? Count(1) : count_in(said);
    found_.missing = "--devices N";
    if (each && found_.nodes) found_.ranks = *each * *found_.nodes;
  }

  std::filesystem::path accelerate_config(const LauncherOptions& options) const {
    if (const auto named = options.text({"--config_file"})) return around_.directory / *named;
    const std::string home = around_.variable("HOME");
    std::filesystem::path cache = around_.variable("HF_HOME");
    if (cache.empty()) {
      const std::string xdg = around_.variable("XDG_CACHE_HOME");
      cache = (xdg.empty() ? std::filesystem::path(home) / ".cache" : std::filesystem::path(xdg)) / "huggingface";
    }
    const std::filesystem::path yaml = cache / "accelerate" / "default_config.yaml";
    return is_file(yaml) ? yaml : cache / "accelerate" / "default_config.json";
  }

  // num_processes counts the ranks of all machines.
  void of_accelerate(const LauncherOptions& options) {
    const std::filesystem::path file = accelerate_config(options);
    const std::string text = is_file(file) ? read_text(file) : "";
    if (!found_.ranks) found_.ranks = count_of_key(text, "num_processes");
    if (!found_.nodes) found_.nodes = count_of_key(text, "num_machines");
    if (!found_.nodes) found_.nodes = 1;
    take_gpus("--num_processes N");
  }

  void of_srun(const LauncherOptions& options) {
    found_.missing = "-n N -N NODES";
    const bool says_nodes = options.has({"-N", "--nodes"});
    const bool says_tasks = options.has({"-n", "--ntasks"});
    if (!says_nodes)
      found_.nodes = variable("SLURM_NNODES") ? variable("SLURM_NNODES") : variable("SLURM_JOB_NUM_NODES");
    if (found_.ranks || says_tasks) return;
    Count each = options.count({"--ntasks_per_node"});
    const Count tasks = variable("SLURM_NTASKS");
    if (!each && tasks && !says_nodes) {
      found_.ranks = tasks;
      return;
    }
    if (!each) each = variable("SLURM_NTASKS_PER_NODE");
    if (found_.nodes) found_.ranks = *found_.nodes * each.value_or(1);
  }

  void of_mpirun(const LauncherOptions& options) {
    found_.missing = "-np N";
    const auto file = options.text({"--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f"});
    if (file && is_file(around_.directory / *file)) return of_hosts(read_hostfile(around_.directory / *file), *file);
    if (const auto list = options.text({"-H", "--host", "-host", "--hosts", "-hosts"})) return of_host_list(*list);
    found_.nodes = variable("SLURM_NNODES");
    if (!found_.ranks) found_.ranks = variable("SLURM_NTASKS");
  }

  // "a:8,b:8"; a host without slots has one for each time that it is named, or an equal share of -np.
  void of_host_list(std::string_view list) {
    std::vector<HostSlots> hosts;
    const bool says_slots = list.find(':') != std::string_view::npos;
    while (!list.empty()) {
      const std::string_view one = list.substr(0, list.find(','));
      list.remove_prefix(std::min(one.size() + 1, list.size()));
      const std::optional<HostSlots> host = host_in(one);
      if (!host) continue;
      const auto known = find_host(hosts, host->host);
      if (known == hosts.end()) {
        hosts.push_back(*host);
      } else {
        known->slots += host->slots;
      }
    }
    if (hosts.empty()) return;
    const auto count = static_cast<std::int64_t>(hosts.size());
    if (!says_slots && found_.ranks.value_or(1) % count == 0) {
      for (HostSlots& host : hosts) host.slots = std::max(host.slots, found_.ranks.value_or(count) / count);
    }
    of_hosts(std::move(hosts), "the hosts of the command");
  }

  // Hosts are filled one after the other.
  void of_hosts(std::vector<HostSlots> hosts, const std::string& file) {
    std::int64_t left = found_.ranks.value_or(slots_of(hosts));
    for (HostSlots& host : hosts) {
      host.slots = std::min(host.slots, left);
      left -= host.slots;
    }
    std::erase_if(hosts, [](const HostSlots& host) { return host.slots == 0; });
    set(hosts, file);
  }

  const Command& command_;
  const Surroundings& around_;
  JobRanks found_;
};

}  // namespace

std::int64_t listed_devices(std::string_view list) {
  return list.empty() ? 0 : 1 + std::count(list.begin(), list.end(), ',');
}

JobRanks ranks_around(const Command& command, const Surroundings& around) {
  const Surroundings changed = with_assignments(command, around);
  return Ranks(command, changed).find();
}

}  // namespace krigtune::jobs
