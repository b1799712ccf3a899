#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "krigtune/core/error.h"
#include "krigtune/core/files.h"
#include "krigtune/core/json.h"
#include "krigtune/workload/workload.h"
#include "networks.h"
#include "words.h"

namespace krigtune {
namespace {

constexpr const char* kLocal = "local";
constexpr Words<MemoryModelKind, 2> kMemoryModelWords = {
    {{"krigtune", MemoryModelKind::kKrigtune}, {"deepspeed-autotuner", MemoryModelKind::kDeepSpeedAutotuner}}};

void check_local(JsonObject& object, const ClusterSpec& cluster) {
  if (cluster.gpu != kLocal) {
    object.fail("gpu", fmt::format("'{}' is not supported yet", cluster.gpu), "the only one so far is \"local\"");
  }
  constexpr std::int64_t kMostRanks = 1'000'000;  // so that products with them fit into 64 bits
  if (cluster.nodes < 1 || cluster.nodes > kMostRanks) {
    object.fail("nodes", fmt::format("{} nodes cannot train", cluster.nodes), fmt::format("write 1 to {}", kMostRanks));
  }
  if (cluster.gpus_per_node < 1 || cluster.gpus_per_node > kMostRanks) {
    object.fail("gpus_per_node", fmt::format("{} ranks cannot train", cluster.gpus_per_node),
                fmt::format("write 1 to {}", kMostRanks));
  }
  for (const char* key : {"interconnect", "network"}) {
    if (object.find(key) != nullptr) {
      object.fail(key, "is not supported yet with gpu \"local\"", "\"emulate_network\" imitates a network");
    }
  }
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

ClusterSpec read_cluster(const Json& json, const std::string& source, const std::string& pointer) {
  if (json.is_string()) {
    if (json.get<std::string>() == kLocal) return {};
    throw UserError(fmt::format("{}: {}: the cluster {} is not known", source, pointer, json.dump()),
                    "write \"local\" or an object like {\"gpus_per_node\": 2}");
  }
  JsonObject object(json, source, pointer);
  ClusterSpec cluster;
  cluster.nodes = object.integer("nodes", cluster.nodes);
  cluster.gpus_per_node = object.integer("gpus_per_node", cluster.gpus_per_node);
  cluster.gpu = object.text("gpu", cluster.gpu);
  check_local(object, cluster);
  if (const Json* network = object.find("emulate_network")) {
    cluster.emulated_network = read_network(*network, source, object.pointer("emulate_network"), cluster.gpus_per_node);
  }
  object.finish();
  return cluster;
}

Json to_json(const ClusterSpec& cluster) {
  Json json = {{"nodes", cluster.nodes}, {"gpus_per_node", cluster.gpus_per_node}, {"gpu", cluster.gpu}};
  if (cluster.emulated_network) json["emulate_network"] = to_json(*cluster.emulated_network);
  return json;
}

MemorySpec read_memory(const Json& json, const std::string& source, const std::string& pointer) {
  JsonObject object(json, source, pointer);
  MemorySpec memory;
  memory.limit_gib = object.optional_number("limit_gib");
  memory.reserve_fraction = object.number("reserve_fraction", memory.reserve_fraction);
  memory.host_limit_gib = object.optional_number("host_limit_gib");
  memory.model = read_word(object, "model", kMemoryModelWords, memory.model);
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
  return memory;
}

Json to_json(const MemorySpec& memory) {
  return {{"limit_gib", memory.limit_gib ? json_number(*memory.limit_gib) : Json(nullptr)},
          {"host_limit_gib", memory.host_limit_gib ? json_number(*memory.host_limit_gib) : Json(nullptr)},
          {"reserve_fraction", json_number(memory.reserve_fraction)},
          {"model", word_of(memory.model, kMemoryModelWords)}};
}

Bytes memory_limit_per_rank(const MemorySpec& memory, const ClusterSpec& cluster) {
  if (memory.limit_gib) return from_gib(*memory.limit_gib);
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
