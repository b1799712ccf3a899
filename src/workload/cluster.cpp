#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "hardware.h"
#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/core/text.h"
#include "krigtune/workload/workload.h"
#include "networks.h"
#include "words.h"

namespace krigtune {
namespace {

constexpr const char* kLocal = "local";
constexpr Words<MemoryModelKind, 2> kMemoryModelWords = {
    {{"krigtune", MemoryModelKind::kKrigtune}, {"deepspeed-autotuner", MemoryModelKind::kDeepSpeedAutotuner}}};

bool is_local(const ClusterSpec& cluster) { return cluster.gpu == kLocal; }

void check_counts(JsonObject& object, const ClusterSpec& cluster) {
  constexpr std::int64_t kMostRanks = 1'000'000;  // so that products with them fit into 64 bits
  if (cluster.nodes < 1 || cluster.nodes > kMostRanks) {
    object.fail("nodes", fmt::format("{} nodes cannot train", cluster.nodes), fmt::format("write 1 to {}", kMostRanks));
  }
  if (cluster.gpus_per_node < 1 || cluster.gpus_per_node > kMostRanks) {
    object.fail("gpus_per_node", fmt::format("{} ranks cannot train", cluster.gpus_per_node),
                fmt::format("write 1 to {}", kMostRanks));
  }
}

void read_local(JsonObject& object, const Hardware& hardware, ClusterSpec& cluster) {
  for (const char* key : {"interconnect", "network"}) {
    if (object.find(key) != nullptr) {
      object.fail(key, "is not supported with gpu \"local\"", "\"emulate_network\" imitates a network");
    }
  }
  if (const Json* network = object.find("emulate_network")) {
    cluster.emulated_network =
        read_network(*network, object.source(), object.pointer("emulate_network"), cluster.gpus_per_node, hardware);
  }
}

// A node's links unless stated are those that its GPUs usually come with; between nodes none is usual.
void read_gpus(JsonObject& object, const Hardware& hardware, ClusterSpec& cluster) {
  const auto where = [&](const char* key) { return object.source() + ": " + object.pointer(key); };
  std::vector<std::string> ids = hardware.device_ids();
  if (std::find(ids.begin(), ids.end(), cluster.gpu) == ids.end()) {
    ids.insert(ids.begin(), kLocal);
    object.fail("gpu", fmt::format("the GPU '{}' is not known", cluster.gpu), suggestion(cluster.gpu, ids));
  }
  cluster.device = hardware.device(cluster.gpu, where("gpu"));
  if (object.find("emulate_network") != nullptr) {
    object.fail("emulate_network", "imitates a network between CPU ranks",
                "name the real one as \"network\", or write \"gpu\": \"local\"");
  }
  const std::string interconnect = object.text("interconnect", cluster.device->interconnect);
  if (interconnect.empty()) object.fail("interconnect", "is missing", "write for example \"pcie4\"");
  const std::string network = object.text("network", "");
  if (network.empty() && cluster.nodes > 1) {
    object.fail("network", fmt::format("is missing, and there are {} nodes", cluster.nodes),
                "write for example \"ib-ndr-400\"");
  }
  NodeNetwork links;
  links.intra = hardware.link(interconnect, where("interconnect")).level();
  links.inter = network.empty() ? links.intra : hardware.link(network, where("network")).level();
  links.ranks_per_node = cluster.gpus_per_node;
  cluster.network = links;
}

// "MemTotal:       12345 kB": proc(5); the kernel's kB are 1024 bytes.
std::optional<Bytes> total_memory(std::string_view meminfo) {
  constexpr std::string_view kKey = "MemTotal:";
  const std::size_t key = meminfo.find(kKey);
  if (key == std::string_view::npos) return std::nullopt;
  const std::size_t digits = meminfo.find_first_not_of(' ', key + kKey.size());
  if (digits == std::string_view::npos) return std::nullopt;
  std::int64_t kib = 0;
  const auto [end, error] = std::from_chars(meminfo.data() + digits, meminfo.data() + meminfo.size(), kib);
  if (error != std::errc()) return std::nullopt;
  return Bytes{kib * 1024};
}

}  // namespace

ClusterSpec read_cluster(const Json& json, const std::string& source, const std::string& pointer,
                         const std::filesystem::path& base_dir) {
  if (json.is_string()) {
    if (json.get<std::string>() == kLocal) return {};
    throw UserError(fmt::format("{}: {}: the cluster {} is not known", source, pointer, json.dump()),
                    "write \"local\" or an object like {\"gpus_per_node\": 2}");
  }
  JsonObject object(json, source, pointer);
  ClusterSpec cluster;
  cluster.nodes = object.integer("nodes", cluster.nodes);
  cluster.gpus_per_node = object.integer("gpus_per_node", cluster.gpus_per_node);
  cluster.gpu = lower_case(object.text("gpu", cluster.gpu));
  check_counts(object, cluster);
  const Hardware hardware = read_hardware(object.find("hardware"), source, object.pointer("hardware"), base_dir);
  if (is_local(cluster)) {
    read_local(object, hardware, cluster);
  } else {
    read_gpus(object, hardware, cluster);
  }
  object.finish();
  if (!is_local(cluster) && !object.has("gpus_per_node")) {
    object.fail("gpus_per_node", "is missing", "write how many GPUs a node has");
  }
  return cluster;
}

Json to_json(const ClusterSpec& cluster) {
  Json json = {{"nodes", cluster.nodes}, {"gpus_per_node", cluster.gpus_per_node}, {"gpu", cluster.gpu}};
  if (!is_local(cluster)) {
    json["interconnect"] = cluster.network->intra.name;
    const bool has_network = cluster.nodes > 1 || cluster.network->inter.name != cluster.network->intra.name;
    if (has_network) json["network"] = cluster.network->inter.name;
  }
  if (cluster.emulated_network) json["emulate_network"] = to_json(*cluster.emulated_network);
  if (Json hardware = own_hardware(cluster); !hardware.is_null()) json["hardware"] = std::move(hardware);
  return json;
}

MemorySpec read_memory(const Json& json, const std::string& source, const std::string& pointer) {
  JsonObject object(json, source, pointer);
  MemorySpec memory;
  memory.limit_gib = object.optional_number("limit_gib");
  memory.reserve_fraction = object.number("reserve_fraction", memory.reserve_fraction);
  memory.host_limit_gib = object.optional_number("host_limit_gib");
  memory.model = read_word(object, "model", kMemoryModelWords, memory.model);
  memory.peak_factor = object.number("peak_factor", memory.peak_factor);
  object.finish();
  constexpr double kLargestGib = 1e6;  // a pebibyte a rank
  const auto check_limit = [&](const char* key, std::optional<double> limit, const char* hint) {
    if (limit && !(*limit > 0.0 && *limit <= kLargestGib)) {
      object.fail(key, fmt::format("{} GiB is no limit", *limit), hint);
    }
  };
  check_limit("limit_gib", memory.limit_gib, "write a number above 0, or null for all that the device has");
  check_limit("host_limit_gib", memory.host_limit_gib, "write a number above 0, or null where it is no constraint");
  if (!(memory.reserve_fraction >= 0.0 && memory.reserve_fraction < 1.0)) {
    object.fail("reserve_fraction", fmt::format("{} is no fraction", memory.reserve_fraction),
                "write a number from 0 to below 1");
  }
  constexpr double kMostFactor = 10.0;
  if (!(memory.peak_factor >= 1.0 / kMostFactor && memory.peak_factor <= kMostFactor)) {
    object.fail("peak_factor", fmt::format("{} is no such factor", memory.peak_factor),
                "write measured over planned peaks, from 0.1 to 10");
  }
  return memory;
}

Json to_json(const MemorySpec& memory) {
  Json json{{"limit_gib", memory.limit_gib ? json_number(*memory.limit_gib) : Json(nullptr)},
            {"host_limit_gib", memory.host_limit_gib ? json_number(*memory.host_limit_gib) : Json(nullptr)},
            {"reserve_fraction", json_number(memory.reserve_fraction)},
            {"model", word_of(memory.model, kMemoryModelWords)}};
  if (memory.peak_factor != 1.0) json["peak_factor"] = json_number(memory.peak_factor);
  return json;
}

Bytes memory_limit_per_rank(const MemorySpec& memory, const ClusterSpec& cluster) {
  if (memory.limit_gib) return from_gib(*memory.limit_gib);
  if (!is_local(cluster) && cluster.device) return cluster.device->memory;
  constexpr const char* kMeminfo = "/proc/meminfo";
  const std::optional<Bytes> total = total_memory(read_text(kMeminfo));
  if (!total) {
    throw EnvironmentError(fmt::format("{} does not say how much memory there is", kMeminfo),
                           "set \"limit_gib\" in the session's block \"memory\"");
  }
  // Emulated nodes are all on this machine.
  return {total->count / (cluster.emulated_network ? cluster.ranks() : cluster.gpus_per_node)};
}

}  // namespace krigtune
