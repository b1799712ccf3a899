#include "bench/job.h"

#include <fmt/format.h>

#include "krigtune/core/json.h"

namespace krigtune {

TrainingJob load_job(const std::filesystem::path& path) {
  // Each rank is a few threads of this process.
  constexpr std::int64_t kMostRanks = 256;
  const Json document = load_json(path);
  JsonObject object(document, path.string(), "");
  TrainingJob job;
  job.workload =
      read_workload(object.require("workload"), object.source(), object.pointer("workload"), path.parent_path());
  const Json* cluster = object.find("cluster");
  job.cluster = read_cluster(cluster == nullptr ? Json("local") : *cluster, object.source(), object.pointer("cluster"),
                             path.parent_path());
  if (const Json* memory = object.find("memory")) {
    job.memory = read_memory(*memory, object.source(), object.pointer("memory"));
  }
  if (const Json* configuration = object.find("configuration")) {
    job.configuration = configuration_from_json(*configuration, object.source(), object.pointer("configuration"));
  }
  object.finish();
  if (!job.cluster.device && job.cluster.ranks() > kMostRanks) {
    object.fail("cluster", fmt::format("has {} ranks", job.cluster.ranks()),
                fmt::format("on CPUs there can be at most {}", kMostRanks));
  }
  return job;
}

}  // namespace krigtune
