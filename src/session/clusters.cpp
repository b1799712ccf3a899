#include "session/clusters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "core/block.h"
#include "core/json.h"

namespace krigtune::session {
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

// Those that mean the same as in a session's cluster; others are about CPU ranks.
constexpr std::array kKeysOfCluster = {"gpus_per_domain", "gpu", "interconnect", "network", "hardware"};

Json count_or_list() {
  const Json count = from_to(1, kMostCount).applied_to(schema::integer());
  return schema::either({count, schema::not_empty(schema::list(count))});
}

// The keys of an entry: its own, and those of a session's cluster, of which two may be lists.
Json entry_schema() {
  const Json of_cluster = workload::cluster_schema();
  const Json& cluster = of_cluster.at("anyOf").at(1).at("properties");
  std::vector<schema::Key> keys = {
      {"name", schema::text("what the cluster is called (default: its GPU)")},
      {"nodes", schema::with_meaning("number of nodes, or several numbers: a size each", count_or_list())},
      {"gpus_per_node", schema::with_meaning("GPUs of a node, or several numbers: a size each", count_or_list())}};
  for (const char* key : kKeysOfCluster) keys.push_back({key, Json::object(), std::string_view(key) == "gpu"});
  keys.push_back({"price_per_gpu_hour", above(0).applied_to(schema::number("price of a GPU for an hour"))});
  keys.push_back({"power_w", above(0).applied_to(schema::number(
                                 "mean power of a GPU with its share of the machine, in watts, instead of the one in "
                                 "\"run\""))});
  Json schema = schema::object("A kind of machine, in one size or several", keys);
  for (const char* key : kKeysOfCluster) schema["properties"][key] = cluster.at(key);
  schema["properties"]["gpu"]["description"] = "the device, but not \"local\"";
  schema["properties"]["gpu"].erase("default");
  return schema;
}

// Refuses misspelt keys.
void check_keys(JsonObject& entry) {
  const Json schema = entry_schema();
  for (const auto& [key, value] : schema.at("properties").items()) entry.find(key);
  entry.finish();
}

void read_sizes(JsonObject& object, ClusterEntry& entry, const std::filesystem::path& base_dir) {
  Json cluster = object.value();
  cluster.erase("name");
  cluster.erase("price_per_gpu_hour");
  cluster.erase("power_w");
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
  if (object.has("power_w")) entry.power_w = number(above(0), "700; leave it out").read(object, "power_w");
  return entry;
}

void read_entries(JsonObject& root, ClustersFile& file, const std::filesystem::path& base_dir) {
  if (root.find("clusters") == nullptr) return;
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
  block.custom("clusters", schema::not_empty(schema::list(entry_schema())),
               "the machines that `plan` compares instead of \"cluster\"",
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

ClustersFile read_clusters_of_session(JsonObject& root, const std::filesystem::path& base_dir) {
  ClustersFile file;
  clusters_block(base_dir).read(root, file);
  return file;
}

ClustersFile clusters_of_session(const Json& json, const std::string& source, const std::filesystem::path& base_dir) {
  ClustersFile file;
  if (!json.is_object()) return file;
  Json own = Json::object();
  const Json schema = clusters_schema();
  for (const auto& [key, of_key] : schema.at("properties").items()) {
    if (json.contains(key)) own[key] = json[key];
  }
  JsonObject root(own, source, "");
  clusters_block(base_dir).read(root, file);
  return file;
}

namespace {

Json entry_json(const ClusterEntry& entry) {
  std::set<std::int64_t> nodes, gpus;
  for (const workload::ClusterSpec& size : entry.sizes) {
    nodes.insert(size.nodes);
    gpus.insert(size.gpus_per_node);
  }
  Json json = {{"name", entry.name}};
  json.update(workload::to_json(entry.sizes.back()));  // the largest has a network if any has
  json["nodes"] = nodes;
  json["gpus_per_node"] = gpus;
  if (entry.price_per_gpu_hour) json["price_per_gpu_hour"] = json_number(*entry.price_per_gpu_hour);
  if (entry.power_w) json["power_w"] = json_number(*entry.power_w);
  return json;
}

}  // namespace

Json to_json(const ClustersFile& file) {
  Json json = Json::object();
  for (const ClusterEntry& entry : file.entries) json["clusters"].push_back(entry_json(entry));
  if (!file.currency.empty()) json["currency"] = file.currency;
  if (file.amount.tokens) json["tokens"] = json_number(*file.amount.tokens);
  if (file.amount.samples) json["samples"] = json_number(*file.amount.samples);
  if (file.amount.epochs != 1.0) json["epochs"] = json_number(file.amount.epochs);
  return json;
}

Json clusters_schema() { return clusters_block({}).schema(); }

ClustersFile read_clusters(const Json& json, const std::string& source, const std::filesystem::path& base_dir) {
  JsonObject root(json, source, "");
  root.text("$schema", "");
  root.require("clusters");
  ClustersFile file;
  clusters_block(base_dir).read(root, file);
  return file;
}

ClustersFile load_clusters(const std::filesystem::path& file) {
  return read_clusters(load_json(file), file.string(), std::filesystem::absolute(file).parent_path());
}

}  // namespace krigtune::session
