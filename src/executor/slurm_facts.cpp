#include "executor/slurm_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>

#include "core/files.h"
#include "core/text.h"
#include "executor/tool.h"

namespace krigtune::executor {
namespace {

constexpr double kFactsS = 20.0;

std::vector<std::string> fields_of(std::string_view line, char separator) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(separator, begin), line.size());
    fields.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return fields;
}

// Reads the value of a line such as "AccountingStorageType   = accounting_storage/none".
std::string setting(std::string_view text, std::string_view name) {
  for (const std::string& line : fields_of(text, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos || trimmed(line.substr(0, equals)) != name) continue;
    const std::string value = trimmed(line.substr(equals + 1));
    return value == "(null)" ? "" : value;
  }
  return "";
}

// Flags such as "*" (does not answer) may follow the state.
bool is_usable(const std::string& state) {
  constexpr std::array<std::string_view, 8> kUnusable = {"down",  "drain", "drng", "fail",
                                                         "maint", "inval", "unk",  "drained"};
  std::string word = state;
  const bool answers = word.find('*') == std::string::npos;
  std::erase_if(word, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) == 0; });
  return answers && !is_one_of(word, kUnusable);
}

std::string partition_text(const SlurmFacts::Partition& partition) {
  const std::string limit =
      partition.time_limit == "infinite" ? "no time limit" : fmt::format("at most {}", partition.time_limit);
  return fmt::format("{}{} ({}{} of {} nodes, {}{})", partition.name, partition.is_default ? "*" : "",
                     partition.is_up ? "" : "not up, ", partition.usable_nodes, partition.nodes,
                     partition.gres.empty() ? "" : partition.gres + ", ", limit);
}

}  // namespace

std::vector<SlurmFacts::Partition> parse_partitions(std::string_view text) {
  constexpr std::size_t kFields = 6;
  std::vector<SlurmFacts::Partition> partitions;
  for (const std::string& line : fields_of(text, '\n')) {
    const std::vector<std::string> fields = fields_of(line, '|');
    if (fields.size() != kFields) continue;
    std::string name = fields[0];
    const bool is_default = !name.empty() && name.back() == '*';
    if (is_default) name.pop_back();
    auto found = std::find_if(partitions.begin(), partitions.end(), [&](const auto& one) { return one.name == name; });
    if (found == partitions.end()) {
      partitions.push_back({name, is_default, fields[1] == "up", fields[2], 0, 0, ""});
      found = std::prev(partitions.end());
    }
    int nodes = 0;
    std::from_chars(fields[3].data(), fields[3].data() + fields[3].size(), nodes);
    found->nodes += nodes;
    if (is_usable(fields[4])) found->usable_nodes += nodes;
    if (fields[5] != "(null)" && found->gres.empty()) found->gres = fields[5];
  }
  return partitions;
}

void read_slurm_config(std::string_view text, SlurmFacts& facts) {
  const std::string storage = setting(text, "AccountingStorageType");
  facts.has_accounting = !storage.empty() && storage.find("none") == std::string::npos;
  facts.enforced = setting(text, "AccountingStorageEnforce");
  if (facts.enforced == "none") facts.enforced.clear();
  const std::string age = setting(text, "MinJobAge");  // "300 sec"
  double seconds = 0.0;
  if (std::from_chars(age.data(), age.data() + age.size(), seconds).ec == std::errc()) facts.min_job_age_s = seconds;
}

std::optional<SlurmFacts> slurm_facts(const Clock& clock) {
  if (find_program("sbatch", {}, program_search_path()).empty()) return std::nullopt;
  const std::vector<std::string> unset = variables_with({"SINFO_"}, {});
  SlurmFacts facts;
  const std::string version = trimmed(run_tool({"sbatch", "--version"}, kFactsS, clock).out);  // "slurm-wlm 22.05.8"
  facts.version = version.substr(version.rfind(' ') + 1);
  if (const char* job = std::getenv("SLURM_JOB_ID")) facts.job = job;
  if (const char* nodes = std::getenv("SLURM_JOB_NODELIST")) facts.job_nodes = nodes;
  const ToolEnd partitions = run_tool({"sinfo", "--noheader", "--format=%P|%a|%l|%D|%t|%G"}, kFactsS, clock, unset);
  if (!partitions.ok()) {
    facts.complaint = partitions.complaint();
    return facts;
  }
  facts.partitions = parse_partitions(partitions.out);
  read_slurm_config(run_tool({"scontrol", "show", "config"}, kFactsS, clock).out, facts);
  return facts;
}

std::string facts_text(const SlurmFacts& facts) {
  constexpr std::size_t kMostPartitions = 6;
  std::string text = facts.version.empty() ? "installed" : facts.version;
  if (!facts.complaint.empty()) return fmt::format("{}, and the controller does not answer: {}", text, facts.complaint);
  std::vector<std::string> partitions;
  for (const SlurmFacts::Partition& partition : facts.partitions) {
    if (partitions.size() < kMostPartitions) partitions.push_back(partition_text(partition));
  }
  if (facts.partitions.size() > kMostPartitions)
    partitions.push_back(fmt::format("{} more (sinfo)", facts.partitions.size() - kMostPartitions));
  text += partitions.empty() ? "; no partition for this user" : "; " + join(partitions, ", ");
  text += !facts.has_accounting ? "; no accounting" : "; accounting";
  if (!facts.enforced.empty()) text += fmt::format(", enforced: {}", facts.enforced);
  return text;
}

std::string consequence_text(const SlurmFacts& facts) {
  if (!facts.complaint.empty())
    return "no job can be submitted until it does; check SLURM_CONF, and ask the cluster's administrators";
  if (!facts.job.empty()) {
    return fmt::format(
        "inside job {} on {}: with --executor slurm trials run as steps on its nodes, several at a time if they fit",
        facts.job, facts.job_nodes);
  }
  const auto standard = std::find_if(facts.partitions.begin(), facts.partitions.end(),
                                     [](const SlurmFacts::Partition& one) { return one.is_default; });
  if (standard == facts.partitions.end())
    return "with --executor slurm each trial is a job; there is no default partition: the session must name one";
  return fmt::format("with --executor slurm each trial is a job in the partition {}, unless the session names another",
                     standard->name);
}

}  // namespace krigtune::executor
