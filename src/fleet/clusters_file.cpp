#include "fleet/clusters_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/block.h"
#include "core/json.h"

namespace krigtune::fleet {
namespace {

constexpr double kMostCount = 1e6;
constexpr std::int64_t kMostSizes = 1000;  // of all entries together; each takes a fraction of a second

// Returns the numbers of a key that is one number or a list of them; {fallback} if the entry lacks it.
std::vector<std::int64_t> counts_of(JsonObject& entry, const std::string& key, std::int64_t fallback) {
  const Json* json = entry.find(key);
  if (json == nullptr) return {fallback};
  std::set<std::int64_t> counts;
  const Json list = json->is_array() ? *json : Json::array({*json});
  if (list.empty()) entry.fail(key, "is an empty list", "write at least one number");
  for (const Json& one : list) {
    const double count = one.is_number() ? one.get<double>() : 0.0;
    if (count < 1.0 || count > kMostCount || count != std::floor(count)) {
      entry.fail(key, fmt::format("{} is not a number of {}", one.dump(), key == "nodes" ? "nodes" : "GPUs"),
                 "write a whole number from 1 on, or a list of them");
    }
    counts.insert(static_cast<std::int64_t>(count));
  }
  return {counts.begin(), counts.end()};
}

// Refuses misspelt keys: those of an entry are its own and those of a cluster.
void check_keys(JsonObject& entry) {
  for (const char* own : {"name", "price_per_gpu_hour"}) entry.find(own);
  const Json schema = workload::cluster_schema();
  for (const auto& [key, value] : schema.at("anyOf").at(1).at("properties").items()) entry.find(key);
  entry.finish();
}

void read_sizes(JsonObject& object, ClusterEntry& entry, const std::filesystem::path& base_dir) {
  Json cluster = object.value();
  cluster.erase("name");
  cluster.erase("price_per_gpu_hour");
  const std::vector<std::int64_t> gpus = counts_of(object, "gpus_per_node", 0);
  for (const std::int64_t nodes : counts_of(object, "nodes", 1)) {
    for (const std::int64_t gpus_per_node : gpus) {
      cluster["nodes"] = nodes;
      if (gpus_per_node > 0) cluster["gpus_per_node"] = gpus_per_node;
      entry.sizes.push_back(workload::read_cluster(cluster, object.source(), object.pointer(), base_dir));
    }
  }
  std::stable_sort(entry.sizes.begin(), entry.sizes.end(),
                   [](const auto& a, const auto& b) { return a.ranks() < b.ranks(); });
}

ClusterEntry read_entry(JsonObject& object, const std::filesystem::path& base_dir) {
  check_keys(object);
  const std::string gpu = object.text("gpu", "");
  if (gpu.empty() || gpu == "local") {
    object.fail("gpu", gpu.empty() ? "is missing" : "may not be this machine",
                "name the GPU, for example \"h100-80gb\"");
  }
  ClusterEntry entry;
  read_sizes(object, entry, base_dir);
  entry.name = object.text("name", entry.sizes.front().gpu);
  if (object.has("price_per_gpu_hour")) {
    entry.price_per_gpu_hour =
        number(above(0), "2.5; leave it out if there is none").read(object, "price_per_gpu_hour");
  }
  return entry;
}

void read_entries(JsonObject& root, ClustersFile& file, const std::filesystem::path& base_dir) {
  const Json& list = root.require("clusters");
  if (!list.is_array() || list.empty())
    root.fail("clusters", "is not a list of clusters", "write [{\"gpu\": ...}, ...]");
  std::int64_t sizes = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    JsonObject object(list[i], root.source(), fmt::format("{}/{}", root.pointer("clusters"), i));
    ClusterEntry entry = read_entry(object, base_dir);
    if (std::ranges::any_of(file.entries, [&](const ClusterEntry& other) { return other.name == entry.name; })) {
      object.fail("name", fmt::format("another cluster is called '{}' too", entry.name),
                  "give each a \"name\" of its own");
    }
    sizes += static_cast<std::int64_t>(entry.sizes.size());
    file.entries.push_back(std::move(entry));
  }
  if (sizes > kMostSizes)
    root.fail("clusters", fmt::format("has {} sizes in all", sizes), fmt::format("write at most {}", kMostSizes));
}

Block<ClustersFile> clusters_block(const std::filesystem::path& base_dir) {
  Block<ClustersFile> block("Machines that could train a job");
  block.custom("clusters", schema::list(workload::cluster_schema()), "the machines",
               [base_dir](JsonObject& root, ClustersFile& file) { read_entries(root, file, base_dir); });
  block.key("currency", &ClustersFile::currency, text(), "follows prices");
  block.key(
      "tokens", [](auto& file) -> auto& { return file.amount.tokens; }, number_or_null(above(0)),
      "tokens to train on, in one pass");
  block.key(
      "samples", [](auto& file) -> auto& { return file.amount.samples; }, number_or_null(above(0)),
      "sequences to train on, in one pass");
  block.key(
      "epochs", [](auto& file) -> auto& { return file.amount.epochs; }, number(above(0)), "passes over the data");
  block.check([](JsonObject& root, ClustersFile& file) {
    if (file.amount.tokens && file.amount.samples)
      root.fail("samples", "says the amount of data, as \"tokens\" does", "leave one of them out");
  });
  return block;
}

}  // namespace

ClustersFile read_clusters(const Json& json, const std::string& source, const std::filesystem::path& base_dir) {
  JsonObject root(json, source, "");
  root.text("$schema", "");
  root.require("clusters");
  return clusters_block(base_dir).value_of(&json, source, "");
}

ClustersFile load_clusters(const std::filesystem::path& file) {
  return read_clusters(load_json(file), file.string(), std::filesystem::absolute(file).parent_path());
}

}  // namespace krigtune::fleet
